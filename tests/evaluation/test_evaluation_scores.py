"""Scores, thresholds and calibration: compared with scikit-learn and with cases worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support

from maskmatch.errors import MaskMatchError
from maskmatch.evaluation import (
    accuracy,
    best_threshold,
    confusion_counts,
    expected_calibration_error,
    label_scores,
    macro_f1,
    micro_f1,
    multi_label_accuracy,
    multi_label_macro_f1,
    multi_label_micro_f1,
    multi_label_scores,
    reliability_bins,
    truth_matrix,
)

AWKWARD_IDS = ["refund", 1, "1", ("head", 2), 2.5, frozenset({"a"}), False]
id_pairs = st.lists(st.tuples(st.sampled_from(AWKWARD_IDS), st.sampled_from(AWKWARD_IDS)), min_size=1, max_size=40)


def random_ids(seed: int, kinds: int, rows: int = 300) -> tuple[list[int], list[int]]:
    random = np.random.default_rng(seed)
    truth = random.integers(kinds, size=rows)
    predicted = np.where(random.random(rows) < 0.6, truth, random.integers(kinds + 1, size=rows))
    return truth.tolist(), predicted.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_single_label_scores_equal_scikit_learn(seed: int) -> None:
    truth, predicted = random_ids(seed, kinds=7)
    assert accuracy(truth, predicted) == pytest.approx(accuracy_score(truth, predicted))
    assert macro_f1(truth, predicted) == pytest.approx(f1_score(truth, predicted, average="macro", zero_division=0))
    assert micro_f1(truth, predicted) == pytest.approx(f1_score(truth, predicted, average="micro"))
    rows = label_scores(truth, predicted, labels=range(8))
    expected = precision_recall_fscore_support(truth, predicted, labels=range(8), zero_division=0)
    found = np.array([(row.precision, row.recall, row.f1, row.support) for row in rows]).T
    np.testing.assert_allclose(found, np.array(expected))


@pytest.mark.parametrize("seed", range(4))
def test_multi_label_scores_equal_scikit_learn(seed: int) -> None:
    random = np.random.default_rng(seed)
    true, guess = random.random((80, 6)) < 0.3, random.random((80, 6)) < 0.3
    truth = [np.flatnonzero(row).tolist() for row in true]
    predicted = [np.flatnonzero(row).tolist() for row in guess]
    assert multi_label_accuracy(truth, predicted) == pytest.approx(accuracy_score(true, guess))
    assert multi_label_macro_f1(truth, predicted) == pytest.approx(f1_score(true, guess, average="macro"))
    assert multi_label_micro_f1(truth, predicted) == pytest.approx(f1_score(true, guess, average="micro"))
    rows = multi_label_scores(truth, predicted, labels=range(6))
    found = np.array([(row.precision, row.recall, row.f1, row.support) for row in rows]).T
    np.testing.assert_allclose(found, np.array(precision_recall_fscore_support(true, guess)))
    assert [row.predicted for row in rows] == guess.sum(axis=0).tolist()
    assert [row.correct for row in rows] == (true & guess).sum(axis=0).tolist()
    np.testing.assert_array_equal(truth_matrix(truth, range(6)), true)


def test_scores_worked_by_hand() -> None:
    rows = label_scores(["a", "a", "a", "b"], ["a", "a", "b", "b"], labels=["b", "never"])
    assert [row.label for row in rows] == ["b", "never", "a"]
    b, never, a = rows
    assert (b.precision, b.recall, b.support, b.predicted, b.correct) == (0.5, 1.0, 1, 2, 1)
    assert (a.precision, a.recall, a.support, a.predicted, a.correct) == (1.0, pytest.approx(2 / 3), 3, 2, 2)
    assert b.f1 == pytest.approx(2 / 3)
    assert a.f1 == pytest.approx(0.8)
    assert (never.f1, never.occurs, never.errors) == (0.0, False, 0)
    assert (a.errors, b.errors) == (1, 1)


def test_macro_f1_ignores_labels_that_do_not_occur() -> None:
    # "c" is only predicted, so its F1 is 0: (2/3 + 1 + 0) / 3
    assert macro_f1(["a", "a", "b"], ["a", "c", "b"]) == pytest.approx((2 / 3 + 1) / 3)


def test_confusion_counts_include_correct_predictions() -> None:
    counts = confusion_counts(["a", "a", "b", 1], ["a", "b", "b", "1"])
    assert counts == {("a", "a"): 1, ("a", "b"): 1, ("b", "b"): 1, (1, "1"): 1}


@given(id_pairs)
@settings(max_examples=40, deadline=None)
def test_micro_f1_equals_accuracy_and_one_label_per_row_equals_single_label(
    pairs: list[tuple[object, object]],
) -> None:
    truth, predicted = [true for true, _ in pairs], [guess for _, guess in pairs]
    true_rows, predicted_rows = [[label] for label in truth], [[label] for label in predicted]
    assert micro_f1(truth, predicted) == pytest.approx(accuracy(truth, predicted))
    assert multi_label_accuracy(true_rows, predicted_rows) == accuracy(truth, predicted)
    assert multi_label_scores(true_rows, predicted_rows, truth) == label_scores(truth, predicted)


def test_texts_without_labels_can_be_correct() -> None:
    assert multi_label_accuracy([[], ["a"]], [[], []]) == 0.5
    assert multi_label_micro_f1([[]], [[]]) == 0.0
    assert multi_label_scores([[]], [[]]) == []


@pytest.mark.parametrize("score", [accuracy, macro_f1, micro_f1, confusion_counts, multi_label_accuracy])
def test_different_numbers_of_rows_raise(score: object) -> None:
    for truth, predicted in ([], []), (["a"], []):
        with pytest.raises(MaskMatchError, match="one prediction for each true label"):
            score(truth, predicted)  # type: ignore[operator]


def test_calibration_worked_by_hand() -> None:
    bins = reliability_bins([0.95, 1.0, 0.55, 0.05], [True, True, False, False])
    assert len(bins) == 10
    assert [each.count for each in bins] == [1, 0, 0, 0, 0, 1, 0, 0, 0, 2]
    assert (bins[9].mean_confidence, bins[9].accuracy) == (pytest.approx(0.975), 1.0)
    assert (bins[1].mean_confidence, bins[1].accuracy) == (None, None)
    # (2 * 0.025 + 0.55 + 0.05) / 4
    assert expected_calibration_error(bins) == pytest.approx(0.1625)


def test_confidence_on_an_edge_belongs_to_the_upper_bin() -> None:
    for tenth in range(10):
        bins = reliability_bins([tenth / 10], [True])
        assert bins[tenth].count == 1
        assert bins[tenth].low == tenth / 10


def test_calibrated_model_has_no_calibration_error() -> None:
    assert expected_calibration_error(reliability_bins([0.75] * 4, [1, 1, 1, 0])) == 0.0


@pytest.mark.parametrize("confidence", [[1.5], [-0.2], [float("nan")]])
def test_invalid_probabilities_raise(confidence: list[float]) -> None:
    with pytest.raises(MaskMatchError, match="between 0 and 1"):
        reliability_bins(confidence, [True])


def test_calibration_without_predictions_raises() -> None:
    with pytest.raises(MaskMatchError, match="at least one"):
        reliability_bins([], [])
    with pytest.raises(MaskMatchError, match="at least one"):
        expected_calibration_error([])


def test_single_precision_softmax_may_exceed_one() -> None:
    assert reliability_bins(np.array([1.0000001], dtype=np.float32), [True])[9].mean_confidence == 1.0


def test_best_threshold_worked_by_hand() -> None:
    assert best_threshold([[1, 0, 1]], [[0.9, 0.5, 0.3]]) == 0.3  # F1 0.8, against 2/3 from 0.9 and 0.5 from 0.5
    assert best_threshold([[0, 0]], [[0.1, 0.4]]) == 0.4  # no true label: all thresholds are equal
    assert best_threshold([[1], [1]], [[0.7], [0.7]]) == 0.7
    # F1 is 2/3 at 0.25 and at 0.75, which are equally near to 0.5: the higher one wins.
    assert best_threshold([[1, 0, 0, 1]], [[0.75, 0.6, 0.55, 0.25]]) == 0.75


@given(
    arrays(np.bool_, (6, 3)),
    arrays(np.float64, (6, 3), elements=st.integers(0, 20).map(lambda number: number / 20)),
)
@settings(max_examples=80, deadline=None)
def test_best_threshold_is_at_least_as_good_as_a_grid(truth: np.ndarray, probabilities: np.ndarray) -> None:
    def micro_f1_at(threshold: float) -> float:
        predicted = probabilities >= threshold
        total = truth.sum() + predicted.sum()
        return float(2 * (truth & predicted).sum() / total) if total else 0.0

    best = best_threshold(truth, probabilities)
    distinct = np.unique(probabilities)
    assert best in distinct
    assert all(micro_f1_at(best) >= micro_f1_at(threshold) for threshold in np.linspace(0, 1, 41))
    nearest = min(abs(threshold - 0.5) for threshold in distinct if micro_f1_at(threshold) == micro_f1_at(best))
    assert abs(best - 0.5) == nearest


def test_best_threshold_raises_for_invalid_arguments() -> None:
    with pytest.raises(MaskMatchError, match="same shape"):
        best_threshold([[1, 0]], [[0.5]])
    with pytest.raises(MaskMatchError, match="same shape"):
        best_threshold(np.zeros((0, 2)), np.zeros((0, 2)))
    with pytest.raises(MaskMatchError, match="only 0 and 1"):
        best_threshold([[2]], [[0.5]])
