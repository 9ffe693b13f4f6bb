"""How good predictions are, in numbers: pure functions from label ids and probabilities to figures.

Label ids are whatever the user calls a label: strings, integers, tuples, even a mixture. They are compared by
equality only and never sorted, so no order among them is needed.

Functions whose names begin with `multi_label` take a collection of ids per text, the others one id per text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

BIN_COUNT = 10

# A softmax in half or single precision may end a little above 1; more than this is not a probability.
_ROUNDING = 1e-3


@dataclass(frozen=True)
class LabelScore:
    """How well one label was found.

    Attributes:
        label: The id of the label.
        precision: The share of its predictions that were right (0 where it was never predicted).
        recall: The share of its texts that were found (0 where no text has it).
        f1: The harmonic mean of the two.
        support: How many texts truly have this label.
        predicted: How many texts were given this label.
        correct: How many texts were given this label and truly have it.
    """

    label: Hashable
    precision: float
    recall: float
    f1: float
    support: int
    predicted: int
    correct: int

    @property
    def occurs(self) -> bool:
        """Whether the label is in the truth or in the predictions, so that its scores mean something."""
        return self.support > 0 or self.predicted > 0

    @property
    def errors(self) -> int:
        """How many times the label was missed or wrongly given."""
        return self.support + self.predicted - 2 * self.correct


@dataclass(frozen=True)
class ReliabilityBin:
    """The predictions whose confidence lies in [low, high); the last bin includes 1.

    Attributes:
        low: Where the bin begins.
        high: Where the bin ends.
        count: How many predictions are in it.
        mean_confidence: Their mean confidence, or None in an empty bin.
        accuracy: The share of them that were right, or None in an empty bin.
    """

    low: float
    high: float
    count: int
    mean_confidence: float | None
    accuracy: float | None


def accuracy(truth: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """The share of texts whose predicted label is the true one.

    Example:
        >>> accuracy(["refund", "refund", "card lost"], ["refund", "card lost", "card lost"])
        0.6666666666666666
    """
    _check_pairs(truth, predicted)
    return sum(true == guess for true, guess in zip(truth, predicted, strict=True)) / len(truth)


def macro_f1(truth: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """The mean F1 of the labels that occur in the truth or in the predictions, each counting the same.

    A label that is in neither has no F1, so it is left out of the mean rather than counted as 0.
    """
    return _mean_f1(label_scores(truth, predicted))


def micro_f1(truth: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """F1 over all decisions together; with one label per text this is the accuracy."""
    return pooled_f1(label_scores(truth, predicted))


def label_scores(
    truth: Sequence[Hashable], predicted: Sequence[Hashable], labels: Iterable[Hashable] = ()
) -> list[LabelScore]:
    """Precision, recall, F1 and counts of every label.

    Args:
        truth: The true label of each text.
        predicted: The predicted label of each text.
        labels: Labels that get a row in any case, and in this order; others follow in order of appearance.
    """
    _check_pairs(truth, predicted)
    positions = _positions(labels, truth, predicted)
    true = np.array([positions[label] for label in truth])
    guess = np.array([positions[label] for label in predicted])
    return _score_rows(true, guess, positions)


def confusion_counts(truth: Sequence[Hashable], predicted: Sequence[Hashable]) -> Counter[tuple[Hashable, Hashable]]:
    """How often each (true label, predicted label) occurs, right predictions included."""
    _check_pairs(truth, predicted)
    return Counter(zip(truth, predicted, strict=True))


def multi_label_accuracy(truth: Sequence[Collection[Hashable]], predicted: Sequence[Collection[Hashable]]) -> float:
    """The share of texts whose predicted labels are exactly the true ones (subset accuracy)."""
    _check_pairs(truth, predicted)
    exact = sum(set(true) == set(guess) for true, guess in zip(truth, predicted, strict=True))
    return exact / len(truth)


def multi_label_macro_f1(truth: Sequence[Collection[Hashable]], predicted: Sequence[Collection[Hashable]]) -> float:
    """The mean F1 of the labels that occur in the truth or in the predictions, each counting the same."""
    return _mean_f1(multi_label_scores(truth, predicted))


def multi_label_micro_f1(truth: Sequence[Collection[Hashable]], predicted: Sequence[Collection[Hashable]]) -> float:
    """F1 over all (text, label) decisions together, so that frequent labels count more."""
    return pooled_f1(multi_label_scores(truth, predicted))


def multi_label_scores(
    truth: Sequence[Collection[Hashable]],
    predicted: Sequence[Collection[Hashable]],
    labels: Iterable[Hashable] = (),
) -> list[LabelScore]:
    """Precision, recall, F1 and counts of every label, where a text has any number of them.

    Args:
        truth: The true labels of each text; an empty collection is a text without labels.
        predicted: The predicted labels of each text.
        labels: Labels that get a row in any case, and in this order; others follow in order of appearance.
    """
    _check_pairs(truth, predicted)
    positions = _positions(labels, *truth, *predicted)
    if not positions:
        return []
    return _score_rows(_indicators(truth, positions), _indicators(predicted, positions), positions)


def truth_matrix(truth: Sequence[Collection[Hashable]], labels: Iterable[Hashable]) -> NDArray[np.bool_]:
    """The true labels as a table of yes and no, (n, K) with columns in the order of `labels`.

    A true label that is not among `labels` has no column, so it is in no cell.
    """
    positions = _positions(labels)
    matrix = np.zeros((len(truth), len(positions)), dtype=np.bool_)
    for row, ids in enumerate(truth):
        matrix[row, [positions[label] for label in ids if label in positions]] = True
    return matrix


def reliability_bins(confidence: ArrayLike, correct: ArrayLike, bins: int = BIN_COUNT) -> list[ReliabilityBin]:
    """Compare how sure the model was with how often it was right, in bins of equal width over [0, 1].

    For one label per text, give the probability of each predicted label and whether it was the true one. For
    any number of labels per text, give the probability of every label for every text and whether it holds.

    Args:
        confidence: Probabilities, of any shape.
        correct: Yes or no for each of them, of the same shape.
        bins: How many bins to make.
    """
    sure = as_probabilities(confidence, "confidence").ravel()
    right = np.asarray(correct, dtype=np.float64).ravel()
    if sure.size == 0 or sure.size != right.size:
        raise MaskMatchError(
            f"Calibration needs one outcome for each confidence and at least one, "
            f"not {right.size} outcomes for {sure.size} confidences."
        )
    # Multiplied, not looked up among edges: 0.3 * 10 is exactly 3, but the third edge is a little above 0.3.
    place = np.minimum((sure * bins).astype(np.int64), bins - 1)
    counts = np.bincount(place, minlength=bins)
    sure_sums = np.bincount(place, weights=sure, minlength=bins)
    right_sums = np.bincount(place, weights=right, minlength=bins)
    return [
        ReliabilityBin(
            low=index / bins,
            high=(index + 1) / bins,
            count=int(count),
            mean_confidence=float(sure_sums[index] / count) if count else None,
            accuracy=float(right_sums[index] / count) if count else None,
        )
        for index, count in enumerate(counts)
    ]


def expected_calibration_error(bins: Sequence[ReliabilityBin]) -> float:
    """The mean distance between confidence and accuracy over the bins, each bin weighted by its count.

    0 is a model whose confidence can be read as the chance of being right.

    Example:
        >>> expected_calibration_error(reliability_bins([0.75, 0.75], [True, False]))
        0.25
    """
    total = sum(each.count for each in bins)
    if total == 0:
        raise MaskMatchError("A calibration error needs at least one prediction in its bins, not none.")
    gaps = (
        each.count * abs(each.mean_confidence - each.accuracy)
        for each in bins
        if each.mean_confidence is not None and each.accuracy is not None
    )
    return sum(gaps) / total


def best_threshold(truth: ArrayLike, probabilities: ArrayLike) -> float:
    """The threshold with the best micro-F1, where every label with `probability >= threshold` is given.

    Choose it on development data, never on the data that is reported. The answer is exact: every distinct
    probability is tried. Of several equally good ones it is the nearest to 0.5, of two as near the higher.

    Args:
        truth: Yes or no for each text and label, (n, K); `truth_matrix` makes it from label ids.
        probabilities: The probability of each label for each text, (n, K).

    Example:
        >>> best_threshold([[1, 0], [0, 1]], [[0.4, 0.1], [0.2, 0.3]])
        0.3
    """
    holds = np.asarray(truth)
    scores = as_probabilities(probabilities, "probabilities")
    if holds.shape != scores.shape or scores.size == 0:
        raise MaskMatchError(
            f"A threshold needs a truth table and probabilities of the same shape and not empty, "
            f"not {holds.shape} and {scores.shape}."
        )
    if not np.isin(holds, (0, 1)).all():
        raise MaskMatchError("A truth table holds only 0 and 1 (or False and True), one cell per text and label.")

    order = np.argsort(-scores, axis=None, kind="stable")
    candidates = scores.ravel()[order]
    found = np.cumsum(holds.ravel()[order].astype(np.int64))  # true positives if the list is cut after this place
    given = np.arange(1, found.size + 1)
    last_of_run = np.append(candidates[:-1] != candidates[1:], True)  # equal probabilities pass together
    micro = (2 * found / (given + found[-1]))[last_of_run]
    best = candidates[last_of_run][micro == micro.max()]  # from high to low, so argmin takes the higher of two
    return float(best[np.argmin(np.abs(best - 0.5))])


def pooled_f1(scores: Sequence[LabelScore]) -> float:
    """F1 over the decisions on some labels together."""
    decisions = sum(score.support + score.predicted for score in scores)
    return 2 * sum(score.correct for score in scores) / decisions if decisions else 0.0


def as_probabilities(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """The values as an array of numbers between 0 and 1, or an error that calls them `name`."""
    numbers = np.asarray(values, dtype=np.float64)
    if not np.all((numbers >= -_ROUNDING) & (numbers <= 1 + _ROUNDING)):  # False for NaN, too
        raise MaskMatchError(f"Every number in {name} must be a probability between 0 and 1.")
    return np.clip(numbers, 0.0, 1.0)


def _check_pairs(truth: Sequence[object], predicted: Sequence[object]) -> None:
    if len(truth) != len(predicted) or len(truth) == 0:
        raise MaskMatchError(
            f"Scoring needs one prediction for each true label and at least one, "
            f"not {len(predicted)} predictions for {len(truth)} true labels."
        )


def _positions(*groups: Iterable[Hashable]) -> dict[Hashable, int]:
    """Number the ids in order of appearance, because scikit-learn cannot compare ids of different kinds."""
    positions: dict[Hashable, int] = {}
    for group in groups:
        for label in group:
            positions.setdefault(label, len(positions))
    return positions


def _indicators(rows: Sequence[Collection[Hashable]], positions: dict[Hashable, int]) -> Any:
    """The rows of ids as a sparse (n, K + 1) matrix of 0 and 1, which stays small where labels are many."""
    from sklearn.preprocessing import MultiLabelBinarizer

    # One column more, always empty: scikit-learn does not take a matrix of one column for a multi-label one.
    binarizer = MultiLabelBinarizer(classes=np.arange(len(positions) + 1), sparse_output=True)
    return binarizer.fit_transform([[positions[label] for label in ids] for ids in rows])


def _score_rows(true: Any, guess: Any, positions: dict[Hashable, int]) -> list[LabelScore]:
    from sklearn.metrics import multilabel_confusion_matrix, precision_recall_fscore_support

    columns = np.arange(len(positions))
    precision, recall, f1, support = precision_recall_fscore_support(
        true, guess, labels=columns, average=None, zero_division=0.0
    )
    counts = multilabel_confusion_matrix(true, guess, labels=columns)  # (K, 2, 2): [[tn, fp], [fn, tp]]
    return [
        LabelScore(
            label=label,
            precision=float(precision[column]),
            recall=float(recall[column]),
            f1=float(f1[column]),
            support=int(support[column]),
            predicted=int(counts[column, :, 1].sum()),
            correct=int(counts[column, 1, 1]),
        )
        for label, column in positions.items()
    ]


def _mean_f1(scores: Sequence[LabelScore]) -> float:
    occurring = [score.f1 for score in scores if score.occurs]
    return sum(occurring) / len(occurring) if occurring else 0.0
