"""The page of scikit-learn, Ray and the workbench shows what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskmatch_lab.benchmarks import integrations_page

if TYPE_CHECKING:
    import pytest

ORIGIN = {"command": "c", "date": "d", "versions": {}, "machine": {"cpu": "x", "cores": 2}}


def test_the_page_of_the_workbench(monkeypatch: pytest.MonkeyPatch) -> None:
    speed = {"part": "speed", "texts": 5000, "seconds_after_encoding": 0.25, "milliseconds": {"rename": 12.4}}
    marks = [
        {"part": "marks", "dataset": "agnews", "way": way, "seed": seed, "accuracy": accuracy}
        for way, accuracy in (("random", {"60": 0.5, "100": 0.75}), ("queue", {"20": 0.25, "60": 0.75}))
        for seed in (10, 11)
    ]
    results: dict[str, Any] = {"workbench": {"cells": [speed, *marks], **ORIGIN}}
    monkeypatch.setattr(integrations_page, "results_of", results.get)
    page = integrations_page.figures()
    assert page.count(integrations_page.NOT_YET) == 2
    assert "| rename | 12 ms |" in page
    assert "| from the encoded texts to the first page | 250 ms |" in page
    assert "| agnews | random | 2 draws |  | 0.500 | 0.750 |" in page
    assert "| agnews | queue | 2 draws | 0.250 | 0.750 |  |" in page
