"""Writing: a folder or a file is replaced completely or not at all, and stays after a power loss."""

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
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from maskmatch.errors import MaskMatchError
from maskmatch.files.locks import locked, resolved

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

STALE_AFTER = 24 * 60 * 60
"""Age in seconds at which the scratch folder of another machine counts as abandoned."""

BLOCK = 1 << 20


@contextmanager
def write_folder(folder: Path, ours: Sequence[str] = (), *, sync: bool = True) -> Iterator[Path]:
    """Yield a scratch folder to write into; replace ``folder`` with it if the block succeeds.

    Args:
        folder: The folder to write.
        ours: The names of files that this program owns: those of an earlier save are dropped. All other files in the
            folder belong to the user and are copied into the new folder.
        sync: Whether the folder must survive a power loss.
    """
    folder = resolved(folder)  # follows a symbolic link, so that its target is replaced, not the link
    with locked(folder):
        try:
            recover(folder)
            folder.parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(_scratch_folders(folder))
            scratch = Path(
                tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=f".{_process_name()}.writing", dir=folder.parent)
            )
        except OSError as error:
            raise MaskMatchError(f"{folder} cannot be written: {error.strerror}.") from error
        try:
            yield scratch
            copied = _copy_user_files(folder, scratch, ours)
            _apply_umask(scratch, skip=copied)
            if sync:
                sync_folder(scratch)
            _swap(scratch, folder)
            if sync:
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


@contextmanager
def scratch_folder() -> Iterator[str]:
    """A temporary folder. Those that killed processes of this program left behind are removed, too."""
    home = Path(tempfile.gettempdir())
    _remove_abandoned(home.glob("maskmatch.*.writing"))
    with tempfile.TemporaryDirectory(prefix="maskmatch.", suffix=f".{_process_name()}.writing") as scratch:
        yield scratch


def recover(folder: Path) -> None:
    """Restore a folder after a crash between the two renames of a swap, which leaves it under its backup name.

    The crash also left the scratch folder. Without one the backup is of a swap that was completed, so a folder that is
    missing was deleted by the user.
    """
    folder = resolved(folder)
    backup = _backup_path(folder)
    if folder.exists() or not backup.is_dir():
        return
    with locked(folder):  # a process that is writing it may be between the two renames
        if not folder.exists() and backup.is_dir() and _scratch_folders(folder):
            backup.rename(folder)


# -- scratch folders -----------------------------------------------------------------------------------------


def _scratch_folders(folder: Path) -> list[Path]:
    return list(folder.parent.glob(f".{glob.escape(folder.name)}.*.writing"))


def _remove_abandoned(folders: Iterable[Path]) -> None:
    """Remove the scratch folders of processes that were killed; keep those that may still be written."""
    for path in folders:
        abandoned = False
        host, _, process = path.name.split(".")[-2].rpartition("-")
        if host == _process_name().rpartition("-")[0] and process.isdecimal():
            abandoned = not _is_running(int(process))
        else:  # of another machine, so its process cannot be checked from here
            with suppress(FileNotFoundError):
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
    """Write a file, or the list of a folder's files, to the disk. Some file systems cannot do that for folders."""
    if not path.is_dir():
        file = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
    elif os.name == "posix":
        with suppress(OSError):
            file = os.open(path, os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)


def _backup_path(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.previous")


def _umask() -> int:
    """The permissions that new files do not get. Where it must be set to be read, one thread at a time does."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("Umask:")), 8)
    with _umask_lock:
        mask = os.umask(0)
        os.umask(mask)
        return mask


_umask_lock = threading.Lock()
