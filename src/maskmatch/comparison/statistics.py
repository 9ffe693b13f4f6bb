"""Means with their spread over seeds, and whether a difference between two methods could be chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
    """How much more often one method is right than another on the same test items.

    Attributes:
        difference: Of the two accuracies, each a mean over seeds.
        low: The lower end of the 95 % interval over test items.
        high: Its upper end.
        p: The two-sided chance of a difference this large if there were none.
        items: How many test items there are.
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

    For each item the share of seeds for which it was right is taken, of the first method less the second; the
    statistic is the mean over items. Items are resampled, seeds are not: the p-value tells whether the difference
    would hold on other test items, given these training runs. p is the share of resamples whose statistic lies at
    least as far from the observed one as that lies from zero.

    Args:
        first: Whether each item was right, for each seed: (seeds, items).
        second: The same of the other method, with as many items; the number of seeds may differ.
        seed: Same seed, same result.
        resamples: How often the items are drawn.
    """
    right = [_right(values, name) for values, name in ((first, "first"), (second, "second"))]
    if right[0].shape[1] != right[1].shape[1]:
        raise MaskMatchError(
            f"The first method was measured on {right[0].shape[1]} items and the second on {right[1].shape[1]}; a "
            "paired test needs the same."
        )
    if resamples < 100:
        raise MaskMatchError(f"The number of resamples is {resamples}; it has to be at least 100.")
    items = right[0].shape[1]
    values, counts, turned = _tally(right[0], right[1])
    observed = float(values @ counts) / items
    # Items with the same difference are alike, so drawing items is drawing how many there are of each value.
    drawn = np.random.default_rng(seed).multinomial(items, counts / items, size=resamples)  # (resamples, values)
    means = drawn @ values / items
    extreme = int(np.sum(np.abs(means - observed) >= abs(observed) - _SAME))
    if np.array_equal(values, -values[::-1]) and np.array_equal(counts, counts[::-1]):
        # The two are each other's mirror image, so neither comes first: every draw is as likely as its mirror image.
        means = np.concatenate([means, -means])
    low, high = (float(end) for end in np.quantile(means, (0.025, 0.975)))
    p = (extreme + 1) / (resamples + 1)
    if turned:
        return PairedDifference(-observed, -high, -low, p, items)
    return PairedDifference(observed, low, high, p, items)


def _tally(first: NDArray[Any], second: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64], bool]:
    """The different values of the items' differences, how often each occurs, and whether the two were exchanged.

    They are exchanged where needed for the better method to come first, so that comparing a with b draws the same
    as comparing b with a.
    """
    # Counted in whole numbers, so that equal differences are found equal.
    whole = first.sum(axis=0) * len(second) - second.sum(axis=0) * len(first)  # (items,)
    scale = len(first) * len(second)
    values, counts = np.unique(whole, return_counts=True)
    mirrored = list(zip((-values)[::-1].tolist(), counts[::-1].tolist(), strict=True))
    total = int(values @ counts)
    turned = total < 0 or (total == 0 and mirrored < list(zip(values.tolist(), counts.tolist(), strict=True)))
    if turned:
        values, counts = -values[::-1], counts[::-1]
    return values / scale, counts, turned


def _right(values: ArrayLike, name: str) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 2 or 0 in array.shape:
        raise MaskMatchError(
            f"The answers of the {name} method have the shape {array.shape}; give (seeds, items) with one of each at "
            "least."
        )
    if not np.isin(array, (0, 1)).all():
        raise MaskMatchError(f"The answers of the {name} method hold other values than right (1) and wrong (0).")
    return array.astype(np.int64)
