"""Forked processes that do one thing, and may be killed while they do it."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

from maskmatch_lab.torture.campaign import SkippedError

if TYPE_CHECKING:
    from collections.abc import Callable

HUNG = 60.0
WRITES = frozenset(
    {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.utime"}
)
"""Audit events that change the disk; ``open`` counts if it is for writing."""


def forked(work: Callable[[], None], *, kill_after: float | None = None, seconds: float = HUNG) -> int:
    """Do some work in a forked process; returns its exit code, negative if a signal ended it.

    Args:
        work: The work; if it raises, the process exits with 1 and prints why.
        kill_after: After how many seconds to kill the process.
        seconds: How long it may take; after that it is killed, and TimeoutError is raised.
    """
    child = start(work)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    return wait(child, seconds)


def start(work: Callable[[], None]) -> int:
    """Start some work in a forked process; returns its id."""
    if not hasattr(os, "fork"):
        raise SkippedError("this system has no fork")
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def wait(child: int, seconds: float = HUNG) -> int:
    """The exit code of a process, negative if a signal ended it."""
    deadline = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise TimeoutError(f"a process hung for {seconds:.0f} s")
        time.sleep(0.001)


class WritePoints:
    """Calls a function before every step that changes the disk. It cannot be taken back: use it in a forked process.

    Steps are the audit events of Python that change files, and each fsync. What compiled libraries write between two
    of them is reached by kills at random times.
    """

    def __init__(self, before: Callable[[str], None]) -> None:
        self._before, self._within = before, False
        fsync = os.fsync

        def watched(fd: Any) -> None:
            self._reached("fsync")
            fsync(fd)

        os.fsync = watched
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in WRITES:
            self._reached(event)
        elif event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and isinstance(path, str):
                self._reached(f"open {os.path.basename(path)}")

    def _reached(self, step: str) -> None:
        if self._within:
            return
        self._within = True
        try:
            self._before(step)
        finally:
            self._within = False
