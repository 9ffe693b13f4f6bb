"""Files: a folder or a file is replaced completely or not at all, and stays after a power loss; locks; digests."""

from __future__ import annotations

import ctypes
import glob
import hashlib
import os
import platform
import re
import shutil
import sys
import tempfile
import threading
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STALE_AFTER = 24 * 60 * 60
"""Age in seconds at which the scratch folder of another machine counts as abandoned."""

LOCK_SECONDS = 60.0
"""How long to wait for a process or thread that holds the lock of a folder."""

LOCK_PAUSE = 0.02
BLOCK = 1 << 20


@contextmanager
def write_folder(folder: Path, ours: Sequence[str] = ()) -> Iterator[Path]:
    """Yield a scratch folder to write into; replace ``folder`` with it if the block succeeds.

    Args:
        folder: The folder to write.
        ours: The names of files that this program owns: those of an earlier save are dropped. All other files in the
            folder belong to the user and are copied into the new folder.
    """
    folder = folder.resolve()  # follows a symbolic link, so that its target is replaced, not the link
    with locked(folder):
        try:
            recover(folder)
            folder.parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(folder)
            scratch = Path(
                tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=f".{_process_name()}.writing", dir=folder.parent)
            )
        except OSError as error:
            raise MaskMatchError(f"{folder} cannot be written: {error.strerror}.") from error
        try:
            yield scratch
            copied = _copy_user_files(folder, scratch, ours)
            _apply_umask(scratch, skip=copied)
            sync_folder(scratch)
            _swap(scratch, folder)
            _sync(folder.parent)
        except OSError as error:
            raise MaskMatchError(
                f"{folder} could not be written: {error}; the previous content is unchanged."
            ) from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def write_text(path: Path, text: str, *, errors: str = "strict") -> None:
    """Write a text file as UTF-8, creating its parent folders. No reader ever sees half of the file.

    Args:
        path: The file to write.
        text: Its content.
        errors: What happens to characters that UTF-8 cannot encode, as in ``str.encode``.
    """
    with write_file(path) as scratch:
        scratch.write_bytes(text.encode("utf-8", errors))


@contextmanager
def write_file(path: Path) -> Iterator[Path]:
    """Give a scratch file to write, and put it in the place of ``path`` if all goes well."""
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}.{_process_name()}.writing")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield scratch
            _sync(scratch)
            scratch.replace(path)
            _sync(path.parent)
        finally:
            scratch.unlink(missing_ok=True)
    except OSError as error:
        raise MaskMatchError(f"{path} cannot be written: {error.strerror}.") from error


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def recover(folder: Path) -> None:
    """Restore a folder after a crash between the two renames of a swap, which leaves it under its backup name.

    The crash also left the scratch folder. Without one the backup is of a swap that was completed, so a folder that is
    missing was deleted by the user.
    """
    folder = folder.resolve()
    backup = _backup_path(folder)
    if folder.exists() or not backup.is_dir():
        return
    with locked(folder):  # a process that is writing it may be between the two renames
        if not folder.exists() and backup.is_dir() and _scratch_folders(folder):
            backup.rename(folder)


# -- locks ---------------------------------------------------------------------------------------------------


@contextmanager
def locked(folder: Path, seconds: float | None = None) -> Iterator[None]:
    """Hold the lock of a folder: no other process or thread that asks for it writes the folder meanwhile.

    A thread may ask for a lock that it holds. Readers need none: a folder is always whole.

    Args:
        folder: The folder; it may not exist yet.
        seconds: How long to wait; None: LOCK_SECONDS.
    """
    folder = folder.resolve()
    deadline = time.monotonic() + (LOCK_SECONDS if seconds is None else seconds)
    with _locks_guard:
        lock = _locks.setdefault(folder, _FolderLock(folder))
    lock.acquire(deadline)
    try:
        yield
    finally:
        lock.release()


class _FolderLock:
    """The lock of a folder: a lock among threads, and a locked file beside the folder among processes."""

    def __init__(self, folder: Path) -> None:
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
        if self._depth == 0:
            self.forget(remove=True)
        self._threads.release()

    def forget(self, *, remove: bool = False) -> None:
        """Close the file, and remove it while it is still locked, so that nobody else can have locked it."""
        file, self._file = self._file, -1
        if file < 0:
            return
        if remove and os.name == "posix":  # elsewhere an open file cannot be removed
            self._path.unlink(missing_ok=True)
        os.close(file)

    def _lock_file(self, deadline: float) -> int:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            while True:
                file = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
                if _try_lock(file) and _is_at(file, self._path):
                    return file
                os.close(file)
                if time.monotonic() > deadline:
                    raise self._busy()
                time.sleep(LOCK_PAUSE)
        except OSError as error:
            raise MaskMatchError(f"{self._folder} cannot be written: {error.strerror}.") from error

    def _busy(self) -> MaskMatchError:
        return MaskMatchError(f"{self._folder} is being written by another process or thread; try again later.")


