"""Which label texts belong to which label. Padding to (K, phrases) happens here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class LabelLayout:
    """The label texts of all labels in one flat list, in the order of labels, and how many each label has.

    >>> layout = LabelLayout.of([["refund", "money back"], ["card lost"]])
    >>> len(layout), layout.size, layout.table.tolist(), layout.present.tolist()
    (2, 3, [[0, 1], [2, 0]], [[True, True], [True, False]])

    Attributes:
        counts: (K,), the number of label texts per label
        texts: (F,), the label texts; empty if they are not known
    """

    counts: NDArray[np.int64]
    texts: tuple[Any, ...] = ()

    @classmethod
    def of(cls, texts: Iterable[Sequence[Any]]) -> LabelLayout:
        """The layout of the label texts of each label."""
        each = [tuple(own) for own in texts]
        counts = np.array([len(own) for own in each], dtype=np.int64)
        return cls(counts, tuple(text for own in each for text in own))

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def size(self) -> int:
        """The number of label texts, F."""
        return int(self.counts.sum())

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """(K, phrases), which places hold a label text; the others are padding."""
        return np.asarray(np.arange(int(self.counts.max())) < self.counts[:, None])

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """(K, phrases), the flat positions of each label's texts, 0 where padded."""
        table = np.zeros(self.present.shape, dtype=np.int64)
        table[self.present] = np.arange(self.size)
        return table

    @property
    def owners(self) -> NDArray[np.int64]:
        """(F,), the position of the label that each label text belongs to."""
        return np.repeat(np.arange(len(self)), self.counts)
