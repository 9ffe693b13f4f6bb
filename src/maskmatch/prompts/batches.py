"""Tokenized prompts, and padded batches of similar length: what an encoder reads at once. All in numpy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from maskmatch.prompts.windows import Windows


@dataclass(frozen=True)
class TokenizedPrompts:
    """The token ids of n prompts, not padded, with their mask positions.

    Attributes:
        input_ids: The token ids of each prompt.
        mask_positions: The positions of the masks, (n, masks); -1 if a prompt has fewer masks than others.
        cut: Whether a field was truncated to fit, (n,).
        others: The same texts in the further prompts of a prompt pool.
        label_prompts: If labels are encoded together with each text: the prompts of all F label texts with the first
            text, then with the second text, and so on, (n * F).
        windows: The further windows of texts that are read in several.
        unknown: Whether most tokens of a field are unknown to the encoder, (n,); None: not looked at.
    """

    input_ids: list[NDArray[np.int32]]
    mask_positions: NDArray[np.int64]
    cut: NDArray[np.bool_]
    others: tuple[TokenizedPrompts, ...] = ()
    label_prompts: TokenizedPrompts | None = None
    windows: Windows | None = None
    unknown: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def flat(self) -> TokenizedPrompts:
        """The prompts of a pool concatenated: all texts in the first prompt, then all in the second, and so on."""
        return self.followed_by(*self.others) if self.others else self

    def followed_by(self, *others: TokenizedPrompts) -> TokenizedPrompts:
        """Concatenate these prompts with others; mask positions are padded with -1 to the largest number of masks."""
        parts = (self, *others)
        masks = max(part.mask_positions.shape[1] for part in parts)
        positions = [
            np.pad(own, ((0, 0), (0, masks - own.shape[1])), constant_values=-1) if own.shape[1] < masks else own
            for own in (part.mask_positions for part in parts)
        ]
        return TokenizedPrompts(
            [ids for part in parts for ids in part.input_ids],
            np.concatenate(positions),
            np.concatenate([part.cut for part in parts]),
            unknown=np.concatenate([part.is_unknown for part in parts]),
        )

    def select(self, rows: Sequence[int] | NDArray[np.int64]) -> TokenizedPrompts:
        """The prompts of some rows."""
        rows = np.asarray(rows, dtype=np.int64)
        ids, others = [self.input_ids[row] for row in rows], tuple(each.select(rows) for each in self.others)
        labels = self.label_prompts
        if labels is not None:
            per_text = len(labels) // max(1, len(self))  # F
            labels = labels.select((rows[:, None] * per_text + np.arange(per_text)).ravel())
        windows = None if self.windows is None else self.windows.select(rows)
        unknown = None if self.unknown is None else self.unknown[rows]
        return TokenizedPrompts(ids, self.mask_positions[rows], self.cut[rows], others, labels, windows, unknown)

    def replaced(self, rows: NDArray[np.int64], by: TokenizedPrompts) -> TokenizedPrompts:
        """The same prompts, but for some rows, which are those of other prompts."""
        ids, positions, cut, unknown = (
            list(self.input_ids),
            *(values.copy() for values in (self.mask_positions, self.cut, self.is_unknown)),
        )
        for row, own in zip(rows.tolist(), by.input_ids, strict=True):
            ids[row] = own
        positions[rows], cut[rows], unknown[rows] = by.mask_positions, by.cut, by.is_unknown
        others = tuple(one.replaced(rows, other) for one, other in zip(self.others, by.others, strict=True))
        return TokenizedPrompts(ids, positions, cut, others, unknown=unknown)

    @property
    def is_unknown(self) -> NDArray[np.bool_]:
        """Whether most tokens of a text are unknown to the encoder: (n,)."""
        return np.zeros(len(self), bool) if self.unknown is None else self.unknown

    def with_labels(self, label_prompts: TokenizedPrompts) -> TokenizedPrompts:
        """Add the prompts of all labels with each text. A text counts as truncated if it is in any of its prompts."""
        cut = label_prompts.cut.reshape(len(self), -1).any(axis=1) if len(self) else self.cut
        return replace(self, cut=self.cut | cut, label_prompts=label_prompts)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The number of tokens of each text, (n,), in its longest prompt of the pool."""
        return np.asarray(np.max([self._own_lengths, *(other.lengths for other in self.others)], axis=0))

    @cached_property
    def tokens(self) -> NDArray[np.int64]:
        """The number of tokens of each text, (n,), summed over its prompts, windows and the label prompts with it."""
        counts = [self._own_lengths, *(other.tokens for other in self.others)]
        if self.label_prompts is not None:
            counts.append(self.label_prompts.tokens.reshape(len(self), -1).sum(axis=1))
        if self.windows is not None:
            further = np.bincount(self.windows.owners, self.windows.prompts.tokens, minlength=len(self))
            counts.append(further.astype(np.int64))
        return np.asarray(np.sum(counts, axis=0))

    @property
    def _own_lengths(self) -> NDArray[np.int64]:
        return np.fromiter((len(ids) for ids in self.input_ids), dtype=np.int64, count=len(self.input_ids))


BATCH_SIZE = 32
"""Texts per batch in prediction: on a CPU, larger batches only gain padding."""

LENGTH_RATIO = 1.3
"""The largest ratio between the longest and the shortest sequence of a batch: little padding, in few batches."""

GROUP_COST = 150
"""The cost of one more batch in a training step, in tokens: every batch has its own gradient of every weight."""


@dataclass(frozen=True)
class PaddedBatch:
    """Padded token ids with their attention mask and mask positions."""

    input_ids: NDArray[np.int64]  # (rows, length)
    attention_mask: NDArray[np.int64]  # (rows, length)
    mask_positions: NDArray[np.int64]  # (rows, masks), -1 where a row has fewer masks than others
    rows: NDArray[np.int64]  # (rows,), the numbers of the sequences

    @classmethod
    def of(cls, prompts: TokenizedPrompts, rows: NDArray[np.int64], pad_id: int) -> PaddedBatch:
        """Some prompts as one batch; with a pool, all texts in the first prompt, then all in the second, and so on."""
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
    """Row numbers in groups of similar length, shortest first.

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
    """Row numbers in groups of similar length, shortest first, with the lowest cost of padding and groups.

    >>> [group.tolist() for group in cheapest_groups(np.array([9, 3, 10, 3]), group_cost=5)]
    [[1, 3], [0, 2]]
    """
    order = np.argsort(lengths, kind="stable")
    ascending = lengths[order]
    cost = np.zeros(len(order) + 1)  # the cost of the n shortest rows in their best groups
    start = np.zeros(len(order) + 1, dtype=np.int64)  # the start of the last of these groups
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
