"""Products of numpy matrices beside an encoder that computes with threads of its own.

The threads of numpy's BLAS wait for more work for some hundredths of a second, and keep the cores busy as they do.
After every small product they would slow the encoder down, most of all where cores are few.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

LARGE = 2 * 10**9
"""From how many multiplications on work is worth several threads."""

_decided = threading.local()


def product(rows: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row's dot product with each vector: (n, dim), (F, dim) → (n, F)."""
    with threads_for(len(rows) * vectors.size):
        return np.asarray(rows @ vectors.T)


@contextmanager
def threads_for(multiplications: int) -> Iterator[None]:
    """As many threads as so much work is worth, for all products within: what is decided once is not asked again.

    The number of threads is one for the whole process: while somebody does small work, large work has one thread too.
    """
    if getattr(_decided, "already", False):
        yield
        return
    _decided.already = True
    try:
        with nullcontext() if multiplications >= LARGE else _one_thread:
            yield
    finally:
        _decided.already = False


class _OneThread:
    """Numpy's BLAS has one thread as long as anybody is within; nobody waits for anybody."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._within = 0
        self._limiter: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._within:
                self._limiter = _blas().limit(limits=1)
            self._within += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._within -= 1
            if not self._within:
                self._limiter.restore_original_limits()


_one_thread = _OneThread()


@cache
def _blas() -> Any:
    """What sets the number of threads of numpy's BLAS."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
