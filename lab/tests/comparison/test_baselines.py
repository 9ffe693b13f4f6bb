"""Baselines of a comparison: a probe and nearest neighbours on frozen vectors, and SetFit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from comparison_tools import quick, rows, toy_splits
from maskmatch import MaskMatcher, MaskMatchError
from maskmatch_lab.benchmarks.peers import process
from maskmatch_lab.comparison import Splits, Variant, compare
from maskmatch_lab.comparison.baselines import FROZEN, PENALTY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_frozen_baselines_beside_a_method(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    data = toy_splits(count=60)
    methods = [*quick("mask-matching"), "probe", "nearest-neighbours"]
    found = compare(data, methods, ["zero-shot", "5-shot"], 2, model=tiny("bert"), folder=tmp_path)
    counts = {name: sum(cell.method == name for cell in found.cells) for name in ("probe", "nearest-neighbours")}
    assert counts == {"probe": 2, "nearest-neighbours": 2}, "they cannot answer without training"
    cell = next(cell for cell in found.cells if cell.method == "probe" and cell.seed == 0)
    assert (cell.figures.training_texts, cell.figures.steps, cell.figures.trained_parameters) == (15, 0, 0)
    texts, labels = data.train.texts, data.train.labels
    drawn = [row for row in range(60) if row in set(_drawn(labels))]
    matcher = MaskMatcher.from_pretrained(tiny("bert"), list(data.labels), method=FROZEN, task="intent", verbose=False)

    def unit(some: list[Any]) -> Any:
        states = matcher.text_states(some)[:, 0]
        return states / np.linalg.norm(states, axis=1, keepdims=True)

    own = LogisticRegression(C=PENALTY, max_iter=1000)
    own.fit(unit([texts[row] for row in drawn]), [labels[row] for row in drawn])
    expected = own.predict(unit(list(data.test.texts)))
    known = cell.answers.labels
    assert [known[place] for place in cell.answers.predicted] == expected.tolist()
    again = compare(data, methods, ["zero-shot", "5-shot"], 2, model=tiny("bert"), folder=tmp_path)
    assert [cell.digest for cell in again.cells] == [cell.digest for cell in found.cells]


def _drawn(labels: Any) -> list[int]:
    from maskmatch.data import draw_shots

    return list(draw_shots(labels, 5, 0))


def test_setfit_runs_in_its_own_process(
    tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    class Crew:
        def __init__(self, *folders: Path) -> None:
            self.closed = False

        def ask(self, peer: str, command: str, **arguments: Any) -> dict[str, Any]:
            assert peer == "SetFit"
            asked.append((command, arguments))
            return {"steps": 7, "labels": ["refund"] * len(arguments.get("texts", ()))}

        def close(self) -> None:
            asked.append(("close", {}))

    monkeypatch.setattr(process, "Crew", Crew)
    (cell,) = compare(toy_splits(), ["setfit"], ["full"], [3], model=tiny("bert")).cells
    assert [command for command, _ in asked] == ["prepare", "run", "predict", "close"]
    settings = asked[0][1]["settings"]
    assert (settings["seed"], len(settings["texts"])) == (3, 12)
    assert set(settings["labels"]) == set(settings["names"])
    assert cell.figures.steps == 7
    assert cell.figures.accuracy == pytest.approx(1 / 3)
    assert cell.figures.expected_calibration_error is None


def test_several_labels_per_text_are_refused(tiny: Callable[[str], Path]) -> None:
    texts, labels = rows(12, 0)
    data = Splits.of("toy", "intent", (texts, [[label] for label in labels]), (texts, [[label] for label in labels]))
    with pytest.raises(MaskMatchError, match="probe gives one label per text"):
        compare(data, [Variant.of("probe")], ["full"], 1, model=tiny("bert"))
