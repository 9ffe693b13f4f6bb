"""Comparisons: cells that are kept, found again and run anew; tables, notes, tuning and the page."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from comparison_tools import QUICK, quick, rows, toy_splits
from maskmatch import METHODS, LabelSet, MaskMatchError
from maskmatch.config.tasks import TASKS
from maskmatch.testing.tiny_encoders import write_tiny_encoder
from maskmatch_lab.comparison import Comparison, Regime, Rows, Splits, Variant, compare, runner, usual_methods
from maskmatch_lab.comparison.cells import Answers
from maskmatch_lab.comparison.measuring import MemoryWatch
from maskmatch_lab.comparison.splits import parse_datasets

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from maskmatch_lab.comparison.cells import Cell


@pytest.fixture(scope="module")
def small(tiny: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Comparison, Path]:
    """A comparison of three methods in three regimes, with its folder."""
    folder = tmp_path_factory.mktemp("small")
    methods = quick("mask-matching", "fine-tuning", "semantic-matching")
    regimes = ["zero-shot", "1-shot", "full"]
    found = compare(
        toy_splits("toy <b>"), methods, regimes, 2, model=tiny("bert"), folder=folder, command="maskmatch compare x"
    )
    return found, folder


def test_every_cell_has_figures_and_answers(small: tuple[Comparison, Path]) -> None:
    comparison, folder = small
    assert len(comparison.cells) == 2 + 2 * 2 * 3  # zero-shot once, without the label matrix; two regimes, two seeds
    for cell in comparison.cells:
        figures, answers = cell.figures, cell.answers
        assert answers.right.mean() == pytest.approx(figures.accuracy)
        assert answers.rows == tuple(range(9))
        assert {answers.labels[place] for place in answers.true} == {"refund", "card lost", "exchange rate"}
        assert figures.metric == "accuracy"
        assert figures.expected_calibration_error is not None
        assert (figures.texts_per_second or 0) > 0
        trains = cell.regime != "zero-shot"
        assert (figures.training_seconds > 0, figures.trained_parameters > 0, figures.steps > 0) == (trains,) * 3
        assert (figures.peak_megabytes is not None) == (trains and MemoryWatch().peak is not None)
    shots = [cell.figures.training_texts for cell in comparison.cells if cell.regime == "1 shot"]
    assert set(shots) == {3}
    assert len(list((folder / "cells").iterdir())) == len(comparison.cells)


def test_no_text_is_stored(small: tuple[Comparison, Path]) -> None:
    texts = rows(9, 1)[0] + rows(12, 0)[0]
    for file in [*small[1].glob("cells/*.json"), small[1] / "results.json"]:
        content = file.read_text(encoding="utf-8")
        assert not any(text in content for text in texts)


def test_the_table_is_the_mean_over_seeds(small: tuple[Comparison, Path]) -> None:
    comparison = small[0]
    row = next(row for row in comparison.table if (row.regime, row.method) == ("1 shot", "fine-tuning"))
    values = [
        cell.figures.accuracy for cell in comparison.cells if (cell.regime, cell.method) == (row.regime, row.method)
    ]
    accuracy = row.figures["accuracy"]
    assert accuracy is not None
    assert (accuracy.mean, accuracy.sd) == pytest.approx((np.mean(values), np.std(values, ddof=1)))
    assert row.seeds == (0, 1)
    assert [row.method for row in comparison.table if row.regime == "full data"] == [
        "mask-matching",
        "fine-tuning",
        "semantic-matching",
    ]


def test_the_reference_is_tested_against_all_others(small: tuple[Comparison, Path]) -> None:
    found = {(row.regime, row.method) for row in small[0].significance}
    assert found == {
        ("zero-shot", "semantic-matching"),
        *((regime, method) for regime in ("1 shot", "full data") for method in ("fine-tuning", "semantic-matching")),
    }
    assert {row.reference for row in small[0].significance} == {"mask-matching"}


def test_the_results_file_tells_where_figures_come_from(small: tuple[Comparison, Path]) -> None:
    data = json.loads((small[1] / "results.json").read_text(encoding="utf-8"))
    assert data["command"] == "maskmatch compare x"
    assert {"python", "maskmatch", "torch", "transformers"} <= set(data["versions"])
    assert data["machine"]["cores"]
    assert len(data["cells"]) == len(small[0].cells)
    assert all("answers" not in cell for cell in data["cells"])
    assert {"p", "low", "high", "difference"} <= set(data["significance"][0])
    assert data["table"][0]["accuracy"].keys() == {"mean", "sd"}
    assert any("cannot predict zero-shot" in note and "fine-tuning" in note for note in data["notes"])
    assert any("Two seeds" in note for note in data["notes"])


def test_the_page_is_whole_and_escapes_names(small: tuple[Comparison, Path]) -> None:
    page = (small[1] / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert page.rstrip().endswith("</html>")
    assert "toy <b>" not in page
    assert "toy &lt;b&gt;" in page
    for word in (
        "mask-matching",
        "fine-tuning",
        "1 shot",
        "full data",
        "training s",
        "Is mask-matching better?",
    ):
        assert word in page
    assert page.count('src="data:image/svg+xml') == 2
    assert "<script" not in page
    assert "http" not in page


def test_it_prints(small: tuple[Comparison, Path]) -> None:
    text = str(small[0])
    assert "dataset" in text
    assert "mask-matching minus" in text
    assert "* fine-tuning learns a vector per label" in text


# -- keeping cells ---------------------------------------------------------------------------------------------


def test_a_killed_run_goes_on_where_it_stopped(
    tiny: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: list[str]
) -> None:
    watched, left = runner.run_plan, [3]

    def killed(plan: runner.Plan) -> Cell:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return watched(plan)

    how: dict[str, Any] = {"model": tiny("bert"), "folder": tmp_path}
    methods = quick("mask-matching", "fine-tuning")
    with monkeypatch.context() as patch:
        patch.setattr(runner, "run_plan", killed)
        with pytest.raises(KeyboardInterrupt):
            compare(toy_splits(), methods, ["1-shot"], 3, **how)
    assert len(ran) == 3
    assert not (tmp_path / "results.json").exists()
    lines: list[str] = []
    found = compare(toy_splits(), methods, ["1-shot"], 3, log=lines.append, **how)
    assert len(ran) == 6
    assert len(set(ran)) == 6
    assert [line.split()[1] for line in lines] == ["kept"] * 3 + ["ran"] * 3
    assert len(found.cells) == 6
    again = compare(toy_splits(), methods, ["1-shot"], 3, **how)
    assert len(ran) == 6
    assert again.cells == found.cells


def test_what_has_changed_runs_again(tiny: Callable[[str], Path], tmp_path: Path, ran: list[str]) -> None:
    how: dict[str, Any] = {"model": tiny("bert"), "folder": tmp_path}
    data, methods = toy_splits(), quick("mask-matching")

    def runs(*arguments: Any, **options: Any) -> int:
        before = len(ran)
        compare(*arguments, **{**how, **options})
        return len(ran) - before

    assert runs(data, methods, ["full"], 1) == 1
    assert runs(data, methods, ["full"], 1) == 0
    assert runs(data, methods, ["full"], 2) == 1  # another seed
    assert runs(data, [replace(methods[0], training={**QUICK, "learning_rate": 1e-3})], ["full"], 1) == 1
    assert runs(data, methods, ["full"], 1, use_dev=True) == 1
    assert runs(toy_splits(count=15), methods, ["full"], 1) == 1  # other rows in train
    assert runs(data, methods, ["full"], 2) == 0

    assert runs(data, methods, ["zero-shot"], 1) == 1
    assert runs(data, [replace(methods[0], matcher={"similarity": "dot"})], ["zero-shot"], 1) == 1
    assert runs(data, [replace(methods[0], matcher={"prompt": "{text} {mask}"})], ["zero-shot"], 1) == 1
    assert runs(data, methods, ["zero-shot"], 1, test_rows=5) == 1
    other = replace(data, test=Rows([*data.test.texts[:-1], "other"], data.test.labels, data.test.numbers))
    assert runs(other, methods, ["zero-shot"], 1) == 1
    described = replace(data, label_set=LabelSet.of(dict.fromkeys(data.labels, "so to speak")))
    assert runs(described, methods, ["zero-shot"], 1) == 1
    assert runs(data, methods, ["zero-shot"], 1) == 0
    preset = replace(data, task=replace(data.task, method="semantic-matching"))
    assert runs(preset, methods, ["zero-shot"], 1) == 0, "what the task itself would take plays no part"


def test_other_weights_in_the_same_folder_run_again(tmp_path: Path, ran: list[str]) -> None:
    home = write_tiny_encoder("bert", tmp_path / "encoder")
    compare(toy_splits(), quick("mask-matching"), ["zero-shot"], 1, model=home, folder=tmp_path / "out")
    # The same files elsewhere are the same encoder.
    moved = home.rename(tmp_path / "moved")
    compare(toy_splits(), quick("mask-matching"), ["zero-shot"], 1, model=moved, folder=tmp_path / "out")
    assert len(ran) == 1
    config = json.loads((moved / "config.json").read_text(encoding="utf-8"))
    (moved / "config.json").write_text(json.dumps({**config, "layer_norm_eps": 1e-3}), encoding="utf-8")
    compare(toy_splits(), quick("mask-matching"), ["zero-shot"], 1, model=moved, folder=tmp_path / "out")
    assert len(ran) == 2


def test_a_damaged_cell_runs_again(
    tiny: Callable[[str], Path], tmp_path: Path, ran: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    for content in (None, '{"format": 1, "dig', '{"format": 1}', "[]"):
        if content is not None:
            next((tmp_path / "cells").iterdir()).write_text(content, encoding="utf-8")
        compare(toy_splits(), quick("mask-matching"), ["zero-shot"], 1, model=tiny("bert"), folder=tmp_path)
    assert len(ran) == 4
    assert caplog.text.count("is damaged") == 3


def test_the_same_call_gives_the_same_answers(tiny: Callable[[str], Path]) -> None:
    call: Callable[[], Comparison] = lambda: compare(  # noqa: E731
        toy_splits(), quick("prompt-tuning"), ["zero-shot", "50%"], 2, model=tiny("bert")
    )
    one, other = call(), call()
    assert [cell.answers for cell in one.cells] == [cell.answers for cell in other.cells]
    assert [cell.digest for cell in one.cells] == [cell.digest for cell in other.cells]
    assert len({cell.settings["train"]["digest"] for cell in one.cells}) == 3  # nothing, and a draw for each seed


def test_several_labels_a_text(tiny: Callable[[str], Path]) -> None:
    texts, labels = rows(12, 0)
    lists = [[label] if number % 2 else [label, "card lost"] for number, label in enumerate(labels)]
    lists = [list(dict.fromkeys(each)) for each in lists]
    data = Splits.of("several", "emotion", (texts, lists), (texts, lists))
    found = compare(data, quick("mask-matching"), ["zero-shot", "full"], 1, model=tiny("bert"))
    for cell in found.cells:
        assert cell.answers.right.mean() == pytest.approx(cell.figures.accuracy)
        assert all(isinstance(row, list) for row in cell.answers.true)


def test_answers_number_their_labels() -> None:
    answers = Answers.of([4, 7, 9], ["a", "b"], ["a", "c", "b"], ["a", "a", "b"])
    assert answers.labels == ("a", "b", "c")
    assert (answers.true, answers.predicted) == ((0, 2, 1), (0, 0, 1))
    assert answers.right.tolist() == [True, False, True]
    several = Answers.of([0, 1], ["a", "b"], [["b", "a"], []], [["a", "b"], ["a"]])
    assert several.right.tolist() == [True, False]


# -- regimes, data, variants -----------------------------------------------------------------------------------


def test_regimes_draw_by_seed_and_label() -> None:
    labels = ["a"] * 10 + ["b"] * 10
    assert Regime.of("zero-shot").rows(labels, 0) == []
    assert Regime.of("full").rows(labels, 0) == list(range(20))
    shots = Regime("shots", 2).rows(labels, 0)
    assert [labels[row] for row in shots] == ["a", "a", "b", "b"]
    assert shots != Regime("shots", 2).rows(labels, 1)
    assert len(Regime.of("10%").rows(labels, 0)) == 2
    assert Regime.of("0.1") == Regime("fraction", 0.1)


def test_labels_are_left_out_and_added(tiny: Callable[[str], Path]) -> None:
    regime = "2 shots without 34% of labels"
    found = compare(toy_splits(), quick("mask-matching", "fine-tuning"), [regime], seeds=2, model=tiny("bert"))
    assert {cell.method for cell in found.cells} == {"mask-matching"}, "a label matrix cannot get labels later"
    for cell in found.cells:
        assert cell.regime == regime
        assert cell.figures.training_texts == 4
        left = Regime.of(regime).left_out_labels(toy_splits().train.labels, cell.seed)
        answers = cell.answers
        unseen = [
            right for right, true in zip(answers.right, answers.true, strict=True) if answers.labels[true] in left
        ]
        assert cell.figures.unseen_accuracy == pytest.approx(np.mean(unseen))
        assert cell.figures.seen_accuracy is not None
    with pytest.raises(MaskMatchError, match="two must stay"):
        Regime.of("full without 90% of labels").left_out_labels(["a", "b", "c"], 0)
    with pytest.raises(MaskMatchError, match="several"):
        Regime.of("full without 50% of labels").left_out_labels([["a"], ["b"]], 0)
    with pytest.raises(MaskMatchError, match="left out of training"):
        Regime.of("zero-shot without 50% of labels")


@pytest.mark.parametrize("wrong", ["few", "0 shots", "120%", "", "-1 shots"])
def test_what_is_no_regime_is_refused(wrong: str) -> None:
    with pytest.raises(MaskMatchError):
        Regime.of(wrong)


def test_regimes_with_a_wrong_number_are_refused() -> None:
    with pytest.raises(MaskMatchError, match="without a number"):
        Regime("full", 3)
    with pytest.raises(MaskMatchError, match="with a number"):
        Regime("shots")
    with pytest.raises(MaskMatchError, match="no regime"):
        Regime("some")  # type: ignore[arg-type]


def test_a_draw_of_test_rows_is_fixed_and_keeps_its_numbers() -> None:
    whole = toy_splits().test
    few = whole.sample(4)
    assert list(few.numbers) == sorted(few.numbers)
    assert [whole.texts[number] for number in few.numbers] == few.texts
    assert few.digest == whole.sample(4).digest
    assert whole.sample(99) is whole


def test_more_texts_a_label_are_trained_on_for_more_steps() -> None:
    """As ``fit`` would: by the labels that have texts, not by all that there are."""
    plans = {
        name: next(runner.Grid([toy_splits(count=60)], [Variant.of(name)], [Regime.of("full")], [0]).plans())
        for name in ("mask-matching", "fine-tuning")
    }
    steps_an_epoch = 2
    assert plans["mask-matching"].training.epochs == math.ceil(40 * (60 / 3) / 10 / steps_an_epoch)
    assert plans["fine-tuning"].training.epochs == 100 / steps_an_epoch


def test_pairs_are_compared_by_their_own_method_too() -> None:
    assert "pair-matching" in usual_methods([TASKS["nli"], TASKS["paraphrase"]])
    assert usual_methods([TASKS["nli"], TASKS["topic"]]) == usual_methods([TASKS["topic"]])
    assert "pair-matching" not in usual_methods([TASKS["topic"]])


def test_cells_of_pairs_know_the_prompts_that_the_task_gives_them() -> None:
    pairs = [{"text": "it is here", "text_b": text} for text in ("it came", "it is gone")]
    data = Splits.of("pairs", "paraphrase", (pairs, ["same", "different"]), (pairs, ["same", "different"]))
    own = Variant("own", "pair-matching", matcher={"prompt": ["{text} {mask}", "{text_b} {mask}"]})
    plans = runner.Grid([data], [Variant.of("pair-matching"), own], [Regime.of("full")], [0]).plans()
    settings = {plan.variant.name: plan.settings for plan in plans}
    assert settings["pair-matching"]["pair_prompts"] == list(TASKS["paraphrase"].pair_prompts)
    assert "pair_prompts" not in settings["own"]


def test_variants_differ_by_what_they_may() -> None:
    assert Variant.of("fine-tuning").row is METHODS["fine-tuning"]
    assert Variant("fast", training={"epochs": 2}, epoch_factor=3).config(10, seed=1).epochs == 6
    with pytest.raises(MaskMatchError, match="cannot set 'labels'"):
        Variant("x", matcher={"labels": ["a"]})
    with pytest.raises(MaskMatchError, match="cannot set 'seed'"):
        Variant("x", training={"seed": 3})
    with pytest.raises(MaskMatchError, match="learning_rate"):
        Variant("x", training={"learning_rate": -1})
    with pytest.raises(MaskMatchError, match="no method"):
        Variant.of("magic")


def test_wrong_comparisons_are_refused_before_any_work(ran: list[str]) -> None:
    data = toy_splits()
    with pytest.raises(MaskMatchError, match="named twice"):
        compare(data, ["mask-matching", "mask-matching"])
    with pytest.raises(MaskMatchError, match="same name"):
        compare([data, data], ["mask-matching"])
    with pytest.raises(MaskMatchError, match="no method"):
        compare(data, [])
    with pytest.raises(MaskMatchError, match="no regime"):
        compare(data, ["mask-matching"], [])
    with pytest.raises(MaskMatchError, match="seeds is 0"):
        compare(data, ["mask-matching"], ["full"], 0)
    with pytest.raises(MaskMatchError, match="not among the methods"):
        compare(data, ["mask-matching"], reference="fine-tuning")
    with pytest.raises(MaskMatchError, match="without training"):
        compare(data, ["fine-tuning"], ["zero-shot"])
    with pytest.raises(MaskMatchError, match="no dev rows"):
        compare(replace(data, dev=None), ["mask-matching"], use_dev=True)
    with pytest.raises(MaskMatchError, match="fewer than two labels"):
        Splits.of("one", "topic", (["a", "b"], ["x", "x"]), (["a"], ["x"]))
    with pytest.raises(MaskMatchError, match="2 texts and 1 labels"):
        Splits.of("odd", "topic", (["a", "b"], ["x"]), (["a"], ["x"]))
    with pytest.raises(MaskMatchError, match="named twice"):
        parse_datasets("a,b,a")
    assert ran == []


def test_a_cell_that_fails_is_named(tiny: Callable[[str], Path]) -> None:
    variant = Variant("long", matcher={"max_length": 10_000})
    with pytest.raises(MaskMatchError, match="toy, long, zero-shot, seed 0: max_length is 10000"):
        compare(toy_splits(), [variant], ["zero-shot"], model=tiny("bert"))
