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
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.prediction.pipeline import encode_prompts
from maskmatch.prompts.batches import BATCH_SIZE, LENGTH_RATIO, PaddedBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from maskmatch.prediction.pipeline import Runtime
    from maskmatch.prompts import TokenizedPrompts

    Scoring = Callable[[NDArray[np.float32], NDArray[np.bool_]], list[Any]]

TOKENISED_AT_ONCE = 100_000
"""How many characters of texts are tokenised before the next batch is encoded."""

LEAST_ROWS = 4
"""From this many texts on, more of them do not make a batch faster per token. So padding is not worth it then."""

LITTLE_PADDING = 1.1
"""The largest ratio between the longest and the shortest text of such a batch."""

FEW_TOKENS = 64
"""With fewer tokens, a batch is not faster with all threads than with one."""


class QueueFullError(Exception):
    """So many texts wait already that a request is refused."""


@dataclass(eq=False)
class _Job:
    """The texts of one request."""

    scoring: Scoring
    future: asyncio.Future[tuple[list[Any], int]]
    answers: list[Any]
    left: int
    tokens: int = 0
    error: Exception | None = None
    cancelled: bool = False

    def finish(self) -> None:
        """Answer the request, on its event loop."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result((self.answers, self.tokens))
        else:
            self.future.set_exception(self.error)


@dataclass(eq=False)
class _Row:
    """One text that waits.

    Attributes:
        job: Its request.
        place: Its place in the request.
        text: The text.
        prompts: Once it is tokenised: the prompts of all texts that were tokenised together.
        row: Its row in ``prompts``.
        length: How many tokens it has.
        windowed: Whether it is read in several windows; it is then a batch by itself.
    """

    job: _Job
    place: int
    text: Any
    prompts: TokenizedPrompts | None = None
    row: int = 0
    length: int = 0
    windowed: bool = False


class Batcher:
    """Classifies the texts of many requests, in as many threads as the runtime computes batches at once.

    Args:
        tokenize: Texts → prompts; MaskMatchError if one of them cannot be read.
        runtime: Computes vectors.
        pad_id: The token that pads batches.
        max_tokens: How many tokens a batch may have, padding included.
        max_wait: How many seconds a text waits at most for others, if other texts are being worked on.
        limit: How many texts may wait.
        observe: Called with the number of texts and tokens of each batch, and how many texts wait.
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
        observe: Callable[[int, int, int], None] = lambda texts, tokens, waiting: None,
    ) -> None:
        self._tokenize, self._runtime, self._pad_id = tokenize, runtime, pad_id
        self._max_tokens, self._max_wait, self._limit = max_tokens, max_wait, limit
        self._observe = observe
        self._new: deque[_Row] = deque()  # this and all below is guarded by the condition
        self._tokenised: list[_Row] = []
        self._tokenising = 0  # how many texts are neither new nor tokenised
        self._busy = 0  # how many batches are worked on
        self._stopped = False
        self._ready = threading.Condition()
        self._workers = max(1, runtime.at_once)
        self._threads = [
            threading.Thread(target=self._work, name=f"maskmatch batcher {number}", daemon=True)
            for number in range(self._workers)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """How many texts wait."""
        return len(self._new) + self._tokenising + len(self._tokenised)

    async def classify(self, texts: Sequence[Any], scoring: Scoring) -> tuple[list[Any], int]:
        """The answer for each text, and the number of their tokens; for a text that cannot be read, an "error".

        Args:
            texts: The texts.
            scoring: Input vectors (n, masks, dim), and which texts were truncated (n,) → n answers. Requests whose
                scoring is equal are scored together.

        Raises:
            QueueFullError: Too many texts wait already.
        """
        if not texts:
            return [], 0
        job = _Job(scoring, asyncio.get_running_loop().create_future(), [None] * len(texts), len(texts))
        with self._ready:
            if self.waiting and self.waiting + len(texts) > self._limit:
                raise QueueFullError
            self._new.extend(_Row(job, place, text) for place, text in enumerate(texts))
            self._ready.notify()
        try:
            return await job.future
        except asyncio.CancelledError:
            with self._ready:  # its texts leave the queue
                job.cancelled = True
                self._new = deque(row for row in self._new if row.job is not job)
                self._tokenised = [row for row in self._tokenised if row.job is not job]
            raise

    def stop(self) -> None:
        """Answer what waits, then end the threads."""
        with self._ready:
            self._stopped = True
            self._ready.notify_all()
        for thread in self._threads:
            thread.join(timeout=60)

    # -- the threads -----------------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._ready:
                while not self._new and not self._tokenised:
                    if self._stopped and not self._tokenising:
                        self._ready.notify_all()
                        return
                    self._ready.wait()
                if self._busy:
                    self._gather()
                pulled = self._pull()
                if self._new:  # for another thread
                    self._ready.notify()
            done = self._tokenise(pulled) if pulled else []
            with self._ready:
                self._tokenised += [row for row in pulled if row.prompts is not None and not row.job.cancelled]
                self._tokenising -= len(pulled)
                batch = self._take()
                more = bool(self._new or self._tokenised)
                alone = not self._busy and not more and sum(row.length for row in batch) >= FEW_TOKENS
                self._busy += bool(batch)
                if more or self._stopped:
                    self._ready.notify()
            if batch:
                done += self._answer(batch, alone)
                with self._ready:
                    self._busy -= 1
            _finish(done)

    def _gather(self) -> None:
        """While other batches are worked on, wait a moment for more texts, so that batches are full."""
        deadline = time.monotonic() + self._max_wait
        while self._busy and len(self._new) + len(self._tokenised) < BATCH_SIZE:
            left = deadline - time.monotonic()
            if left <= 0 or not self._ready.wait(left):
                return

    def _pull(self) -> list[_Row]:
        """New texts, so many that other requests need not wait long."""
        pulled, characters = [], 0
        while self._new and characters < TOKENISED_AT_ONCE:
            row = self._new.popleft()
            pulled.append(row)
            characters += len(row.text) if isinstance(row.text, str) else 1000
        self._tokenising += len(pulled)
        return pulled

    def _tokenise(self, rows: list[_Row]) -> list[_Job]:
        """Tokenise texts together; returns the requests that are finished, because their texts cannot be read."""
        try:
            prompts = self._tokenize([row.text for row in rows])
        except MaskMatchError as error:
            if len(rows) == 1:
                return self._deliver([(rows[0], {"error": str(error).removeprefix("Text 0: ")})])
            return [job for row in rows for job in self._tokenise([row])]
        except Exception as error:  # a mistake of ours must not end the thread, nor fail the requests of others
            return _fail(rows[0], error) if len(rows) == 1 else [job for row in rows for job in self._tokenise([row])]
        windowed = set() if prompts.windows is None else set(prompts.windows.owners.tolist())
        lengths, tokens = prompts.lengths.tolist(), prompts.tokens.tolist()
        for place, row in enumerate(rows):
            row.prompts, row.row, row.windowed = prompts, place, place in windowed
            row.length = tokens[place] if row.windowed else lengths[place]
        return []

    def _take(self) -> list[_Row]:
        """The text that has waited longest, and others of similar length: this thread's part of those that wait."""
        rows = self._tokenised
        if not rows:
            return []
        most_rows = _part(len(rows), self._workers)
        first = rows[0]
        taken, longest, shortest = [first], first.length, first.length
        others = [] if first.windowed else [row for row in rows[1:] if not row.windowed]
        for row in sorted(others, key=lambda row: abs(row.length - first.length)):
            most, least = max(longest, row.length), min(shortest, row.length)
            full = len(taken) == most_rows or most * (len(taken) + 1) > self._max_tokens
            ratio = LENGTH_RATIO if len(taken) < LEAST_ROWS else LITTLE_PADDING
            if full or most > ratio * least:
                break
            taken.append(row)
            longest, shortest = most, least
        gone = set(map(id, taken))
        self._tokenised = [row for row in rows if id(row) not in gone]
        return taken

    def _answer(self, rows: list[_Row], alone: bool) -> list[_Job]:
        """Encode and score texts; returns the requests that are finished."""
        rows = sorted(rows, key=lambda row: id(row.prompts))
        try:
            vectors = self._vectors(rows, alone)
            cut = np.array([row.prompts is not None and row.prompts.cut[row.row] for row in rows])
            groups: dict[Scoring, list[int]] = {}
            for place, row in enumerate(rows):
                groups.setdefault(row.job.scoring, []).append(place)
            answers = [
                (rows[at], answer)
                for f, own in groups.items()
                for at, answer in zip(own, f(vectors[own], cut[own]), strict=True)
            ]
        except Exception as error:  # whatever the runtime raises: one request must not fail the others
            if len(rows) == 1:
                return _fail(rows[0], error)
            return [job for row in rows for job in self._answer([row], alone)]
        return self._deliver(answers)

    def _deliver(self, answers: Sequence[tuple[_Row, Any]]) -> list[_Job]:
        """Take the answers of texts; returns the requests that are finished. Other threads may have texts of them."""
        done: list[_Job] = []
        with self._ready:
            for row, answer in answers:
                row.job.answers[row.place] = answer
                row.job.tokens += row.length
                row.job.left -= 1
                if not row.job.left:
                    done.append(row.job)
        return done

    def _vectors(self, rows: list[_Row], alone: bool) -> NDArray[np.float32]:
        """The vectors of texts, (n, masks, dim); those that were tokenised together must follow each other."""
        parts: list[TokenizedPrompts] = []
        for _, own in groupby(rows, key=lambda row: id(row.prompts)):
            together = list(own)
            assert together[0].prompts is not None
            parts.append(together[0].prompts.select([row.row for row in together]))
        # In a pool, each text in the first prompt comes first, then each in the second, and so on.
        pools = [parts, *([part.others[place] for part in parts] for place in range(len(parts[0].others)))]
        first, *others = (part for pool in pools for part in pool)
        if rows[0].windowed:
            self._observe(1, rows[0].length, self.waiting)
            return encode_prompts(self._runtime, first, self._pad_id)
        prompts = first.followed_by(*others)
        batch = PaddedBatch.of(prompts, np.arange(len(prompts)), self._pad_id)
        self._observe(len(rows), int(batch.attention_mask.sum()), self.waiting)
        return self._runtime(batch, alone=alone)


def _part(waiting: int, workers: int) -> int:
    """How many of the texts that wait one of several threads takes, so that all end at about the same time.

    >>> _part(10, 1), _part(100, 1), _part(10, 2), _part(32, 2), _part(100, 2)
    (10, 25, 5, 16, 25)
    """
    rounds = -(-waiting // (workers * BATCH_SIZE))
    return max(LEAST_ROWS, -(-waiting // (workers * rounds)))


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
