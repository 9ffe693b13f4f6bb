"""Calibration: whether a model is right as often as its confidence says. Reliability diagram and ECE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.evaluation.scores import truth_matrix
from maskmatch.evaluation.validation import check_probabilities

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from maskmatch.evaluation.validation import LabelIds

BIN_COUNT = 10


@dataclass(frozen=True)
class ReliabilityBin:
    """The predictions with a confidence in [low, high); the last bin includes 1.

    Attributes:
        low: The lower edge of the bin.
        high: The upper edge of the bin.
        count: The number of predictions in the bin.
        mean_confidence: Their mean confidence, or None for an empty bin.
        accuracy: The fraction of them that is correct, or None for an empty bin.
    """

    low: float
    high: float
    count: int
    mean_confidence: float | None
    accuracy: float | None


def reliability_bins(confidence: ArrayLike, correct: ArrayLike, bins: int = BIN_COUNT) -> list[ReliabilityBin]:
    """Compare confidence with accuracy, in bins of equal width over [0, 1]: the data of a reliability diagram.

    With one label per text, pass the probability of each predicted label, and whether it is the true one. With any
    number of labels per text, pass the probability of every label for every text, and whether the text has the label.

    Args:
        confidence: Probabilities, of any shape.
        correct: A boolean per probability, of the same shape.
        bins: The number of bins.
    """
    probabilities = check_probabilities(confidence, "confidence").ravel()
    outcomes = np.asarray(correct, dtype=np.float64).ravel()
    if probabilities.size == 0 or probabilities.size != outcomes.size:
        raise MaskMatchError(
            f"Calibration needs one outcome per confidence, and at least one, "
            f"not {outcomes.size} outcomes for {probabilities.size} confidences."
        )
    # A product instead of a search among edges: 0.3 * 10 is exactly 3, but the edge 3 / 10 is slightly above 0.3.
    bin_of = np.minimum((probabilities * bins).astype(np.int64), bins - 1)
    counts = np.bincount(bin_of, minlength=bins)
    confidence_sums = np.bincount(bin_of, weights=probabilities, minlength=bins)
    correct_sums = np.bincount(bin_of, weights=outcomes, minlength=bins)
    return [
        ReliabilityBin(
            low=index / bins,
            high=(index + 1) / bins,
            count=int(count),
            mean_confidence=float(confidence_sums[index] / count) if count else None,
            accuracy=float(correct_sums[index] / count) if count else None,
        )
        for index, count in enumerate(counts)
    ]


def expected_calibration_error(bins: Sequence[ReliabilityBin]) -> float:
    """The mean absolute difference between confidence and accuracy over the bins, weighted by their counts (ECE).

    At 0, the confidence of a prediction is the probability that it is correct.

    Example:
        >>> expected_calibration_error(reliability_bins([0.75, 0.75], [True, False]))
        0.25
    """
    total = sum(each.count for each in bins)
    if total == 0:
        raise MaskMatchError("The expected calibration error needs at least one prediction; all bins are empty.")
    gaps = (
        each.count * abs(each.mean_confidence - each.accuracy)
        for each in bins
        if each.mean_confidence is not None and each.accuracy is not None
    )
    return sum(gaps) / total


def calibration_bins(
    truth: Sequence[LabelIds],
    predicted: Sequence[LabelIds],
    known: Mapping[Hashable, None],
    *,
    confidence: ArrayLike | None,
    probabilities: ArrayLike | None,
    multi_label: bool,
) -> tuple[ReliabilityBin, ...]:
    """The reliability bins of an evaluation; empty if it has no confidence or probabilities.

    Args:
        truth: The true label ids of each text.
        predicted: The predicted label ids of each text.
        known: The model's labels.
        confidence: The probability of each predicted label, (n,); only with one label per text.
        probabilities: The probability of every label, (n, K); only with `multi_label`.
        multi_label: Whether a text has any number of labels.
    """
    if multi_label:
        return _multi_label_bins(truth, probabilities, confidence, known)
    return _single_label_bins(truth, predicted, confidence, probabilities)


def _single_label_bins(
    truth: Sequence[LabelIds],
    predicted: Sequence[LabelIds],
    confidence: ArrayLike | None,
    probabilities: ArrayLike | None,
) -> tuple[ReliabilityBin, ...]:
    """One label per text: is the predicted label correct as often as its confidence says?"""
    if probabilities is not None:
        raise MaskMatchError(
            "Probabilities of all labels are only for multi_label=True; with one label per text, "
            "give the confidence of the predicted labels."
        )
    if confidence is None:
        return ()
    if np.shape(confidence) != (len(truth),):
        raise MaskMatchError(
            f"The confidence needs one number for each of the {len(truth)} texts, not the shape {np.shape(confidence)}."
        )
    correct = [true == guess for true, guess in zip(truth, predicted, strict=True)]
    return tuple(reliability_bins(confidence, correct))


def _multi_label_bins(
    truth: Sequence[LabelIds],
    probabilities: ArrayLike | None,
    confidence: ArrayLike | None,
    known: Mapping[Hashable, None],
) -> tuple[ReliabilityBin, ...]:
    """Any number of labels per text: does a text have a label as often as its probability says?"""
    if confidence is not None:
        raise MaskMatchError(
            "The confidence is only for one label per text; with multi_label=True, give the probabilities of all "
            "labels."
        )
    if probabilities is None:
        return ()
    shape = (len(truth), len(known))
    if np.shape(probabilities) != shape:
        raise MaskMatchError(
            f"The probabilities need a row for each text and a column for each label, {shape}, "
            f"not the shape {np.shape(probabilities)}."
        )
    return tuple(reliability_bins(probabilities, truth_matrix(truth, known)))
