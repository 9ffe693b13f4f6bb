"""Scores of predictions: accuracy, precision, recall, F1, confusion counts and the best threshold.

All functions are pure. Label ids may be any hashable values, even of mixed types: strings, integers, tuples. They are
only compared for equality and never sorted.

Functions whose names begin with `multi_label` take a collection of ids per text, the others one id per text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError, packages_needed
from maskmatch.evaluation.validation import check_probabilities

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class LabelScore:
    """Precision, recall and F1 of one label.

    Attributes:
        label: The label id.
        precision: The fraction of its predictions that are correct (0 if it is never predicted).
        recall: The fraction of its texts that are predicted as such (0 if no text has it).
        f1: The harmonic mean of precision and recall.
        support: The number of texts with this true label.
        predicted: The number of texts with this predicted label.
        correct: The number of true positives.
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
        """Whether the label occurs in the truth or in the predictions; if not, its scores are undefined."""
        return self.support > 0 or self.predicted > 0

    @property
    def errors(self) -> int:
        """The number of false negatives and false positives."""
        return self.support + self.predicted - 2 * self.correct


def accuracy(truth: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """The fraction of texts whose predicted label is the true one.

    Example:
        >>> accuracy(["refund", "refund", "card lost"], ["refund", "card lost", "card lost"])
        0.6666666666666666
    """
    _check_pairs(truth, predicted)
    return sum(true == guess for true, guess in zip(truth, predicted, strict=True)) / len(truth)


def macro_f1(truth: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """Macro-F1: the unweighted mean of the labels' F1.

    A label that occurs neither in the truth nor in the predictions has no F1. It is left out of the mean.
    """
    return _mean_f1(label_scores(truth, predicted))


def micro_f1(truth: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """Micro-F1: the F1 over all predictions. With one label per text it equals the accuracy."""
    return pooled_f1(label_scores(truth, predicted))


def label_scores(
    truth: Sequence[Hashable], predicted: Sequence[Hashable], labels: Iterable[Hashable] = ()
) -> list[LabelScore]:
    """Precision, recall, F1 and counts per label.

    Args:
        truth: The true label of each text.
        predicted: The predicted label of each text.
        labels: Labels that come first in the result, in this order, even if they do not occur. Other labels follow in
            order of appearance.
    """
    _check_pairs(truth, predicted)
    positions = _positions(labels, truth, predicted)
    true = np.array([positions[label] for label in truth])
    guess = np.array([positions[label] for label in predicted])
    return _scores_from(true, guess, positions)


def confusion_counts(truth: Sequence[Hashable], predicted: Sequence[Hashable]) -> Counter[tuple[Hashable, Hashable]]:
    """The count of each (true label, predicted label): the cells of the confusion matrix, diagonal included."""
    _check_pairs(truth, predicted)
    return Counter(zip(truth, predicted, strict=True))


def multi_label_accuracy(truth: Sequence[Collection[Hashable]], predicted: Sequence[Collection[Hashable]]) -> float:
    """Subset accuracy: the fraction of texts whose predicted labels are exactly the true ones."""
    _check_pairs(truth, predicted)
    exact = sum(set(true) == set(guess) for true, guess in zip(truth, predicted, strict=True))
    return exact / len(truth)


def multi_label_macro_f1(truth: Sequence[Collection[Hashable]], predicted: Sequence[Collection[Hashable]]) -> float:
    """Macro-F1: the unweighted mean F1 of the labels that occur in the truth or in the predictions."""
    return _mean_f1(multi_label_scores(truth, predicted))


def multi_label_micro_f1(truth: Sequence[Collection[Hashable]], predicted: Sequence[Collection[Hashable]]) -> float:
    """Micro-F1: the F1 over all (text, label) decisions, so that frequent labels weigh more."""
    return pooled_f1(multi_label_scores(truth, predicted))


def multi_label_scores(
    truth: Sequence[Collection[Hashable]],
    predicted: Sequence[Collection[Hashable]],
    labels: Iterable[Hashable] = (),
) -> list[LabelScore]:
    """Precision, recall, F1 and counts per label, if a text may have any number of labels.

    Args:
        truth: The true labels of each text; an empty collection for a text without labels.
        predicted: The predicted labels of each text.
        labels: Labels that come first in the result, in this order, even if they do not occur. Other labels follow in
            order of appearance.
    """
    _check_pairs(truth, predicted)
    positions = _positions(labels, *truth, *predicted)
    if not positions:
        return []
    return _scores_from(_indicator_matrix(truth, positions), _indicator_matrix(predicted, positions), positions)


def truth_matrix(truth: Sequence[Collection[Hashable]], labels: Iterable[Hashable]) -> NDArray[np.bool_]:
    """The true labels as a boolean matrix, (n, K), with columns in the order of `labels`.

    True labels that are not among `labels` have no column and are ignored.
    """
    positions = _positions(labels)
    matrix = np.zeros((len(truth), len(positions)), dtype=np.bool_)
    for row, ids in enumerate(truth):
        matrix[row, [positions[label] for label in ids if label in positions]] = True
    return matrix


def best_threshold(truth: ArrayLike, probabilities: ArrayLike) -> float:
    """The threshold with the best micro-F1, if every label with `probability >= threshold` is predicted.

    Choose it on dev data, never on the test data. The search is exact: it tries every distinct probability. Ties go to
    the threshold nearest to 0.5, then to the higher one.

    Args:
        truth: A boolean per text and label, (n, K); `truth_matrix` converts label ids.
        probabilities: The probability of each label for each text, (n, K).

    Example:
        >>> best_threshold([[1, 0], [0, 1]], [[0.4, 0.1], [0.2, 0.3]])
        0.3
    """
    matrix = np.asarray(truth)
    scores = check_probabilities(probabilities, "probabilities")
    if matrix.shape != scores.shape or scores.size == 0:
        raise MaskMatchError(
            f"A threshold needs a truth matrix and probabilities of the same shape, not empty, "
            f"not {matrix.shape} and {scores.shape}."
        )
    if not np.isin(matrix, (0, 1)).all():
        raise MaskMatchError("A truth matrix has only 0 and 1 (or False and True), one cell per text and label.")

    order = np.argsort(-scores, axis=None, kind="stable")
    candidates = scores.ravel()[order]
    # True positives and predictions if the threshold is the probability at this position.
    true_positives = np.cumsum(matrix.ravel()[order].astype(np.int64))
    predicted = np.arange(1, true_positives.size + 1)
    last_of_ties = np.append(candidates[:-1] != candidates[1:], True)  # equal probabilities pass together
    f1 = (2 * true_positives / (predicted + true_positives[-1]))[last_of_ties]
    best = candidates[last_of_ties][f1 == f1.max()]  # descending, so argmin returns the higher of two
    return float(best[np.argmin(np.abs(best - 0.5))])


def pooled_f1(scores: Sequence[LabelScore]) -> float:
    """Micro-F1 from the counts of some labels."""
    total = sum(score.support + score.predicted for score in scores)
    return 2 * sum(score.correct for score in scores) / total if total else 0.0


def _check_pairs(truth: Sequence[object], predicted: Sequence[object]) -> None:
    if len(truth) != len(predicted) or len(truth) == 0:
        raise MaskMatchError(
            f"Scoring needs one prediction for each true label, and at least one, "
            f"not {len(predicted)} predictions for {len(truth)} true labels."
        )


def _positions(*groups: Iterable[Hashable]) -> dict[Hashable, int]:
    """Number the ids in order of appearance, because scikit-learn cannot sort ids of mixed types."""
    positions: dict[Hashable, int] = {}
    for group in groups:
        for label in group:
            positions.setdefault(label, len(positions))
    return positions


def _indicator_matrix(rows: Sequence[Collection[Hashable]], positions: dict[Hashable, int]) -> Any:
    """The label ids as a sparse binary matrix, (n, K + 1), which stays small even with many labels."""
    with packages_needed():
        from sklearn.preprocessing import MultiLabelBinarizer

    # One extra column, always empty, because scikit-learn does not treat a single column as multi-label.
    binarizer = MultiLabelBinarizer(classes=np.arange(len(positions) + 1), sparse_output=True)
    return binarizer.fit_transform([[positions[label] for label in ids] for ids in rows])


def _scores_from(true: Any, guess: Any, positions: dict[Hashable, int]) -> list[LabelScore]:
    with packages_needed():
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
