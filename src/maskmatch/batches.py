"""Batches of like length, padded: what an encoder reads at once. They are numpy's, whatever reads them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from maskmatch.prompts import TokenizedPrompts

BATCH_SIZE = 32
"""Texts a batch in prediction: on a CPU, larger batches gain nothing but padding."""

LENGTH_RATIO = 1.3
"""How much longer the longest sequence of a batch may be than its shortest: little padding, in few batches."""

GROUP_COST = 150
"""What one more batch costs a training step, in tokens: every batch has its own gradient of every weight."""


@dataclass(frozen=True)
class PaddedBatch:
    """Padded token ids with their attention mask and the places of their masks."""

    input_ids: NDArray[np.int64]  # (rows, length)
    attention_mask: NDArray[np.int64]  # (rows, length)
    mask_positions: NDArray[np.int64]  # (rows, masks), -1 where a row has fewer masks than others
    rows: NDArray[np.int64]  # (rows,), which sequences these are

    @classmethod
    def of(cls, prompts: TokenizedPrompts, rows: NDArray[np.int64], pad_id: int) -> PaddedBatch:
        """Some of the prompts as one batch; of a pool, all in the first prompt, then all in the second, and so on."""
        if prompts.others:
            prompts = replace(prompts, label_prompts=None).select(rows).flat
            rows = np.arange(len(prompts))
        lengths = prompts.lengths[rows]
        inside = np.arange(int(lengths.max())) < lengths[:, None]  # (rows, length)
        input_ids = np.full(inside.shape, pad_id, dtype=np.int64)
        input_ids[inside] = np.concatenate([prompts.input_ids[row] for row in rows.tolist()])
        return cls(input_ids, inside.astype(np.int64), prompts.mask_positions[rows], rows)


def length_groups(
    lengths: Sequence[int] | NDArray[np.int64], max_rows: int | None = None, ratio: float = LENGTH_RATIO
) -> list[NDArray[np.int64]]:
    """Row numbers in groups of like length, shortest first.

    >>> [group.tolist() for group in length_groups([9, 3, 10, 3], max_rows=2)]
    [[1, 3], [0, 2]]
    """
    lengths = np.asarray(lengths)
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order].tolist()
    groups: list[NDArray[np.int64]] = []
    start = 0
    for place in range(1, len(order) + 1):
        full = max_rows is not None and place - start == max_rows
        if place == len(order) or full or ordered[place] > ratio * ordered[start]:
            groups.append(order[start:place])
            start = place
    return groups


def cheapest_groups(lengths: NDArray[np.int64], group_cost: int = GROUP_COST) -> list[NDArray[np.int64]]:
    """Row numbers in groups of like length, shortest first, such that padding and the groups themselves cost least.

    >>> [group.tolist() for group in cheapest_groups(np.array([9, 3, 10, 3]), group_cost=5)]
    [[1, 3], [0, 2]]
    """
    order = np.argsort(lengths, kind="stable")
    ascending = lengths[order]
    cost = np.zeros(len(order) + 1)  # of the shortest so many rows, in their best groups
    start = np.zeros(len(order) + 1, dtype=np.int64)  # where the last of these groups begins
    for stop in range(1, len(order) + 1):
        tokens = (stop - np.arange(stop)) * ascending[stop - 1]
        start[stop] = np.argmin(cost[:stop] + tokens)
        cost[stop] = cost[start[stop]] + tokens[start[stop]] + group_cost
    groups: list[NDArray[np.int64]] = []
    stop = len(order)
    while stop:
        groups.append(order[start[stop] : stop])
        stop = int(start[stop])
    return groups[::-1]
