"""Dynamic batching: the texts of many requests are tokenised, encoded and scored together.

Batches are bounded by tokens and have texts of similar length. A text waits only while others are worked on. Vectors of
texts do not depend on labels, so requests with different labels share a batch. What cannot be read fails alone.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.prompts.batches import LENGTH_RATIO, PaddedBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from maskmatch.prediction.pipeline import Runtime
    from maskmatch.prompts import TokenizedPrompts

    Scoring = Callable[[NDArray[np.float32]], list[Any]]

TOKENISED_AT_ONCE = 100_000
"""How many characters of texts are tokenised before the next batch is encoded."""


class QueueFullError(Exception):
    """So many texts wait already that a request is refused."""


@dataclass(eq=False)
class _Job:
    """The texts of one request."""

    scoring: Scoring
    future: asyncio.Future[list[Any]]
    answers: list[Any]
    left: int
    error: Exception | None = None
    cancelled: bool = False

    def finish(self) -> None:
        """Answer the request, on its event loop."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.answers)
        else:
            self.future.set_exception(self.error)


@dataclass(eq=False)
class _Row:
    """One text that waits; its prompts are known once it is tokenised."""

    job: _Job
    place: int
    text: Any
    prompts: TokenizedPrompts | None = None
    length: int = 0


class Batcher:
    """Classifies the texts of many requests in one thread.

    Args:
        tokenize: Texts → prompts; MaskMatchError if one of them cannot be read.
        runtime: Computes vectors.
        pad_id: The token that pads batches.
        max_tokens: How many tokens a batch may have, padding included.
        max_wait: How many seconds a text waits at most for others, if a batch has just been worked on.
        limit: How many texts may wait.
        observe: Called with the number of texts and tokens of each batch.
    """

    def __init__(
        self,
        tokenize: Callable[[Sequence[Any]], TokenizedPrompts],
        runtime: Runtime,
        pad_id: int,
        *,
        max_tokens: int,
        max_wait: float,
        limit: int,
        observe: Callable[[int, int], None] = lambda texts, tokens: None,
    ) -> None:
        self._tokenize, self._runtime, self._pad_id = tokenize, runtime, pad_id
        self._max_tokens, self._max_wait, self._limit = max_tokens, max_wait, limit
        self._observe = observe
        self._new: deque[_Row] = deque()  # guarded by the condition
        self._tokenised: list[_Row] = []  # of the thread alone
        self._ready = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="maskmatch batcher", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many texts wait."""
        return len(self._new) + len(self._tokenised)

    async def classify(self, texts: Sequence[Any], scoring: Scoring) -> list[Any]:
        """The answer for each text; for one that cannot be read, an object with "error".

        Args:
            texts: The texts.
            scoring: Input vectors (n, masks, dim) → n answers. Requests whose scoring is equal are scored together.

        Raises:
            QueueFullError: Too many texts wait already.
        """
        if not texts:
            return []
        job = _Job(scoring, asyncio.get_running_loop().create_future(), [None] * len(texts), len(texts))
        with self._ready:
            if self.waiting and self.waiting + len(texts) > self._limit:
                raise QueueFullError
            self._new.extend(_Row(job, place, text) for place, text in enumerate(texts))
            self._ready.notify()
        try:
            return await job.future
        except asyncio.CancelledError:
            job.cancelled = True
            with self._ready:  # its texts leave the queue
                self._new = deque(row for row in self._new if row.job is not job)
            raise

    def stop(self) -> None:
        """Answer what waits, then end the thread."""
        with self._ready:
            self._stopped = True
            self._ready.notify()
        self._thread.join(timeout=60)

    # -- the thread ------------------------------------------------------------------------------------------

    def _work(self) -> None:
        busy = False
        while True:
            with self._ready:
                idle = not self.waiting
                while not self.waiting:
                    if self._stopped:
                        return
                    self._ready.wait()
                if busy and not idle:
                    self._gather()
                new = self._pull()
            done = self._tokenise(new)
            batch = self._take()
            busy = bool(batch)
            if batch:
                done += self._answer(batch)
            _finish(done)

    def _gather(self) -> None:
        """Under load, wait a moment for more texts, so that batches are full."""
        deadline = time.monotonic() + self._max_wait
        enough = self._max_tokens // 32
        while self.waiting < enough:
            left = deadline - time.monotonic()
            if left <= 0 or not self._ready.wait(left):
                return

    def _pull(self) -> list[_Row]:
        """New texts, so many that other requests need not wait long."""
        pulled, characters = [], 0
        while self._new and characters < TOKENISED_AT_ONCE:
            row = self._new.popleft()
            if not row.job.cancelled:
                pulled.append(row)
                characters += len(row.text) if isinstance(row.text, str) else 1000
        return pulled

    def _tokenise(self, rows: list[_Row]) -> list[_Job]:
        """Tokenise texts together; returns the requests that are finished, because their texts cannot be read."""
        if not rows:
            return []
        try:
            prompts = self._tokenize([row.text for row in rows])
        except MaskMatchError as error:
            if len(rows) == 1:
                return _deliver(rows[0], {"error": str(error).removeprefix("Text 0: ")})
            return [job for row in rows for job in self._tokenise([row])]
        except Exception as error:  # a mistake of ours must not end the thread
            return [job for row in rows for job in _fail(row, error)]
        for place, (row, length) in enumerate(zip(rows, prompts.lengths.tolist(), strict=True)):
            row.prompts, row.length = prompts.select([place]), length
        self._tokenised += rows
        return []

    def _take(self) -> list[_Row]:
        """The text that has waited longest, and others of similar length, as many as fit."""
        rows = [row for row in self._tokenised if not row.job.cancelled]
        self._tokenised = rows
        if not rows:
            return []
        first = rows[0]
        taken, longest, shortest = [first], first.length, first.length
        for row in sorted(rows[1:], key=lambda row: abs(row.length - first.length)):
            most, least = max(longest, row.length), min(shortest, row.length)
            if most > LENGTH_RATIO * least + 2 or most * (len(taken) + 1) > self._max_tokens:
                break
            taken.append(row)
            longest, shortest = most, least
        gone = set(map(id, taken))
        self._tokenised = [row for row in rows if id(row) not in gone]
        return taken

    def _answer(self, rows: list[_Row]) -> list[_Job]:
        """Encode and score texts; returns the requests that are finished."""
        done: list[_Job] = []
        try:
            vectors = self._vectors(rows)
            groups: dict[Scoring, list[int]] = {}
            for place, row in enumerate(rows):
                groups.setdefault(row.job.scoring, []).append(place)
            answers = [
                (rows[at], answer) for f, own in groups.items() for at, answer in zip(own, f(vectors[own]), strict=True)
            ]
        except Exception as error:  # whatever the runtime raises: one request must not fail the others
            if len(rows) == 1:
                return _fail(rows[0], error)
            return [job for row in rows for job in self._answer([row])]
        for row, answer in answers:
            done += _deliver(row, answer)
        return done

    def _vectors(self, rows: list[_Row]) -> NDArray[np.float32]:
        first, *parts = (row.prompts for row in rows if row.prompts is not None)
        together = first.followed_by(*parts)
        for place in range(len(first.others)):  # a pool: each text in the first prompt, then in the second, and so on
            together = together.followed_by(*(part.others[place] for part in (first, *parts)))
        batch = PaddedBatch.of(together, np.arange(len(together)), self._pad_id)
        self._observe(len(rows), int(batch.attention_mask.sum()))
        return self._runtime(batch)


def _deliver(row: _Row, answer: Any) -> list[_Job]:
    """Take the answer of a text; returns its request if that is finished."""
    job = row.job
    job.answers[row.place] = answer
    job.left -= 1
    return [] if job.left else [job]


def _fail(row: _Row, error: Exception) -> list[_Job]:
    """Fail the request of a text."""
    job = row.job
    job.error, job.cancelled = error, True
    return [job]


def _finish_all(jobs: list[_Job]) -> None:
    for job in jobs:
        job.finish()


def _finish(jobs: list[_Job]) -> None:
    """Answer requests, on their event loops: one call for all of a loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.future.get_loop(), []).append(job)
    for loop, own in by_loop.items():
        try:
            loop.call_soon_threadsafe(_finish_all, own)
        except RuntimeError:  # the server has stopped
            continue