_locks: dict[Path, _FolderLock] = {}
_locks_guard = threading.Lock()


def _forget_locks() -> None:
    """A forked process holds none of the locks of its parent."""
    global _locks_guard  # noqa: PLW0603 - another thread of the parent may have held it
    _locks_guard = threading.Lock()
    for lock in _locks.values():
        lock.forget()
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)


def _try_lock(file: int) -> bool:
    """Lock an open file, unless another process has locked it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_at(file: int, path: Path) -> bool:
    """Whether an open file is still the one at a path: its last owner may have removed it before it was locked."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


# -- scratch folders -----------------------------------------------------------------------------------------


def _scratch_folders(folder: Path) -> list[Path]:
    return list(folder.parent.glob(f".{glob.escape(folder.name)}.*.writing"))


def _remove_abandoned(folder: Path) -> None:
    """Remove the scratch folders of processes that were killed; keep those that may still be written."""
    for path in _scratch_folders(folder):
        host, _, process = path.name.split(".")[-2].rpartition("-")
        if host == _process_name().rpartition("-")[0] and process.isdecimal():
            abandoned = not _is_running(int(process))
        else:  # of another machine, so its process cannot be checked from here
            abandoned = time.time() - path.stat().st_mtime > STALE_AFTER
        if abandoned:
            shutil.rmtree(path, ignore_errors=True)


def _process_name() -> str:
    """The host and the id of this process, as part of the names of its scratch files."""
    host = re.sub(r"[^\w-]+", "_", platform.node())
    return f"{host}-{os.getpid()}"


def _is_running(process: int) -> bool:
    """Whether a process of this machine is running; True if this cannot be checked safely."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)  # signal 0 only checks for existence
    except ProcessLookupError:
        return False
    except OSError:  # the process of another user
        return True
    return True


def _copy_user_files(folder: Path, scratch: Path, ours: Sequence[str]) -> set[str]:
    """Copy the user's files into the new folder, and return their names. Symbolic links stay links."""
    copied: set[str] = set()
    for path in folder.iterdir() if folder.exists() else ():
        target = scratch / path.name
        if path.name in ours or target.exists():
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, target, symlinks=True)
        else:
            shutil.copy2(path, target, follow_symlinks=False)
        copied.add(path.name)
    return copied


def _apply_umask(scratch: Path, skip: set[str]) -> None:
    """Give the new folder and files the usual permissions: mkdtemp and safetensors create private ones."""
    mask = _umask()
    os.chmod(scratch, 0o777 & ~mask)
    for name in os.listdir(scratch):
        if name not in skip and (scratch / name).is_file():
            os.chmod(scratch / name, 0o666 & ~mask)


def _swap(scratch: Path, folder: Path) -> None:
    """Put the scratch folder in the place of a folder: in one step where the system can, else in two renames."""
    if folder.exists() and _exchange(scratch, folder):
        return  # the previous content is in the scratch folder now, which the caller removes
    backup = _backup_path(folder)
    shutil.rmtree(backup, ignore_errors=True)
    if folder.exists():
        folder.rename(backup)
    try:
        scratch.rename(folder)
    except BaseException:
        if backup.exists():
            backup.rename(folder)
        raise
    shutil.rmtree(backup, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step; False if the system or the file system cannot."""
    first, second = os.fsencode(one), os.fsencode(other)
    try:
        library = ctypes.CDLL(None)
        if sys.platform == "darwin":
            return int(library.renamex_np(first, second, 2)) == 0  # RENAME_SWAP
        here = -100  # AT_FDCWD
        return int(library.renameat2(here, first, here, second, 2)) == 0  # RENAME_EXCHANGE
    except (OSError, AttributeError, TypeError):  # no such function; Windows has no library of this kind
        return False


def sync_folder(folder: Path) -> None:
    """Write a folder and all its files to the disk: they survive a power loss."""
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            if not os.path.islink(os.path.join(place, name)):
                _sync(Path(place, name))
        _sync(Path(place))


def _sync(path: Path) -> None:
    """Write a file, or the list of a folder's files, to the disk."""
    if path.is_dir() and os.name != "posix":  # folders cannot be opened
        return
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _backup_path(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.previous")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
