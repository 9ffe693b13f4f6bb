"""Confidence intervals of the figures of a report: how much they would vary with other texts of the same kind."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Sequence

    from numpy.typing import NDArray

    from maskmatch.evaluation.metrics import MetricResult, Names, Rows

LEVEL = 0.95
RESAMPLES, SEED = 1000, 0

FEW_RESAMPLES, MANY_ROWS = 200, 5000
"""With more different rows than this, figures are resampled less often; a metric that is computed row by row is always
resampled less often, and not at all with more rows."""

ROWS_PER_LABEL = 5
"""With fewer texts per label on average, macro-F1 has no interval: resampled, it says too little about other texts."""

CELLS_AT_ONCE = 4_000_000
"""How many counts are drawn at once: memory stays bounded with many rows."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval.

    Attributes:
        low: Its lower end.
        high: Its upper end.
        level: The confidence level.
        method: How it was computed: "wilson" or "bootstrap".
    """

    low: float
    high: float
    method: str
    level: float = LEVEL

    def __str__(self) -> str:
        return f"{100 * self.level:g}% interval {self.low:.3f} to {self.high:.3f}"


def wilson(correct: int, count: int, level: float = LEVEL) -> Interval:
    """The interval of Wilson for a share: it holds with few rows, and for shares near 0 or 1.

    >>> print(wilson(8, 10))
    95% interval 0.490 to 0.943

    Args:
        correct: How many are right.
        count: Of how many; at least one.
        level: The confidence level.
    """
    from scipy.stats import norm

    z = float(norm.ppf((1 + level) / 2))
    share, grown = correct / count, 1 + z * z / count
    middle = (share + z * z / (2 * count)) / grown
    half = z / grown * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    low = 0.0 if correct == 0 else max(0.0, middle - half)
    return Interval(low, 1.0 if correct == count else min(1.0, middle + half), "wilson", level)


def intervals_of(
    truth: Rows, predicted: Rows, names: Names, result: MetricResult, *, several: bool
) -> dict[str, Interval]:
    """The intervals of the headline figures, by their names in the report.

    The accuracy has the interval of Wilson. The others are resampled: rows are drawn with replacement, with a fixed
    seed, and the interval is that of the basic bootstrap, which corrects that resampled macro-F1 is too low with many
    labels. A figure has none if all resampled figures are the same, as with rows that are all right; macro-F1 with too
    few rows per label; and a metric of the task that is none of these with too many rows.

    Args:
        truth: The true labels of each text.
        predicted: The predicted labels of each text.
        names: The names of the labels.
        result: The score.
        several: Whether a text may have several labels.
    """
    right = sum(set(true) == set(guess) for true, guess in zip(truth, predicted, strict=True))
    accuracy = wilson(right, len(truth))
    intervals: dict[str, Interval | None] = {"accuracy": accuracy, "micro_f1": accuracy}
    macro, micro = _resampled_f1(truth, predicted)
    labels = len({label for row in truth for label in row})
    intervals["macro_f1"] = _basic(*macro) if sum(map(len, truth)) >= ROWS_PER_LABEL * labels else None
    if several:
        intervals["micro_f1"] = _basic(*micro)
    known = {"accuracy": "accuracy", "macro-f1": "macro_f1", "micro-f1": "micro_f1"}
    name = result.metric.name
    if name in known:
        intervals["score"] = intervals[known[name]]
    elif len(truth) <= MANY_ROWS:
        values = _resampled(truth, predicted, lambda t, p: result.metric.score(t, p, names))
        intervals["score"] = _basic(result.metric.score(truth, predicted, names), values)
    return {name: interval for name, interval in intervals.items() if interval is not None}


def _basic(figure: float, resampled: NDArray[np.float64]) -> Interval | None:
    """The interval of the basic bootstrap; None if the resampled figures are all the same."""
    if np.ptp(resampled) < 1e-12:
        return None
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    least, most = (float(min(1.0, 2 * figure - end)) for end in (high, low))
    return Interval(max(0.0, least) if figure >= 0 else least, most, "bootstrap")


def _resampled(truth: Rows, predicted: Rows, score: Callable[[Any, Any], float]) -> NDArray[np.float64]:
    """A score of rows drawn with replacement, many times."""
    draw = np.random.default_rng(SEED)
    found = []
    for _ in range(FEW_RESAMPLES):
        rows = draw.integers(len(truth), size=len(truth)).tolist()
        found.append(score([truth[row] for row in rows], [predicted[row] for row in rows]))
    return np.array(found)


def _resampled_f1(
    truth: Rows, predicted: Rows
) -> tuple[tuple[float, NDArray[np.float64]], tuple[float, NDArray[np.float64]]]:
    """Macro-F1 and micro-F1 of the rows, and of rows drawn with replacement, many times.

    Rows with the same true and predicted labels are counted together: their numbers in a draw are multinomial, and the
    counts of each label follow by one matrix product.
    """
    pairs = Counter((frozenset(true), frozenset(guess)) for true, guess in zip(truth, predicted, strict=True))
    kinds, counts = list(pairs), np.array(list(pairs.values()), np.float64)
    labels = list(dict.fromkeys(label for true, guess in kinds for label in (*true, *guess)))
    if not labels:
        return (0.0, np.zeros(RESAMPLES)), (0.0, np.zeros(RESAMPLES))
    correct = _indicator([true & guess for true, guess in kinds], labels)  # (kinds, K)
    total = _indicator([true for true, _ in kinds], labels) + _indicator([guess for _, guess in kinds], labels)
    draw = np.random.default_rng(SEED)
    macro, micro = _f1(counts[None], correct, total)
    many_macro, many_micro = [], []
    resamples = RESAMPLES if len(kinds) <= MANY_ROWS else FEW_RESAMPLES
    block = max(1, CELLS_AT_ONCE // max(len(kinds), len(labels)))
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        drawn = draw.multinomial(len(truth), counts / counts.sum(), size=size).astype(np.float64)  # (size, kinds)
        some_macro, some_micro = _f1(drawn, correct, total)
        many_macro.append(some_macro)
        many_micro.append(some_micro)
    return (float(macro[0]), np.concatenate(many_macro)), (float(micro[0]), np.concatenate(many_micro))


def _f1(drawn: NDArray[np.float64], correct: Any, total: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Macro-F1 and micro-F1 of draws, by how often each draw has each kind of row: (draws, kinds)."""
    hits, seen = 2 * (correct.T @ drawn.T).T, (total.T @ drawn.T).T  # (draws, K): 2 tp, support + predicted
    f1 = np.divide(hits, seen, out=np.zeros_like(hits), where=seen > 0)
    macro = f1.sum(axis=1) / np.maximum((seen > 0).sum(axis=1), 1)
    return macro, hits.sum(axis=1) / np.maximum(seen.sum(axis=1), 1)


def _indicator(rows: Sequence[Collection[Hashable]], labels: Sequence[Hashable]) -> Any:
    """Labels as a sparse matrix of 0 and 1: (rows, K)."""
    from scipy.sparse import csr_array

    place = {label: number for number, label in enumerate(labels)}
    cells = [(row, place[label]) for row, own in enumerate(rows) for label in own]
    at = np.array(cells, np.int64).reshape(-1, 2).T
    return csr_array((np.ones(len(cells)), (at[0], at[1])), shape=(len(rows), len(labels)))
