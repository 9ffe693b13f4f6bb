"""Means with their standard deviation over seeds, and paired tests of the difference between two methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

RESAMPLES = 10_000
_SAME = 1e-12  # differences below this come from rounding


@dataclass(frozen=True)
class Spread:
    """A mean over seeds, and the sample standard deviation; None for a single seed."""

    mean: float
    sd: float | None

    def __str__(self) -> str:
        return f"{self.mean:.3f}" if self.sd is None else f"{self.mean:.3f} ± {self.sd:.3f}"


def spread(values: Sequence[float]) -> Spread:
    """Mean and standard deviation.

    Example:
        >>> print(spread([0.5, 0.6, 0.7]))
        0.600 ± 0.100
    """
    if not values:
        raise MaskMatchError("There are no values to take the mean of; give at least one.")
    return Spread(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None)


@dataclass(frozen=True)
class PairedDifference:
    """The accuracy of one method minus that of another on the same test items.

    Attributes:
        difference: The difference of the two accuracies, each a mean over seeds.
        low: The lower end of the 95 % interval over test items.
        high: The upper end.
        p: The two-sided p-value.
        items: The number of test items.
    """

    difference: float
    low: float
    high: float
    p: float
    items: int


def paired_bootstrap(
    first: ArrayLike, second: ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES
) -> PairedDifference:
    """Compare two methods on the same test items by resampling the items.

    The value of an item is the share of seeds with a correct prediction, of the first method minus the second; the
    statistic is the mean over items. Items are resampled, seeds are not: the p-value is about other test items, given
    these training runs. p is the share of samples whose statistic is at least as far from the observed one as the
    observed one is from zero.

    Args:
        first: Whether each prediction is correct, for each seed: (seeds, items).
        second: The same of the other method, with as many items; the number of seeds may differ.
        seed: Same seed, same result.
        resamples: The number of bootstrap samples.
    """
    return pooled_bootstrap([(first, second)], seed=seed, resamples=resamples)


def pooled_bootstrap(
    pairs: Sequence[tuple[ArrayLike, ArrayLike]], *, seed: int = 0, resamples: int = RESAMPLES
) -> PairedDifference:
    """Compare two methods on several datasets at once, by the mean of their differences over datasets.

    Every dataset has the same weight, however many items it has, and its items are resampled separately. Datasets are
    not resampled: the p-value is about other test items of these datasets.

    Args:
        pairs: For each dataset, whether the predictions of the two methods are correct, (seeds, items) each.
        seed: Same seed, same result.
        resamples: The number of bootstrap samples.
    """
    if not pairs:
        raise MaskMatchError("There is nothing to compare; give the predictions of two methods on a dataset.")
    if resamples < 100:
        raise MaskMatchError(f"The number of resamples is {resamples}; it has to be at least 100.")
    tallies = [_tally(first, second) for first, second in pairs]
    turned = _wants_exchange(tallies)
    tallies = [_mirrored(tally) for tally in tallies] if turned else tallies
    observed = sum(float(values @ counts) / counts.sum() for values, counts in tallies) / len(tallies)
    draws = np.random.default_rng(seed)
    means = np.zeros(resamples)
    for values, counts in tallies:
        items = int(counts.sum())
        # Items with the same value are interchangeable, so it is enough to draw the count of each value.
        drawn = draws.multinomial(items, counts / items, size=resamples)  # (resamples, values)
        means += drawn @ values / items / len(tallies)
    extreme = int(np.sum(np.abs(means - observed) >= abs(observed) - _SAME))
    if all(_same(tally, _mirrored(tally)) for tally in tallies):
        # The distribution is symmetric: every sample is as likely as its mirror image.
        means = np.concatenate([means, -means])
    low, high = (float(end) for end in np.quantile(means, (0.025, 0.975)))
    p = (extreme + 1) / (resamples + 1)
    items = sum(int(counts.sum()) for _, counts in tallies)
    if turned:
        return PairedDifference(-observed, -high, -low, p, items)
    return PairedDifference(observed, low, high, p, items)


def holm(ps: Sequence[float]) -> list[float]:
    """p-values of several tests, corrected for their number (Holm 1979).

    Example:
        >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
        [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    corrected, largest = [0.0] * len(ps), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[place]))
        corrected[place] = largest
    return corrected


_Tally = tuple["NDArray[np.float64]", "NDArray[np.int64]"]
"""The different values of the items' differences, ascending, and how often each occurs."""


def _tally(first: ArrayLike, second: ArrayLike) -> _Tally:
    right = [_right(values, name) for values, name in ((first, "first"), (second, "second"))]
    if right[0].shape[1] != right[1].shape[1]:
        raise MaskMatchError(
            f"The first method was measured on {right[0].shape[1]} items and the second on {right[1].shape[1]}; a "
            "paired test needs the same."
        )
    # Counted in integers, so that equal differences compare equal.
    whole = right[0].sum(axis=0) * len(right[1]) - right[1].sum(axis=0) * len(right[0])  # (items,)
    values, counts = np.unique(whole, return_counts=True)
    return values / (len(right[0]) * len(right[1])), counts


def _mirrored(tally: _Tally) -> _Tally:
    return -tally[0][::-1], tally[1][::-1]


def _same(one: _Tally, other: _Tally) -> bool:
    return bool(np.array_equal(one[0], other[0]) and np.array_equal(one[1], other[1]))


def _wants_exchange(tallies: Sequence[_Tally]) -> bool:
    """Whether to exchange the two methods so that the better one comes first.

    The result of comparing a with b is then exactly the opposite of comparing b with a.
    """
    total = sum(float(values @ counts) / counts.sum() for values, counts in tallies)
    if abs(total) > _SAME:
        return bool(total < 0)
    listed, mirrored = (
        [list(zip(values.tolist(), counts.tolist(), strict=True)) for values, counts in each]
        for each in (tallies, [_mirrored(tally) for tally in tallies])
    )
    return mirrored < listed


def _right(values: ArrayLike, name: str) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 2 or 0 in array.shape:
        raise MaskMatchError(
            f"The predictions of the {name} method have the shape {array.shape}; give (seeds, items), at least one of "
            "each."
        )
    if not np.isin(array, (0, 1)).all():
        raise MaskMatchError(f"The predictions of the {name} method must be 1 (correct) or 0 (wrong).")
    return array.astype(np.int64)
