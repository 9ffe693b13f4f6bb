"""Atomic writes: a folder or a file is replaced completely, or not at all."""

from __future__ import annotations

import glob
import os
import platform
import re
import shutil
import tempfile
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


@contextmanager
def write_folder(folder: Path, ours: Sequence[str] = ()) -> Iterator[Path]:
    """Yield a scratch folder to write into; replace ``folder`` with it if the block succeeds.

    Args:
        folder: The folder to write.
        ours: The names of files that this program owns: those of an earlier save are dropped. All other files in the
            folder belong to the user and are copied into the new folder.
    """
    folder = folder.resolve()  # follows a symbolic link, so that its target is replaced, not the link
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
        _swap(scratch, folder)
    except OSError as error:
        raise MaskMatchError(f"{folder} could not be written: {error}; the previous content is unchanged.") from error
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
            scratch.replace(path)
        finally:
            scratch.unlink(missing_ok=True)
    except OSError as error:
        raise MaskMatchError(f"{path} cannot be written: {error.strerror}.") from error


def recover(folder: Path) -> None:
    """Restore a folder after a crash between the two renames of a swap, which leaves it under its backup name."""
    folder = folder.resolve()
    backup = _backup_path(folder)
    if not folder.exists() and backup.is_dir():
        backup.rename(folder)


def _remove_abandoned(folder: Path) -> None:
    """Remove the scratch folders of processes that were killed; keep those that may still be written."""
    for path in folder.parent.glob(f".{glob.escape(folder.name)}.*.writing"):
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
    backup = _backup_path(folder)
    shutil.rmtree(backup, ignore_errors=True)
    if folder.exists():
        folder.rename(backup)
    try:
        scratch.rename(folder)
    except OSError:
        if backup.exists():
            backup.rename(folder)
        raise
    shutil.rmtree(backup, ignore_errors=True)


def _backup_path(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.previous")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
