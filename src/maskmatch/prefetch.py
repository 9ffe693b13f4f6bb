"""Preparing the next chunk while the present one is being worked on."""

from __future__ import annotations

from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Chunk = TypeVar("Chunk")
Prepared = TypeVar("Prepared")


def prefetched(chunks: Iterable[Chunk], prepare: Callable[[Chunk], Prepared]) -> Iterator[tuple[Chunk, Prepared]]:
    """Each chunk with what was prepared of it, in order; the next one is read and prepared in a thread meanwhile.

    Two chunks are alive at a time, however many there are. What goes wrong in the thread is raised here, behind the
    chunks before it.

    Args:
        chunks: The chunks; they are drawn in the thread.
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

    # As a daemon it keeps nobody waiting: it may be blocked by a pipe into which nothing is written any more.
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
