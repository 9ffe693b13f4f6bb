"""An approximate index over label vectors, by faiss: label texts in cells, of which a query probes the nearest."""

from __future__ import annotations

import math
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

FIRST_PROBES = 16
"""How many cells a query probes at first."""

POINTS_PER_CELL = 40
"""How many label texts the centroid of a cell is learned from."""

VERIFIED = 16
"""How many label texts are looked up in a loaded index, to verify that it belongs to them."""

TOLERANCE, OUTLIERS = 0.05, 0.25
"""The relative error of a label text's product with itself in 8 bits, and which part of them may exceed it."""

MAX_PROBED = 0.25
"""Probing more than this part of the cells makes no sense: exact search is cheaper."""


def index_available() -> bool:
    """Whether faiss is installed."""
    return find_spec("faiss") is not None


class LabelIndex:
    """Finds label texts whose product with an input vector is large. Make it with :meth:`of` or :meth:`read`.

    Vectors are stored with 8 bits per number, so candidates must be scored again.

    Args:
        index: The index of faiss.
    """

    def __init__(self, index: Any) -> None:
        self._index = index
        self._cells = int(index.nlist)

    @classmethod
    def of(cls, vectors: NDArray[np.float32], unit_norm: bool) -> LabelIndex:
        """Build it.

        Args:
            vectors: (F, dim), prepared for the similarity.
            unit_norm: Whether all have unit norm, as for cosines.
        """
        faiss = _faiss()
        rows = _same_norm(vectors, unit_norm)
        cells = max(1, min(2 * math.isqrt(len(rows)), len(rows) // POINTS_PER_CELL))
        index: Any = faiss.index_factory(rows.shape[1], f"IVF{cells},SQ8", faiss.METRIC_INNER_PRODUCT)
        index.cp.seed = 0
        index.cp.min_points_per_centroid = 1  # a few labels are no reason for a warning
        some = np.random.default_rng(0).permutation(len(rows))[: cells * POINTS_PER_CELL]
        index.train(rows[np.sort(some)])
        index.add(rows)
        index.nprobe = min(FIRST_PROBES, cells)
        return cls(index)

    @classmethod
    def read(cls, path: Path, vectors: NDArray[np.float32]) -> LabelIndex:
        """Load an index; MaskMatchError if it cannot be that of these vectors (F, dim)."""
        try:
            read: Any = _faiss().read_index(str(path))
        except RuntimeError as error:
            raise MaskMatchError(f"{path} is damaged and cannot be read; export the classifier again.") from error
        other = f"{path} is not an index of these labels; export the classifier again."
        count, size = vectors.shape
        if not hasattr(read, "nlist") or read.ntotal != count or read.d not in (size, size + 1):
            raise MaskMatchError(other)
        index = cls(read)
        some = np.unique(np.linspace(0, count - 1, VERIFIED, dtype=np.int64))
        found = index.nearest(vectors[some], 1)[:, 0]
        products = np.einsum("ij,ij->i", vectors[some], vectors[np.maximum(found, 0)])
        own = np.square(vectors[some]).sum(axis=1)
        if (found < 0).any() or (products < (1 - TOLERANCE) * own).mean() > OUTLIERS:
            raise MaskMatchError(other)
        return index

    def write(self, path: Path) -> None:
        """Write it to a file, in faiss' own format."""
        try:
            _faiss().write_index(self._index, str(path))
        except RuntimeError as error:
            raise OSError(f"{path} could not be written: {error}") from error

    def nearest(self, inputs: NDArray[np.float32], count: int) -> NDArray[np.int64]:
        """Label texts with about the largest products: (n, dim) → (n, count), -1 where there are fewer."""
        queries = np.pad(inputs, ((0, 0), (0, self._index.d - inputs.shape[1])))
        _, found = self._index.search(np.ascontiguousarray(queries), count)
        return np.asarray(found)

    def probe_more(self) -> bool:
        """Probe twice as many cells from now on; False if that makes no sense any more."""
        if self._index.nprobe >= max(1, int(MAX_PROBED * self._cells)):
            return False
        self._index.nprobe = min(2 * self._index.nprobe, self._cells)
        return True


def _faiss() -> Any:
    """The library, which is an extra and has no types."""
    if not index_available():
        raise MaskMatchError(
            'An approximate search needs faiss: pip install "maskmatch[index]", or choose exact search.'
        )
    return import_module("faiss")


def _same_norm(vectors: NDArray[np.float32], already: bool) -> NDArray[np.float32]:
    """Vectors with one more coordinate each, so that all have the same norm and products stay the same.

    Cells are made by direction, so vectors with a large norm would be missed. The extra coordinate of a query is 0.
    """
    if already:
        return vectors
    squares = np.square(vectors).sum(axis=1)
    return np.concatenate([vectors, np.sqrt(np.maximum(squares.max() - squares, 0))[:, None]], axis=1)
