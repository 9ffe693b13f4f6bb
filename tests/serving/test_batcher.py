"""The batcher: texts of many requests together, by tokens; one that fails, fails alone."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch.errors import MaskMatchError
from maskmatch.prompts import TokenizedPrompts
from maskmatch.serving.batcher import Batcher, QueueFullError

if TYPE_CHECKING:
    from maskmatch.prompts.batches import PaddedBatch

BAD = 13


class Echo:
    """A runtime that gives back the sum of each text's tokens, and remembers its batches; the token 13 is an error."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, int]] = []
        self.gate = threading.Event()
        self.gate.set()

    at_once = 1

    def __call__(self, batch: PaddedBatch, *, alone: bool = True) -> np.ndarray:
        self.gate.wait(10)
        self.shapes.append(batch.input_ids.shape)
        if (batch.input_ids == BAD).any():
            raise RuntimeError("a bad text")
        return (batch.input_ids * batch.attention_mask).sum(axis=1)[:, None, None].astype(np.float32)

    def map(self, batches: Any) -> Any:
        return map(self, batches)


def prompts(*texts: list[int]) -> TokenizedPrompts:
    ids = [np.array(text, np.int32) for text in texts]
    return TokenizedPrompts(ids, np.zeros((len(texts), 1), np.int64), np.zeros(len(texts), bool))


def run(batcher: Batcher, work: Any) -> Any:
    try:
        return asyncio.run(work())
    finally:
        batcher.stop()


def tokenize(texts: Any) -> TokenizedPrompts:
    if any(not text for text in texts):
        raise MaskMatchError("Text 0: a blank text")
    return prompts(*texts)


def numbers(vectors: np.ndarray, _: np.ndarray) -> list[float]:
    return [float(vector[0, 0]) for vector in vectors]


def make(runtime: Echo, **options: Any) -> Batcher:
    return Batcher(tokenize, runtime, 0, **{"max_tokens": 64, "max_wait": 0.001, "limit": 1000, **options})


@settings(max_examples=25, deadline=None)
@given(
    requests=st.lists(
        st.lists(st.lists(st.integers(20, 99), min_size=1, max_size=40), min_size=1, max_size=4), max_size=12
    )
)
def test_every_request_gets_its_own_answers(requests: list[list[list[int]]]) -> None:
    runtime = Echo()
    batcher = make(runtime)

    async def work() -> Any:
        return await asyncio.gather(*(batcher.classify(texts, numbers) for texts in requests))

    for texts, answers in zip(requests, run(batcher, work), strict=True):
        assert answers == ([sum(text) for text in texts], sum(map(len, texts)))
    assert all(rows == 1 or rows * length <= 64 for rows, length in runtime.shapes)


def test_texts_that_wait_are_encoded_together_and_by_length() -> None:
    runtime = Echo()
    batcher = make(runtime, max_tokens=1000)
    runtime.gate.clear()

    async def work() -> None:
        first = asyncio.ensure_future(batcher.classify([[20]], numbers))
        await asyncio.sleep(0.1)  # it is being encoded; what comes now waits
        others = [asyncio.ensure_future(batcher.classify([[20] * size], numbers)) for size in (5, 50, 5, 50, 5)]
        await asyncio.sleep(0.1)
        runtime.gate.set()
        await asyncio.gather(first, *others)

    run(batcher, work)
    assert runtime.shapes == [(1, 1), (3, 5), (2, 50)]


def test_a_bad_text_fails_alone() -> None:
    batcher = make(Echo())

    async def work() -> Any:
        jobs = [batcher.classify([[20 + place]], numbers) for place in range(5)]
        return await asyncio.gather(*jobs, batcher.classify([[20], [BAD]], numbers), return_exceptions=True)

    *good, bad = run(batcher, work)
    assert good == [([20.0 + place], 1) for place in range(5)]
    assert isinstance(bad, RuntimeError)


def test_a_text_that_cannot_be_read_is_an_error_among_answers() -> None:
    batcher = make(Echo())

    async def work() -> Any:
        return await asyncio.gather(
            batcher.classify([[20], [], [30]], numbers), batcher.classify([[]], numbers), batcher.classify([], numbers)
        )

    bad = {"error": "a blank text"}
    assert run(batcher, work) == [([20.0, bad, 30.0], 2), ([bad], 0), ([], 0)]


def test_requests_with_equal_scoring_are_scored_together() -> None:
    runtime, sizes = Echo(), []
    batcher = make(runtime, max_tokens=1000)
    runtime.gate.clear()

    def counting(vectors: np.ndarray, cut: np.ndarray) -> list[float]:
        sizes.append(len(vectors))
        return numbers(vectors, cut)

    async def work() -> None:
        first = asyncio.ensure_future(batcher.classify([[20]], numbers))
        await asyncio.sleep(0.1)
        others = [asyncio.ensure_future(batcher.classify([[20]], counting)) for _ in range(5)]
        await asyncio.sleep(0.1)
        runtime.gate.set()
        await asyncio.gather(first, *others)

    run(batcher, work)
    assert sizes == [5]


def test_a_full_queue_refuses_at_once_and_cancelled_texts_leave_it() -> None:
    runtime = Echo()
    batcher = make(runtime, limit=3)
    runtime.gate.clear()

    async def work() -> None:
        first = asyncio.ensure_future(batcher.classify([[20]], numbers))
        await asyncio.sleep(0.1)
        waiting = asyncio.ensure_future(batcher.classify([[20], [20], [20]], numbers))
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError):
            await batcher.classify([[20]], numbers)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        runtime.gate.set()
        await first
        await batcher.classify([[21]], numbers)

    run(batcher, work)
    assert runtime.shapes == [(1, 1), (1, 1)], "cancelled texts are not encoded"


def test_what_waits_is_finished_when_it_stops() -> None:
    runtime = Echo()
    batcher = make(runtime)

    async def work() -> Any:
        job = asyncio.ensure_future(batcher.classify([[20], [30]], numbers))
        await asyncio.sleep(0)
        await asyncio.get_running_loop().run_in_executor(None, batcher.stop)
        return await job

    assert run(batcher, work) == ([20.0, 30.0], 2)
