"""Confidence intervals: they cover, they are the same each time, and they are shown."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from maskmatch.evaluation import evaluate_predictions, wilson
from maskmatch.evaluation.intervals import _resampled_f1
from maskmatch.evaluation.scores import multi_label_macro_f1, multi_label_micro_f1

PAIRS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=30)


@given(count=st.integers(1, 300), data=st.data())
def test_wilson_is_that_of_scipy(count: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, count))
    theirs = binomtest(correct, count).proportion_ci(0.95, "wilson")
    ours = wilson(correct, count)
    assert ours.low == pytest.approx(theirs.low, abs=1e-9)
    assert ours.high == pytest.approx(theirs.high, abs=1e-9)


def test_resampled_f1_is_that_of_drawn_rows() -> None:
    """The mean and the spread of figures from counts are those of rows that are really drawn."""
    draw = np.random.default_rng(3)
    truth = [[str(label)] for label in draw.integers(4, size=80)]
    predicted = [own if draw.random() < 0.6 else ["0", "1"] for own in truth]
    for (figure, ours), score in zip(
        _resampled_f1(truth, predicted), (multi_label_macro_f1, multi_label_micro_f1), strict=True
    ):
        assert figure == pytest.approx(score(truth, predicted))
        drawn = []
        for _ in range(200):
            rows = draw.integers(80, size=80)
            drawn.append(score([truth[row] for row in rows], [predicted[row] for row in rows]))
        assert float(np.mean(ours)) == pytest.approx(float(np.mean(drawn)), abs=0.02)
        assert float(np.std(ours)) == pytest.approx(float(np.std(drawn)), rel=0.25)


@given(pairs=PAIRS)
def test_figures_are_in_their_intervals_each_time_the_same(pairs: list[tuple[str, str]]) -> None:
    truth, predicted = zip(*pairs, strict=True)
    first, second = (
        evaluate_predictions(["x"] * len(pairs), truth, predicted, labels="abc", metric="accuracy") for _ in range(2)
    )
    assert first.intervals == second.intervals
    assert first.intervals["accuracy"].low <= first.accuracy <= first.intervals["accuracy"].high
    assert first.intervals["score"] == first.intervals["accuracy"] == first.intervals["micro_f1"]
    assert set(first.intervals) - {"macro_f1"} == {"accuracy", "micro_f1", "score"}


def made_rows(labels: int, rows: int, draw: np.random.Generator) -> tuple[list[str], list[str]]:
    """Rows of which a classifier gets four of five right, or by chance."""
    truth = draw.integers(labels, size=rows)
    predicted = np.where(draw.random(rows) < 0.8, truth, draw.integers(labels, size=rows))
    return [str(label) for label in truth], [str(label) for label in predicted]


@pytest.mark.parametrize(("labels", "rows"), [(30, 200), (4, 100)])
def test_the_interval_of_macro_f1_covers_that_of_all_texts(labels: int, rows: int) -> None:
    draw = np.random.default_rng(5)
    names = [str(label) for label in range(labels)]
    truth, predicted = made_rows(labels, 100_000, draw)
    real = evaluate_predictions(["x"] * 100_000, truth, predicted, labels=names).macro_f1
    covered = 0
    for _ in range(30):
        truth, predicted = made_rows(labels, rows, draw)
        interval = evaluate_predictions(["x"] * rows, truth, predicted, labels=names).intervals["macro_f1"]
        covered += interval.low <= real <= interval.high
    assert covered >= 26


def test_macro_f1_has_no_interval_where_it_would_say_nothing() -> None:
    names = [str(label) for label in range(40)]
    truth, predicted = made_rows(40, 80, np.random.default_rng(5))
    assert "macro_f1" not in evaluate_predictions(["x"] * 80, truth, predicted, labels=names).intervals
    right = evaluate_predictions(["x"] * 9, ["a", "b", "c"] * 3, ["a", "b", "c"] * 3, labels="abc")
    assert "macro_f1" not in right.intervals
    assert right.intervals["accuracy"].low < 0.8


def test_other_metrics_several_labels_and_abstaining() -> None:
    texts, truth = ["x"] * 20, ["favor", "against", "none", "favor"] * 5
    predicted = ["favor", "against", "favor", "none"] * 5
    report = evaluate_predictions(
        texts, truth, predicted, labels=["favor", "against", "none"], metric="stance-f1",
        confidence=np.linspace(0.1, 1, 20), abstain=0.5,
    )  # fmt: skip
    interval = report.intervals["score"]
    assert interval.low <= report.score <= interval.high
    assert report.answered is not None
    answers = report.intervals["answered_accuracy"]
    assert answers.low <= report.answered.accuracy <= answers.high
    several = evaluate_predictions(
        texts, [["favor", "none"], []] * 10, [["favor"], ["none"]] * 10, labels=["favor", "none"], multi_label=True
    )
    assert several.intervals["micro_f1"].method == "bootstrap"
    assert several.intervals["score"] == several.intervals["micro_f1"]


def test_they_are_shown_in_every_form() -> None:
    report = evaluate_predictions(["x"] * 4, ["a", "a", "b", "b"], ["a", "a", "b", "a"], labels=["a", "b"])
    assert "accuracy                    0.750, 95% interval 0.301 to 0.954" in str(report)
    assert report.to_dict()["intervals"]["accuracy"] == {
        "low": pytest.approx(0.3006, abs=1e-3),
        "high": pytest.approx(0.9544, abs=1e-3),
        "method": "wilson",
        "level": 0.95,
    }
    assert "95% interval 0.301 to 0.954" in report.to_html()
