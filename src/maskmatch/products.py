"""Products of numpy matrices beside an encoder that computes with threads of its own.

The threads of numpy's BLAS wait for more work for some hundredths of a second, and keep the cores busy as they do.
After every small product they would slow the encoder down, most of all where cores are few.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

LARGE = 2 * 10**9
"""From how many multiplications on work is worth several threads."""

_lock = threading.Lock()
_decided = threading.local()


def product(rows: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row's dot product with each vector: (n, dim), (F, dim) → (n, F)."""
    with threads_for(len(rows) * vectors.size):
        return np.asarray(rows @ vectors.T)


@contextmanager
def threads_for(multiplications: int) -> Iterator[None]:
    """As many threads as so much work is worth, for all products within: what is decided once is not asked again."""
    if getattr(_decided, "already", False):
        yield
        return
    _decided.already = True
    try:
        if multiplications >= LARGE:
            yield
        else:
            with _lock, _blas().limit(limits=1):  # the limit holds for the whole process: two of them would cross
                yield
    finally:
        _decided.already = False


@cache
def _blas() -> Any:
    """What sets the number of threads of numpy's BLAS."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
