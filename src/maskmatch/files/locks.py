"""Locks: of an object among threads, of a folder among threads and processes. A forked process holds none of them."""

from __future__ import annotations

import errno
import logging
import os
import sys
import threading
import time
import weakref
from contextlib import contextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

logger = logging.getLogger("maskmatch")

LOCK_SECONDS = 60.0
"""How long to wait for a process or thread that holds the lock of a folder."""

LOCK_PAUSE = 0.02
HELD_BY_OTHERS = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


# -- objects -------------------------------------------------------------------------------------------------


class Lock:
    """A reentrant lock among threads. A copy of its owner, also in another process, gets a lock of its own."""

    def __init__(self) -> None:
        self.renew()
        _object_locks.add(self)

    def renew(self) -> None:
        """Free it, whoever held it."""
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> Any:
        return Lock, ()


_object_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


class Locked(Protocol):
    """An object with a lock."""

    lock: Lock


Owner = TypeVar("Owner", bound=Locked)


def exclusive(
    method: Callable[Concatenate[Owner, Parameters], Result],
) -> Callable[Concatenate[Owner, Parameters], Result]:
    """The method, run by one thread at a time."""

    @wraps(method)
    def locked_method(owner: Owner, /, *args: Parameters.args, **options: Parameters.kwargs) -> Result:
        with owner.lock:
            return method(owner, *args, **options)

    return locked_method


# -- folders -------------------------------------------------------------------------------------------------


@contextmanager
def locked(folder: Path, seconds: float | None = None) -> Iterator[None]:
    """Hold the lock of a folder: no other process or thread that asks for it writes the folder meanwhile.

    A thread may ask for a lock that it holds. Readers need none: a folder is always whole.

    Args:
        folder: The folder; it may not exist yet.
        seconds: How long to wait; None: LOCK_SECONDS.
    """
    folder = resolved(folder)
    deadline = time.monotonic() + (LOCK_SECONDS if seconds is None else seconds)
    with _folder_guard:
        lock = _folder_locks.setdefault(folder, _FolderLock(folder))
        lock.wanted += 1
    try:
        lock.acquire(deadline)
        try:
            yield
        finally:
            lock.release()
    finally:
        with _folder_guard:
            lock.wanted -= 1
            if not lock.wanted:
                _folder_locks.pop(folder, None)


def resolved(folder: Path) -> Path:
    """A folder's absolute path, without symbolic links; MaskMatchError if it can be none."""
    try:
        path = folder.expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, an unknown user, a NUL
        raise MaskMatchError(f"{str(folder)!r} cannot be a folder: {error}.") from error
    if not path.name:
        raise MaskMatchError(f"{str(folder)!r} cannot be written; choose a folder in it.")
    return path


class _FolderLock:
    """The lock of a folder: a lock among threads, and a locked file beside the folder among processes."""

    def __init__(self, folder: Path) -> None:
        self.wanted = 0  # how many hold it or wait for it
        self._folder = folder
        self._path = folder.with_name(f".{folder.name}.lock")
        self._threads = threading.RLock()
        self._depth = 0
        self._file = -1

    def acquire(self, deadline: float) -> None:
        if not self._threads.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise self._busy()
        try:
            if self._depth == 0:
                self._file = self._lock_file(deadline)
            self._depth += 1
        except BaseException:
            self._threads.release()
            raise

    def release(self) -> None:
        self._depth -= 1
        try:
            if self._depth == 0:
                self.close(remove=True)
        finally:
            self._threads.release()

    def close(self, *, remove: bool = False) -> None:
        """Close the file, and remove it while it is still locked, so that nobody else can have locked it."""
        file, self._file = self._file, -1
        if file < 0:
            return
        if remove and os.name == "posix":  # elsewhere an open file cannot be removed
            with suppress(OSError):
                self._path.unlink()
        os.close(file)

    def _lock_file(self, deadline: float) -> int:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            while True:
                file = self._open()
                if _try_lock(file) and _is_at(file, self._path):
                    return file
                os.close(file)
                if time.monotonic() > deadline:
                    raise self._busy()
                time.sleep(LOCK_PAUSE)
        except OSError as error:
            raise MaskMatchError(f"{self._folder} cannot be written: {error.strerror}.") from error

    def _open(self) -> int:
        flags = os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        try:
            return os.open(self._path, os.O_RDWR | flags, 0o666)
        except PermissionError:  # left behind by a process of another user
            return os.open(self._path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))

    def _busy(self) -> MaskMatchError:
        return MaskMatchError(f"{self._folder} is being written by another process or thread; try again later.")


_folder_locks: dict[Path, _FolderLock] = {}
_folder_guard = threading.Lock()
_warned = False


def _try_lock(file: int) -> bool:
    """Lock an open file, unless another process has locked it."""
    global _warned  # noqa: PLW0603
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in HELD_BY_OTHERS:
            return False
        if not _warned:
            _warned = True
            logger.warning("This file system has no locks (%s): let one process at a time write here.", error.strerror)
    return True


def _is_at(file: int, path: Path) -> bool:
    """Whether an open file is still the one at a path: its last owner may have removed it before it was locked."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def _after_fork() -> None:
    """Free all locks: the threads that held them are not in this process."""
    global _folder_guard  # noqa: PLW0603
    _folder_guard = threading.Lock()
    for lock in _folder_locks.values():
        lock.close()
    _folder_locks.clear()
    for each in list(_object_locks):
        each.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
