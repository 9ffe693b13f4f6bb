"""Which texts a training step takes: ``batch_size`` texts, or fewer if they are long."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from torch.utils.data import Sampler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


class EpochOrder(Sampler[int]):
    """Rows in a random order that depends on the seed and the epoch.

    Args:
        rows: How many rows.
        seed: Same seed and epoch, same order.
    """

    def __init__(self, rows: int, seed: int) -> None:
        self._rows, self._seed, self._epoch = rows, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the next epoch; the data loader calls it."""
        self._epoch = epoch

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[int]:
        yield from np.random.default_rng((self._seed, self._epoch)).permutation(self._rows).tolist()


class TokenBatches(Sampler[list[int]]):
    """Batches with a maximum number of texts and of tokens, all of about the same number of tokens.

    Texts are dealt out like cards that are sorted by length: each batch gets one of the longest, one of the next
    longest, and so on, in the order of the epoch. So every epoch has the same number of batches, and no order can make
    one of them too large. A text with more than half of the tokens is a batch by itself.

    Args:
        order: The order of an epoch.
        tokens: (n,), the number of tokens per row.
        batch_size: The maximum number of rows per batch.
        max_tokens: The maximum number of tokens per batch.
    """

    def __init__(self, order: EpochOrder, tokens: NDArray[np.int64], batch_size: int, max_tokens: int) -> None:
        self.sampler = order  # accelerate sets the epoch of a wrapped sampler by this name
        self._tokens = tokens
        self._alone = _alone(tokens, max_tokens)
        self._dealt = _dealt_batches(tokens[~self._alone], batch_size, max_tokens)

    def set_epoch(self, epoch: int) -> None:
        """Set the next epoch."""
        self.sampler.set_epoch(epoch)

    def __len__(self) -> int:
        return int(self._alone.sum()) + self._dealt

    def __iter__(self) -> Iterator[list[int]]:
        order = np.fromiter(self.sampler, dtype=np.int64, count=len(self.sampler))
        ranks = np.empty_like(order)  # (n,), the rank of each row in the order
        ranks[order] = np.arange(len(order))
        others = order[~self._alone[order]]
        others = others[np.argsort(-self._tokens[others], kind="stable")]  # the longest first
        batches: list[list[int]] = [[] for _ in range(self._dealt)]
        for start in range(0, len(others), max(1, self._dealt)):
            some = others[start : start + self._dealt]
            for batch, row in zip(batches, some[np.argsort(ranks[some])].tolist(), strict=False):
                batch.append(row)
        batches += [[row] for row in np.flatnonzero(self._alone).tolist()]
        yield from sorted(batches, key=lambda batch: int(ranks[batch[0]]))


def needs_token_batches(tokens: NDArray[np.int64], batch_size: int, max_tokens: int) -> bool:
    """Whether a batch of the longest rows would have too many tokens."""
    return int(np.sort(tokens)[-batch_size:].sum()) > max_tokens


def batch_count(tokens: NDArray[np.int64], batch_size: int, max_tokens: int) -> int:
    """The number of batches of these rows.

    >>> batch_count(np.array([5, 4, 2, 1, 1]), batch_size=4, max_tokens=10)
    2
    >>> batch_count(np.array([5, 4, 2, 1, 1]), batch_size=4, max_tokens=9)  # the longest by itself
    2
    """
    alone = _alone(tokens, max_tokens)
    return int(alone.sum()) + _dealt_batches(tokens[~alone], batch_size, max_tokens)


def _alone(tokens: NDArray[np.int64], max_tokens: int) -> NDArray[np.bool_]:
    """(n,), which rows are so long that they are batches by themselves."""
    return np.asarray(2 * tokens > max_tokens)


def _dealt_batches(tokens: NDArray[np.int64], batch_size: int, max_tokens: int) -> int:
    """The smallest number of batches of which none has too many rows or tokens, however rows are dealt."""
    descending = -np.sort(-tokens)
    fewest, most = math.ceil(len(tokens) / batch_size), len(tokens)
    while fewest < most:
        middle = (fewest + most) // 2
        if int(descending[::middle].sum()) <= max_tokens:  # a batch that gets the longest row of every deal
            most = middle
        else:
            fewest = middle + 1
    return fewest
