"""Fit a calibration on rows that the model was not trained on: dev rows, rows held out, or rows of folds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.evaluation.scores import best_threshold
from maskmatch.labels.calibration import Calibration
from maskmatch.prediction.label_scorer import logsumexp, sigmoid

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

ADDED_OFFSET = 0.04
"""The offset in cosine of labels that are added after training: training has pulled texts towards the others.

On dev rows of three datasets, 0.02 to 0.03 is best for accuracy on all texts; a little more favours added labels."""

SPREAD = np.array([0.3, 0.15, 0.2])
"""The standard deviations of the prior: of the log temperature, the slope and the intercept.

With 10 to 40 rows, the accuracy of folds is off by 10 points, so the prior counts more."""

HARD_TASK, EASY_TASK = 2.0, 0.4
"""How the log of the expected temperature depends on the separability of the training rows."""

LOOSE = np.array([0.7, 0.15, 0.3])
"""The same for rows of the user's choice, about which nothing is expected."""

STARTS = tuple(np.linspace(-1.5, 4.0, 12).tolist())
"""The log temperatures from which the best is taken to start with."""

SUBSETS = (0.25, 0.5)
"""The parts of the labels, drawn at random, on which the effect of the number of labels is fitted."""

LEAST_LABELS = 8
"""With fewer labels, the effect of their number is not fitted."""

MOST_SCORES = 5_000_000
"""How many scores a fit uses at most."""

MOST_CONFORMITY = 2_000
"""How many probabilities of true labels are kept, to make sets of labels with a given coverage."""

ROWS_FOR_THRESHOLD = 20
"""With this many rows that have a label, its own best threshold counts as much as the one of all labels."""


@dataclass(frozen=True)
class HeldOut:
    """Scores of rows that the model was not trained on.

    Attributes:
        scores: (n, K), the logits of all labels, without calibration.
        targets: (n,), the positions of the true labels, -1 for a label that is not among them; or (n, K) of 0 and 1
            with several labels per text.
        source: Where the rows come from, as in :class:`Calibration`.
    """

    scores: NDArray[np.float32]
    targets: NDArray[Any]
    source: str

    def __len__(self) -> int:
        return len(self.targets)


def separability(vectors: NDArray[np.float32], owners: NDArray[np.int64]) -> float | None:
    """How often two texts of one label are more similar than two texts of different labels: 0.5 is chance, 1 always.

    None if there are no such pairs.

    >>> separability(np.eye(4, dtype=np.float32)[[0, 0, 1, 1]], np.array([0, 0, 1, 1]))
    1.0

    Args:
        vectors: (n, dim), texts before training.
        owners: (n,), the numbers of their labels.
    """
    from sklearn.metrics import roc_auc_score

    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    first, second = np.triu_indices(len(vectors), 1)
    same = owners[first] == owners[second]
    if same.all() or not same.any() or not np.isfinite(unit).all():
        return None
    return float(roc_auc_score(same, (unit @ unit.T)[first, second]))


def expected_temperature(rows: int, separable: float | None = None) -> float:
    """The temperature that a classifier needs after training on this many rows, on average over datasets.

    Few rows are learned by heart, so the scores of others are too far apart; the more so, the less alike the texts of a
    label are.

    >>> round(expected_temperature(20), 2), round(expected_temperature(2000), 2)
    (4.0, 1.3)
    >>> round(expected_temperature(20, 0.9), 2), round(expected_temperature(20, 0.5), 2)
    (2.9, 19.81)

    Args:
        rows: How many rows it was trained on.
        separable: The :func:`separability` of the rows; None: not known.
    """
    usual = 1 + 3 * math.sqrt(20 / max(1, rows))
    if separable is None:
        return usual
    return usual * math.exp(HARD_TASK * (2 * (1 - max(0.5, separable))) ** 2 - EASY_TASK)


