"""Tuning: the same budget for every method, and settings that a comparison takes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from comparison_tools import QUICK, quick, toy_splits
from maskmatch import MaskMatchError
from maskmatch_lab.comparison import Rows, Setting, Tuning, compare, tune
from maskmatch_lab.comparison.tuning import edge_notes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_tuning_gives_every_method_the_same_budget(tiny: Callable[[str], Path], tmp_path: Path, ran: list[str]) -> None:
    data = replace(toy_splits(), test=Rows(["never read"], ["refund"], [0]))
    grid: dict[str, Any] = {"learning_rates": (1e-3, 1e-4), "epoch_factors": (1, 2)}
    methods = quick("mask-matching", "fine-tuning")
    found = tune([data], methods, ["2 shots"], 1, model=tiny("bert"), folder=tmp_path, **grid)
    assert len(ran) == 2 * 4
    assert found.budget["runs_a_method"] == 4
    for name, tried in found.tried.items():
        assert [setting for setting, _ in tried] == [
            Setting(rate, factor) for factor in (1.0, 2.0) for rate in (1e-4, 1e-3)
        ]
        assert dict(tried)[found.chosen[name]] == max(score for _, score in tried)
    assert tune([data], methods, ["2 shots"], 1, model=tiny("bert"), folder=tmp_path, **grid) == found
    assert len(ran) == 8

    file = found.save(tmp_path / "settings.json")
    assert Tuning.load(file).chosen == found.chosen
    result = compare(toy_splits(), methods, ["2 shots"], 1, model=tiny("bert"), settings=file)
    for cell in result.cells:
        setting = found.chosen[cell.method]
        assert cell.settings["training"]["learning_rate"] == setting.learning_rate
        assert cell.settings["training"]["epochs"] == setting.epoch_factor * QUICK["epochs"]
    assert "runs per method, the same for all" in result.to_html()
    assert result.to_dict()["tuning"]["settings"]["fine-tuning"] == vars(found.chosen["fine-tuning"])
    assert "The same budget for every method: 4 settings" in str(found)


def test_the_edge_of_the_grid_is_told() -> None:
    chosen = {"a": Setting(1e-3, 1.0), "b": Setting(1e-4, 1.0)}
    notes = edge_notes(chosen, {"learning_rates": [1e-5, 1e-4, 1e-3], "epoch_factors": [1.0]})
    assert len(notes) == 1
    assert "learning rate of a is the highest" in notes[0]
    notes = edge_notes(chosen, {"learning_rates": [1e-4], "epoch_factors": [0.5, 1.0]})
    assert notes == ["The best number of epochs of a, b is the highest that was tried; a better one may lie beyond."]


def test_settings_that_starve_a_method_are_refused(tmp_path: Path) -> None:
    tuning = Tuning({"mask-matching": Setting(1e-4, 1.0)}, {}, {})
    with pytest.raises(MaskMatchError, match="no entry for 'fine-tuning'"):
        compare(toy_splits(), ["mask-matching", "fine-tuning"], settings=tuning)
    with pytest.raises(MaskMatchError, match="nothing to tune"):
        tune([toy_splits()], ["mask-matching"], ["zero-shot"])
    (tmp_path / "wrong.json").write_text('{"settings": {"a": 3}}', encoding="utf-8")
    with pytest.raises(MaskMatchError, match="has no settings"):
        Tuning.load(tmp_path / "wrong.json")
    with pytest.raises(MaskMatchError, match="cannot be read"):
        Tuning.load(tmp_path / "none.json")
