"""Selective prediction: accuracy on the texts that are answered, if the least confident ones are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maskmatch.errors import MaskMatchError, packages_needed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

LEVELS = 20
"""How many thresholds may be tried: those that answer a twentieth, two twentieths, … of the dev texts."""

STARTS = 3
"""From how many of them a search begins. Each goes on to more answers as long as the bound holds."""

POINTS = 100
"""How many points a curve has at most."""


@dataclass(frozen=True)
class SelectivePoint:
    """The most confident answers.

    Attributes:
        coverage: The share of texts that are answered.
        accuracy: The share of these that is right.
        threshold: The least probability of an answer.
    """

    coverage: float
    accuracy: float
    threshold: float


@dataclass(frozen=True)
class Abstention:
    """From which probability on a classifier answers, so that it is right as often as it should be.

    Attributes:
        threshold: The least probability of an answer.
        right: The target accuracy of the answers.
        confidence: The confidence level of the bound.
        rows: How many dev texts there were.
        coverage: The share of them that is answered.
        accuracy: The share of the answers that is right.
        bound: The lower bound of that share, with this confidence.
    """

    threshold: float
    right: float
    confidence: float
    rows: int
    coverage: float
    accuracy: float
    bound: float

    def __str__(self) -> str:
        return (
            f"It answers from a probability of {self.threshold:.6f} on: {self.coverage:.1%} of {self.rows:,} dev "
            f"texts, of which {self.accuracy:.1%} are right (at least {self.bound:.1%} with a confidence of "
            f"{self.confidence:.0%})."
        )


def risk_coverage(confidence: ArrayLike, correct: ArrayLike) -> tuple[SelectivePoint, ...]:
    """Accuracy by coverage, from the most confident answers to all of them: at most 100 points.

    >>> [(point.coverage, point.accuracy) for point in risk_coverage([0.9, 0.8, 0.4], [True, True, False])]
    [(0.3333, 1.0), (0.6667, 1.0), (1.0, 0.6667)]
    """
    values, right = np.asarray(confidence, np.float64), np.asarray(correct, np.float64)
    order = np.argsort(-values, kind="stable")
    values, accuracies = values[order], np.cumsum(right[order]) / np.arange(1, len(right) + 1)
    last = np.append(values[1:] != values[:-1], True)  # texts of the same confidence are answered together
    ends = np.flatnonzero(last)
    if len(ends) > POINTS:
        ends = ends[np.unique(np.linspace(0, len(ends) - 1, POINTS).astype(np.int64))]
    return tuple(
        SelectivePoint(
            round((end + 1) / len(values), 4), round(float(accuracies[end]), 4), round(float(values[end]), 6)
        )
        for end in ends.tolist()
    )


def answered_point(confidence: ArrayLike, correct: ArrayLike, abstain: float) -> SelectivePoint | None:
    """The answers from a confidence on; None if it is 0, so that all texts are answered, or if none are."""
    answered = np.asarray(confidence, np.float64) >= abstain
    if abstain <= 0 or not answered.any():
        return None
    accuracy = float(np.asarray(correct, np.float64)[answered].mean())
    return SelectivePoint(round(float(answered.mean()), 4), round(accuracy, 4), abstain)


def choose_abstention(
    confidence: ArrayLike, correct: ArrayLike, right: float = 0.95, level: float = 0.95
) -> Abstention:
    """The lowest threshold from which on answers are right this often, with this confidence.

    Thresholds are tested one after the other, from few answers to more, until one fails (fixed-sequence testing); this
    begins at several places, each with its share of the error. A test is passed if the lower bound of Clopper and
    Pearson reaches the target. The bound holds for texts like the dev texts: the same mixture, the same labels.

    Args:
        confidence: (n,), the probability of the predicted label of each dev text.
        correct: (n,), whether it is right.
        right: The share of answers that should be right.
        level: With what confidence.
    """
    with packages_needed():
        from scipy.stats import beta

    for name, value in (("right", right), ("confidence", level)):
        if not 0 < value < 1:
            raise MaskMatchError(f"{name} is {value!r}; it must be between 0 and 1.")
    values, outcomes = np.asarray(confidence, np.float64), np.asarray(correct, bool)
    if not len(values):
        raise MaskMatchError("There are no dev texts; give at least one.")
    if not np.isfinite(values).all():
        raise MaskMatchError("Some confidence values are NaN or inf.")
    error = (1 - level) / STARTS
    shares = np.linspace(1 / LEVELS, 1, LEVELS)
    thresholds = list(dict.fromkeys(np.quantile(values, 1 - shares, method="lower").tolist()))
    # With fewer answers than this, even perfect ones could not pass.
    least = np.log(error) / np.log(right)
    tested = [each for each in thresholds if (values >= each).sum() >= least]
    found: Abstention | None = None
    for start in sorted({len(tested) * number // STARTS for number in range(STARTS)}):
        for threshold in tested[start:]:
            answered = values >= threshold
            count, good = int(answered.sum()), int(outcomes[answered].sum())
            bound = float(beta.ppf(error, good, count - good + 1)) if good else 0.0
            if bound < right:
                break
            if found is None or threshold < found.threshold:
                shown = (round(value, 4) for value in (count / len(values), good / count, bound))
                found = Abstention(threshold, right, level, len(values), *shown)
    target = f"{100 * right:g}%"
    if not tested:
        raise MaskMatchError(
            f"On {len(values):,} dev texts no threshold can be shown to be right in {target} of its answers: it takes "
            f"at least {int(np.ceil(least)):,} answers, all of them right; give more dev texts, or a lower share."
        )
    if found is None:
        most = values >= tested[0]
        raise MaskMatchError(
            f"On {len(values):,} dev texts no threshold is right in {target} of its answers with a confidence of "
            f"{100 * level:g}%: of the {int(most.sum()):,} most confident answers {outcomes[most].mean():.1%} are "
            "right; give more dev texts, or a lower share."
        )
    return found
