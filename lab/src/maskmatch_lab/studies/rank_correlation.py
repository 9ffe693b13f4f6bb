"""Spearman's rank correlation, with an interval and a p-value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

DRAWS = 10_000
ALMOST = 1 - 1e-12
FEWEST = 4
"""The smallest number of pairs that gives an interval."""


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's rank correlation.

    Attributes:
        value: From -1 (the opposite order) to 1 (the same order).
        low: The lower end of the 95 % interval, by Fisher's transformation with the variance of Bonett and Wright.
        high: Its upper end.
        p: The two-sided p-value of a permutation test.
        pairs: The number of pairs.
    """

    value: float
    low: float
    high: float
    p: float
    pairs: int


def rank_correlation(
    one: Sequence[float], other: Sequence[float], *, draws: int = DRAWS, seed: int = 0
) -> RankCorrelation:
    """Spearman's rank correlation of pairs; equal values share the mean of their ranks.

    Args:
        one: The first value of each pair.
        other: The second value of each pair.
        draws: The number of permutations for the p-value.
        seed: Same seed, same result.

    Example:
        >>> rank_correlation([1, 2, 3, 4, 5], [10, 20, 30, 40, 50]).value
        1.0
    """
    if len(one) != len(other) or len(one) < FEWEST:
        raise MaskMatchError(
            f"There are {len(one)} and {len(other)} values; a rank correlation needs equally many, and at least "
            f"{FEWEST}."
        )
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    observed = _spearman(first[None], second[None])[0]
    rng = np.random.default_rng(seed)
    mixed = rng.permuted(np.tile(second, (draws, 1)), axis=1)
    extreme = np.abs(_spearman(np.tile(first, (draws, 1)), mixed)) >= abs(observed) - 1e-12
    p = (int(extreme.sum()) + 1) / (draws + 1)
    return RankCorrelation(float(observed), *_interval(float(observed), len(first)), p, len(first))


def _interval(value: float, pairs: int) -> tuple[float, float]:
    """A closed formula: bootstrap samples of a dozen pairs have ties, which would make the interval too narrow."""
    middle = math.atanh(max(-ALMOST, min(ALMOST, value)))
    half = 1.96 * math.sqrt((1 + value**2 / 2) / (pairs - 3))
    return math.tanh(middle - half), math.tanh(middle + half)


def _spearman(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """The correlation of the ranks of each row: (rows, n) → (rows,); 0 where all values of a row are equal."""
    ranks = [_ranks(each) for each in (one, other)]
    centred = [each - each.mean(axis=1, keepdims=True) for each in ranks]
    products = (centred[0] * centred[1]).sum(axis=1)
    lengths = np.sqrt((centred[0] ** 2).sum(axis=1) * (centred[1] ** 2).sum(axis=1))
    return np.asarray(np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0))


def _ranks(values: NDArray[np.float64]) -> NDArray[Any]:
    """The rank of each value in its row; equal values share the mean of their ranks: (rows, n) → (rows, n)."""
    smaller = (values[:, None, :] < values[:, :, None]).sum(axis=2)
    equal = (values[:, None, :] == values[:, :, None]).sum(axis=2)
    return np.asarray(smaller + (equal + 1) / 2)
