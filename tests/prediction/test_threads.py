"""Numpy's BLAS leaves the cores to the encoder."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from maskmatch.prediction import label_scorer as blas


def product(rows: Any, vectors: Any) -> Any:
    with blas.blas_threads(len(rows) * vectors.size):
        return rows @ vectors.T


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.mark.parametrize("large", [1, 10**12])
def test_a_product_is_the_same_in_one_thread_or_many(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "LARGE", large)
    random = np.random.default_rng(0)
    rows, vectors = (random.normal(size=(count, 16)).astype(np.float32) for count in (5, 9))
    expected = np.array([[row @ vector for vector in vectors] for row in rows])
    np.testing.assert_allclose(product(rows, vectors), expected, rtol=1e-4)


def test_numpy_has_its_threads_back_afterwards_whoever_else_computes() -> None:
    before = blas_threads()
    rows = np.ones((8, 32), dtype=np.float32)

    def compute() -> None:
        for _ in range(50):
            product(rows, rows)

    threads = [threading.Thread(target=compute) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert blas_threads() == before


def test_nobody_waits_while_another_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    before, done = blas_threads(), threading.Event()

    def compute() -> None:
        product(np.ones((8, 32), dtype=np.float32), np.ones((8, 32), dtype=np.float32))
        done.set()

    with blas.blas_threads(1):
        other = threading.Thread(target=compute)
        other.start()
        assert done.wait(10), "the other has to wait for us"
        other.join()
        assert 1 in blas_threads(), "the other has taken our limit with it"
    assert blas_threads() == before


def test_they_come_back_after_an_error_too() -> None:
    before = blas_threads()
    with pytest.raises(ValueError, match="matmul"):
        product(np.ones((2, 3), dtype=np.float32), np.ones((2, 4), dtype=np.float32))
    assert blas_threads() == before


@pytest.mark.parametrize("several", [True, False])
def test_threads_are_decided_on_once_for_all_products_within(several: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    before = blas_threads()
    rows = np.ones((8, 32), dtype=np.float32)
    monkeypatch.setattr(blas, "LARGE", 100)
    with blas.blas_threads(1000 if several else 10):
        monkeypatch.setattr(blas, "LARGE", 10**6 if several else 1)  # asked again, the answer would be the other
        product(rows, rows)
        within = blas_threads()
    assert (within == before) if several else (1 in within)  # libraries that were loaded later keep theirs
    assert blas_threads() == before