def fit_calibration(
    held: HeldOut,
    labels: Sequence[Hashable],
    *,
    expected: float | None = None,
    loose: bool = False,
    added: float = 0.0,
    seed: int = 0,
) -> Calibration:
    """Fit a calibration to held-out rows, with one label per text.

    The log loss of the rows is minimised, with a prior: few rows change little.

    Args:
        held: The rows.
        labels: The labels.
        expected: The temperature that is expected without rows; None: nothing is known, so it counts little.
        loose: Whether it counts little in any case.
        added: The offset of labels that are added later.
        seed: The seed of draws of rows and labels.
    """
    known = held.targets >= 0
    scores, targets = held.scores[known].astype(np.float64), held.targets[known]
    rng, most = np.random.default_rng(seed), max(1, MOST_SCORES // max(1, len(labels)))
    if len(targets) > most:
        some = np.sort(rng.permutation(len(targets))[:most])
        scores, targets = scores[some], targets[some]
    mean, spread = np.array([math.log(expected or 1.0), 1.0, 0.0]), LOOSE if expected is None or loose else SPREAD

    def loss(x: NDArray[np.float64]) -> float:
        return log_loss(scores, targets, *x) + _penalty((x - mean) / spread)

    starts = [np.array([start, 1.0, 0.0]) for start in (mean[0], *STARTS)]
    found = minimise(loss, min(starts, key=loss))  # from afar, it would end with a flat curve at a wrong temperature
    fitted = Calibration(
        temperature=float(np.exp(found[0])),
        slope=float(max(0.05, found[1])),
        intercept=float(found[2]),
        labels=max(1, len(labels)),
        added=added,
        rows=len(targets),
        source=held.source,
    )
    if not len(targets):
        return fitted
    probabilities = _softmax(scores / fitted.temperature)
    if len(labels) >= LEAST_LABELS:
        fitted = replace(fitted, per_log_labels=_label_effect(scores, targets, fitted, rng))
    conformity = fitted.all_labels(probabilities.astype(np.float32))[np.arange(len(targets)), targets]
    return replace(fitted, conformity=tuple(sorted(conformity[:MOST_CONFORMITY].tolist())))


def fit_curve(held: HeldOut, labels: Sequence[Hashable], threshold: float | None = None) -> tuple[Calibration, float]:
    """Fit a calibration with several labels per text: the curve of all probabilities, and thresholds.

    Args:
        held: The rows.
        labels: The labels.
        threshold: The threshold of all labels without calibration; None: choose the one that fits the rows best.

    Returns:
        The calibration, with a threshold per label, and the threshold of labels without rows.
    """
    logits, truth = held.scores.astype(np.float64), held.targets.astype(bool)
    mean = np.array([1.0, 0.0])

    def loss(x: NDArray[np.float64]) -> float:
        values = x[0] * logits + x[1]
        return float(np.logaddexp(0, np.where(truth, -values, values)).sum()) + _penalty((x - mean) / 2)

    slope, intercept = minimise(loss, mean)
    curve = Calibration(
        slope=float(max(0.05, slope)),
        intercept=float(intercept),
        labels=max(1, len(labels)),
        rows=len(truth),
        source=held.source,
    )
    probabilities = curve.each_label(sigmoid(logits))
    if threshold is None:
        usual = best_threshold(truth, probabilities)
    else:
        usual = float(curve.each_label(np.array([threshold], np.float64))[0])
    own = {id_: _own_threshold(truth[:, place], probabilities[:, place], usual) for place, id_ in enumerate(labels)}
    better = _micro_f1(truth, probabilities >= np.array(list(own.values()))) > _micro_f1(truth, probabilities >= usual)
    return replace(curve, thresholds=own if better else {}), usual


def _micro_f1(truth: NDArray[np.bool_], given: NDArray[np.bool_]) -> float:
    both, total = int((truth & given).sum()), int(truth.sum()) + int(given.sum())
    return 2 * both / total if total else 0.0


def _own_threshold(truth: NDArray[np.bool_], probabilities: NDArray[Any], usual: float) -> float:
    """The threshold of one label: its own best one, shrunk towards that of all labels if few rows have the label."""
    count = int(truth.sum())
    if not count:
        return round(usual, 6)
    own = best_threshold(truth[:, None], probabilities[:, None])
    weight = count / (count + ROWS_FOR_THRESHOLD)
    return round(float(weight * own + (1 - weight) * usual), 6)


def _label_effect(
    scores: NDArray[np.float64], targets: NDArray[Any], fitted: Calibration, rng: np.random.Generator
) -> float:
    """By how much the intercept rises per unit of the log of the number of labels, over random parts of the labels."""
    parts = []
    for share in SUBSETS:
        for _ in range(4):
            kept = np.sort(rng.permutation(scores.shape[1])[: max(2, round(share * scores.shape[1]))])
            rows = np.isin(targets, kept)
            if rows.any():
                parts.append((scores[rows][:, kept], np.searchsorted(kept, targets[rows])))
    if not parts:
        return 0.0

    def loss(x: NDArray[np.float64]) -> float:
        total = 0.0
        for some, own in parts:
            shift = fitted.intercept + x[0] * math.log(some.shape[1] / fitted.labels)
            total += log_loss(some, own, math.log(fitted.temperature), fitted.slope, shift) / 4
        return total + _penalty(x / 0.2)

    return float(minimise(loss, np.zeros(1))[0])


def log_loss(
    scores: NDArray[np.float64], targets: NDArray[Any], log_temperature: float, slope: float, intercept: float
) -> float:
    """The log loss of rows, summed: of whether the best label is right, and if not, of the true one among the rest."""
    if not len(targets):
        return 0.0
    logits = scores / math.exp(min(8.0, max(-8.0, log_temperature)))
    best = logits.argmax(axis=1)
    rows = np.arange(len(targets))
    top = logits[rows, best]
    others = logits.copy()
    others[rows, best] = -np.inf
    rest = logsumexp(others) if scores.shape[1] > 1 else np.full(len(rows), -np.inf)
    odds = slope * np.clip(top - rest, -16, 16) + intercept
    right = best == targets
    wrong = np.logaddexp(0, odds) - (logits[rows, targets] - rest)
    return float(np.where(right, np.logaddexp(0, -odds), wrong).sum())


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.exp(logits - logsumexp(logits)[:, None]))


def _penalty(deviations: NDArray[np.float64]) -> float:
    return 0.5 * float(np.square(deviations).sum())


def minimise(loss: Any, start: NDArray[np.float64]) -> NDArray[np.float64]:
    """The point where a function of a few numbers is least."""
    from scipy.optimize import minimize

    found = minimize(loss, start, method="Nelder-Mead", options={"maxiter": 400, "xatol": 1e-3, "fatol": 1e-3})
    return np.asarray(found.x)
