"""Vectors of texts, as the map, the queue and the curve compare them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors of length 1; those of several masks are one: (n, …) → (n, dim)."""
    flat = vectors.reshape(len(vectors), -1)
    return np.asarray(flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-12))
