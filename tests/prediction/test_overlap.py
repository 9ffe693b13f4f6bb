"""Chunks that are prepared in a thread, batches that are computed at once, predictions over streams of any length."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskmatch import ExportedMatcher, MaskMatcher, MaskMatchError, export
from maskmatch.prediction.overlap import mapped, prefetched
from toy_data import LABELS, TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Tiny = Callable[..., Path]


@given(st.lists(st.integers()))
def test_everything_comes_in_order(numbers: list[int]) -> None:
    assert list(prefetched(numbers, lambda number: number * 2)) == [(number, number * 2) for number in numbers]


def test_the_next_chunk_is_prepared_meanwhile() -> None:
    prepared = [threading.Event() for _ in range(3)]
    chunks = prefetched(range(3), lambda number: prepared[number].set())
    for number, _ in chunks:
        assert all(event.wait(10) for event in prepared[: number + 2])
        time.sleep(0.01)
        assert not any(event.is_set() for event in prepared[number + 2 :])


@pytest.mark.parametrize("where", ["reading", "preparing"])
def test_an_error_comes_behind_the_chunks_before_it(where: str) -> None:
    def chunks() -> Iterator[int]:
        yield from range(3)
        if where == "reading":
            raise MaskMatchError("line 4")
        yield 3

    def prepare(number: int) -> int:
        if number == 3:
            raise MaskMatchError("line 4")
        return number

    found = prefetched(chunks(), prepare)
    assert [next(found)[0] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(MaskMatchError, match="line 4"):
        next(found)


def test_a_caller_that_stops_ends_the_thread() -> None:
    def alive() -> int:
        return sum(thread.name == "maskmatch-prefetch" for thread in threading.enumerate())

    before = alive()
    chunks = prefetched(iter(int, 1), lambda number: number)  # endless
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    deadline = time.monotonic() + 10
    while alive() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert alive() == before


class Row(dict[str, Any]):
    """A row that can be watched: plain dicts have no weak references."""


def test_a_stream_is_classified_in_constant_memory(tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    alive: dict[int, weakref.ref[Row]] = {}
    most = 0

    def rows() -> Iterator[Row]:
        nonlocal most
        for number in range(600):
            row = Row(text=f"{TEXTS[number % len(TEXTS)]} {number}")
            alive[number] = weakref.ref(row, lambda _, number=number: alive.pop(number))  # type: ignore[misc]
            most = max(most, len(alive))
            yield row

    assert sum(1 for _ in matcher.iter_top_k(rows(), 1, chunk_size=50)) == 600
    assert most <= 3 * 50  # the chunk at work, the one that is read meanwhile, and what the last one left to clear up
    gc.collect()
    assert len(alive) <= 1


def test_a_stream_says_what_a_list_says(tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    texts = [*TEXTS, "refund " * 200]
    expected = matcher.top_k(texts, 2)
    found = list(matcher.iter_top_k(iter(texts), 2, chunk_size=5))
    assert [[label for label, _ in pairs] for pairs in found] == [[label for label, _ in pairs] for pairs in expected]
    assert matcher.cut_ == 1
    assert list(matcher.iter_top_k(iter([]), 2)) == []
    with pytest.raises(MaskMatchError, match="chunk_size is 0"):
        next(matcher.iter_top_k(texts, chunk_size=0))


def test_what_cannot_be_gone_through_is_told_and_nobody_waits() -> None:
    with pytest.raises(TypeError, match="not iterable"):
        next(prefetched(7, str))  # type: ignore[arg-type]


def test_threads_may_share_a_classifier(tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    expected = matcher.predict(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: matcher.predict(TEXTS), range(40)):
            assert found == expected


def test_mapped_results_are_in_order_and_few_items_are_alive() -> None:
    alive: set[int] = set()
    most = 0

    def items() -> Iterator[int]:
        nonlocal most
        for number in range(50):
            alive.add(number)
            most = max(most, len(alive))
            yield number

    for expected, found in enumerate(mapped(lambda number: number * 2, items(), workers=2)):
        assert found == expected * 2
        alive.discard(expected)
    assert most <= 6


def test_mapped_raises_the_error_of_a_thread() -> None:
    results = mapped(lambda number: 1 // number, [1, 0, 1], workers=2)
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_an_export_computes_many_batches_at_once(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export(MaskMatcher.from_pretrained(tiny("bert"), LABELS), tmp_path / "export")
    matcher = ExportedMatcher.from_pretrained(tmp_path / "export", verbose=False)
    threads: set[str] = set()
    texts = [f"{text} {number}" for number in range(60) for text in TEXTS]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    one_by_one = matcher.predict_proba(texts, batch_size=16)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")

    class Recorded(threading.Thread):
        def run(self) -> None:
            threads.add(self.name)
            super().run()

    monkeypatch.setattr("concurrent.futures.thread.threading.Thread", Recorded)
    np.testing.assert_allclose(matcher.predict_proba(texts, batch_size=16), one_by_one, atol=1e-6)
    assert len([name for name in threads if name.startswith("maskmatch-batch")]) == 2


def test_a_loaded_export_answers_after_its_folder_was_replaced(tiny: Tiny, tmp_path: Path) -> None:
    export(MaskMatcher.from_pretrained(tiny("bert"), LABELS), tmp_path / "export")
    matcher = ExportedMatcher.from_pretrained(tmp_path / "export", verbose=False)
    export(MaskMatcher.from_pretrained(tiny("bert"), LABELS[:2]), tmp_path / "export")
    assert matcher.predict_proba(TEXTS * 30, batch_size=16).shape == (30 * len(TEXTS), len(LABELS))
