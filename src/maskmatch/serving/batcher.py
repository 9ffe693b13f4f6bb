"""Dynamic batching: texts of many requests are encoded together, by tokens, in batches of similar length.

A text waits only while others are encoded. Vectors of texts do not depend on labels, so requests with different labels
share a batch. A request with a text that cannot be encoded fails alone.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from maskmatch.prompts.batches import LENGTH_RATIO, PaddedBatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from maskmatch.prediction.pipeline import Runtime
    from maskmatch.prompts import TokenizedPrompts


class QueueFullError(Exception):
    """So many texts wait already that a request is refused."""


@dataclass(eq=False)
class _Job:
    """The texts of one request that wait to be encoded."""

    prompts: TokenizedPrompts
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[NDArray[np.float32]]
    vectors: list[NDArray[np.float32] | None]
    left: int
    cancelled: bool = False

    def take(self, row: int, vector: NDArray[np.float32]) -> None:
        """Take the vector of a row; the last one answers the request."""
        self.vectors[row] = vector
        self.left -= 1
        if not self.left:
            self._finish(lambda: self.future.set_result(np.stack([each for each in self.vectors if each is not None])))

    def fail(self, error: Exception) -> None:
        """Answer the request with an error."""
        self.cancelled = True
        self._finish(lambda: self.future.set_exception(error))

    def _finish(self, act: Callable[[], None]) -> None:
        def finish() -> None:
            if not self.future.done():
                act()

        try:
            self.loop.call_soon_threadsafe(finish)
        except RuntimeError:  # the server has stopped
            self.cancelled = True


@dataclass(order=True)
class _Row:
    """One text that waits."""

    length: int
    job: _Job = field(compare=False)
    row: int = field(compare=False)


class Batcher:
    """Encodes the texts of many requests in one thread.

    Args:
        runtime: Computes vectors.
        pad_id: The token that pads batches.
        max_tokens: How many tokens a batch may have, padding included.
        max_wait: How many seconds a text waits at most for others, if a batch has just been encoded.
        limit: How many texts may wait.
        observe: Called with the number of texts and tokens of each batch.
    """

    def __init__(
        self,
        runtime: Runtime,
        pad_id: int,
        *,
        max_tokens: int,
        max_wait: float,
        limit: int,
        observe: Callable[[int, int], None] = lambda texts, tokens: None,
    ) -> None:
        self._runtime, self._pad_id = runtime, pad_id
        self._max_tokens, self._max_wait, self._limit = max_tokens, max_wait, limit
        self._observe = observe
        self._rows: deque[_Row] = deque()
        self._ready = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="maskmatch batcher", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many texts wait."""
        return len(self._rows)

    async def encode(self, prompts: TokenizedPrompts) -> NDArray[np.float32]:
        """The vectors of texts in their prompts: (n, masks, dim); QueueFullError if too many wait already."""
        loop = asyncio.get_running_loop()
        job = _Job(prompts, loop, loop.create_future(), [None] * len(prompts), len(prompts))
        lengths = prompts.lengths.tolist()
        with self._ready:
            if self._rows and len(self._rows) + len(lengths) > self._limit:
                raise QueueFullError
            self._rows.extend(_Row(length, job, row) for row, length in enumerate(lengths))
            self._ready.notify()
        try:
            return await job.future
        except asyncio.CancelledError:
            job.cancelled = True  # its rows leave the queue
            raise

    def stop(self) -> None:
        """Encode what waits, then end the thread."""
        with self._ready:
            self._stopped = True
            self._ready.notify()
        self._thread.join(timeout=60)

    # -- the thread ------------------------------------------------------------------------------------------

    def _work(self) -> None:
        busy = False
        while True:
            with self._ready:
                idle = not self._rows
                while not self._rows:
                    if self._stopped:
                        return
                    self._ready.wait()
                if busy and not idle:
                    self._gather()
                batch = self._take()
            busy = bool(batch)
            if batch:
                self._encode(batch)

    def _gather(self) -> None:
        """Under load, wait a moment for more texts, so that batches are full."""
        deadline = time.monotonic() + self._max_wait
        while sum(row.length for row in self._rows) < self._max_tokens // 2:
            left = deadline - time.monotonic()
            if left <= 0 or not self._ready.wait(left):
                return

    def _take(self) -> list[_Row]:
        """The text that has waited longest, and others of similar length, as many as fit."""
        rows = [row for row in self._rows if not row.job.cancelled]
        if not rows:
            self._rows.clear()
            return []
        first = rows[0]
        others = sorted(rows[1:], key=lambda row: abs(row.length - first.length))
        taken, longest = [first], first.length
        shortest = longest
        for row in others:
            most, least = max(longest, row.length), min(shortest, row.length)
            if most > LENGTH_RATIO * least + 2 or most * (len(taken) + 1) > self._max_tokens:
                break
            taken.append(row)
            longest, shortest = most, least
        gone = {id(row) for row in taken}
        self._rows = deque(row for row in rows if id(row) not in gone)
        return taken

    def _encode(self, rows: list[_Row]) -> None:
        try:
            vectors = self._vectors(rows)
        except Exception as error:  # whatever the runtime raises: one text must not fail the others
            if len(rows) == 1:
                rows[0].job.fail(error)
                return
            for row in rows:
                self._encode([row])
            return
        for row, vector in zip(rows, vectors, strict=True):
            row.job.take(row.row, vector)

    def _vectors(self, rows: list[_Row]) -> NDArray[np.float32]:
        parts = [row.job.prompts.select([row.row]) for row in rows]
        first = parts[0]
        together = first.followed_by(*parts[1:])
        if first.others:  # a pool of prompts: each text in the first prompt, then in the second, and so on
            pools = [[part.others[place] for part in parts] for place in range(len(first.others))]
            together = together.followed_by(*(pool[0].followed_by(*pool[1:]) for pool in pools))
        batch = PaddedBatch.of(together, np.arange(len(together)), self._pad_id)
        self._observe(len(rows), int(batch.attention_mask.sum()))
        return self._runtime(batch)
