"""An approximate index over label vectors, by faiss: label texts in cells, of which a text looks into the nearest."""

from __future__ import annotations

import math
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRST_PROBES = 16
"""Into how many cells a text looks at first."""

POINTS_A_CELL = 40
"""How many label texts the place of a cell is learned from."""

MOST_LOOKED_AT = 0.25
"""In which part of the cells looking further still makes sense."""


def index_available() -> bool:
    """Whether an index can be made here."""
    return find_spec("faiss") is not None


class LabelIndex:
    """Finds label texts whose product with a text's vector is large.

    Vectors are held in 8 bits a number, so what is found has to be scored again.

    Args:
        vectors: (F, dim), as the similarity compares them.
        of_one_length: Whether all are of the same length, as for cosines.
    """

    def __init__(self, vectors: NDArray[np.float32], of_one_length: bool) -> None:
        if not index_available():
            raise MaskMatchError(
                'An approximate search needs faiss: pip install "maskmatch[index]", or choose exact search.'
            )
        faiss: Any = import_module("faiss")  # an extra, and without types
        rows = _of_one_length(vectors, of_one_length)
        self._padded = rows.shape[1] - vectors.shape[1]
        cells = max(1, min(2 * math.isqrt(len(rows)), len(rows) // POINTS_A_CELL))
        self._cells = cells
        self._index: Any = faiss.index_factory(rows.shape[1], f"IVF{cells},SQ8", faiss.METRIC_INNER_PRODUCT)
        self._index.cp.seed = 0
        some = np.random.default_rng(0).permutation(len(rows))[: cells * POINTS_A_CELL]
        self._index.train(rows[np.sort(some)])
        self._index.add(rows)
        self._index.nprobe = min(FIRST_PROBES, cells)

    def nearest(self, inputs: NDArray[np.float32], count: int) -> NDArray[np.int64]:
        """The label texts with the largest products, about: (n, dim) → (n, count), -1 where there are fewer."""
        queries = np.pad(inputs, ((0, 0), (0, self._padded)))
        _, found = self._index.search(np.ascontiguousarray(queries), count)
        return np.asarray(found)

    def look_further(self) -> bool:
        """Look into twice as many cells from now on; False if that makes no sense any more."""
        if self._index.nprobe >= max(1, int(MOST_LOOKED_AT * self._cells)):
            return False
        self._index.nprobe = min(2 * self._index.nprobe, self._cells)
        return True


def _of_one_length(vectors: NDArray[np.float32], already: bool) -> NDArray[np.float32]:
    """Vectors with one more number each, such that all have the same length and products stay as they are.

    Cells lie by directions, so long vectors would be missed: a text's vector gets a 0 as its further number.
    """
    if already:
        return vectors
    squares = np.square(vectors).sum(axis=1)
    return np.concatenate([vectors, np.sqrt(np.maximum(squares.max() - squares, 0))[:, None]], axis=1)
