"""Work that overlaps: the next chunk is prepared while one is classified; several batches are computed at once."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

Chunk = TypeVar("Chunk")
Prepared = TypeVar("Prepared")
Item = TypeVar("Item")
Result = TypeVar("Result")


def mapped(function: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """The results of a function, in order, computed by several threads; only a few items are alive at a time.

    >>> list(mapped(str, range(5), workers=2))
    ['0', '1', '2', '3', '4']

    Args:
        function: The function; it must not hold Python's lock for long.
        items: Its arguments; the caller's thread iterates over them.
        workers: How many threads.
    """
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="maskmatch-batch") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def prefetched(chunks: Iterable[Chunk], prepare: Callable[[Chunk], Prepared]) -> Iterator[tuple[Chunk, Prepared]]:
    """Each chunk with its prepared form, in order; a thread reads and prepares the next one meanwhile.

    Two chunks are alive at a time, however many there are. Errors of the thread are raised here, after the chunks that
    came before them.

    Args:
        chunks: The chunks; the thread iterates over them.
        prepare: Prepares a chunk, in the thread too.
    """
    wanted: SimpleQueue[bool] = SimpleQueue()
    found: SimpleQueue[tuple[Chunk, Prepared] | BaseException | None] = SimpleQueue()

    def work() -> None:
        iterator: Iterator[Chunk] | None = None
        while wanted.get():
            try:
                iterator = iter(chunks) if iterator is None else iterator
                chunk = next(iterator)
            except StopIteration:
                return found.put(None)
            except BaseException as error:
                return found.put(error)
            try:
                found.put((chunk, prepare(chunk)))
            except BaseException as error:
                return found.put(error)
            del chunk  # the caller's alone from now on
        return None

    # A daemon, because it may be blocked by a pipe into which nothing is written any more.
    Thread(target=work, name="maskmatch-prefetch", daemon=True).start()
    wanted.put(True)
    try:
        while (item := found.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            wanted.put(True)
            yield item
            del item
    finally:
        wanted.put(False)
