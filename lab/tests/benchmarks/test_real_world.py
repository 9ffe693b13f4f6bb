"""The benchmark of skewed labels and long texts: its cells, its joined texts, and its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskmatch.data import Examples
from maskmatch_lab.benchmarks import real_world, real_world_page

if TYPE_CHECKING:
    import pytest


def cell(**values: Any) -> dict[str, Any]:
    return {"part": "skewed", "dataset": "agnews", "seed": 10, **values}


def test_joined_posts_are_long_and_of_one_group() -> None:
    posts = [f"{'red' if number % 2 else 'blue'} {number} " * 100 for number in range(400)]
    rows = Examples(list(posts), [post.split()[0] for post in posts])
    joined = real_world.joined_posts(rows, seed=1)
    assert len(joined) == real_world.JOINED_TEXTS
    for text, label in joined[:5]:
        words = text.split()
        assert len(words) <= real_world.WORDS
        assert {word for word in words if not word.isdigit()} == {label}


def test_the_page_shows_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    few, windows = real_world.FEW, list(real_world.LONG)
    cells = [
        cell(way="names", macro_f1=0.5),
        cell(way=few, macro_f1=0.75),
        cell(way="default", macro_f1=0.7),
        cell(way="names", macro_f1=0.5, seed=11),
        cell(way=few, macro_f1=0.5, seed=11),
        cell(way="default", macro_f1=0.8, seed=11),
        cell(way="names", macro_f1=0.1, seed=12),  # a draw that is not finished
        *(cell(part="weights", way=way, macro_f1=0.25) for way in list(real_world.WAYS)[1:]),
        *(
            {"part": "long", "dataset": texts, "regime": "names", "way": way, "seed": 10, "accuracy": place / 8}
            for place, way in enumerate(windows)
            for texts in real_world.LONG_TEXTS
        ),
    ]
    versions = {"command": "c", "date": "d", "versions": {}, "machine": {"cpu": "x", "cores": 2}}
    monkeypatch.setattr(real_world_page, "results_of", lambda name: {"cells": cells, **versions})
    page = real_world_page.figures()
    assert "| trained on | agnews, 2 draws |" in page
    assert "| names alone | 0.500 ± 0.000 |" in page
    assert "| skewed rows | 0.750 ± 0.071 |" in page
    assert f"Among 2 draws of all datasets, skewed rows ended below names alone in 0, and below {few} in 1." in page
    assert "| default | 0.700 |" in page
    assert "| class weights | 0.250 |" in page
    assert "banking77" not in page
    assert f"| {windows[1]} | 0.125 | 0.125 |" in page
    assert "5 shots" not in page
    monkeypatch.setattr(real_world_page, "results_of", lambda name: None)
    assert real_world_page.figures() == real_world_page.NOT_YET


def test_every_way_of_training_is_measured() -> None:
    first, other = real_world.SEEDS[:2]
    weights = {plan["way"] for plan in real_world.plans("weights", first)}
    assert weights | {real_world.DEFAULT} == set(real_world.WAYS)
    assert not real_world.plans("weights", other)
    assert len(real_world.plans("skewed", other)) == 3 * len(real_world.SKEWED)
    assert {plan["way"] for plan in real_world.plans("long", other)} == set(real_world.LONG)
