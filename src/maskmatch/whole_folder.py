"""Writing a folder or a file whole or not at all."""

from __future__ import annotations

import glob
import os
import platform
import re
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

A_DAY = 24 * 60 * 60


@contextmanager
def whole_folder(folder: Path, ours: Sequence[str] = ()) -> Iterator[Path]:
    """Give a scratch folder to write into, and put it in the place of ``folder`` when all has gone well.

    Args:
        folder: Where the files should be in the end.
        ours: Names of files in the folder that are written anew; all others are the user's, and are carried
            over.
    """
    folder = folder.resolve()  # a link is followed, so that what it leads to is replaced, not the link
    try:
        recover(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_left_over(folder)
        scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=f".{_writer()}.writing", dir=folder.parent))
    except OSError as error:
        raise MaskMatchError(f"{folder} cannot be written: {error.strerror}.") from error
    try:
        yield scratch
        carried: set[str] = set()
        if folder.exists():
            for path in folder.iterdir():
                if path.name not in ours and not (scratch / path.name).exists():
                    _carry_over(path, scratch / path.name)
                    carried.add(path.name)
        mask = _umask()
        os.chmod(scratch, 0o777 & ~mask)  # mkdtemp made it private
        for name in os.listdir(scratch):
            if name not in carried and (scratch / name).is_file():
                os.chmod(scratch / name, 0o666 & ~mask)  # safetensors writes private files
        _swap(scratch, folder)
    except OSError as error:
        raise MaskMatchError(f"{folder} could not be written: {error}; what was there before is as it was.") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_whole(path: Path, text: str) -> None:
    """Write a text file, made with the folders above it, so that nobody ever reads half of it."""
    beside = path.with_name(f".{path.name}.{_writer()}.writing")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            beside.write_text(text, encoding="utf-8")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise MaskMatchError(f"{path} cannot be written: {error.strerror}.") from error


def recover(folder: Path) -> None:
    """Bring back the folder that a crash, between the two renames of a swap, left under its other name."""
    folder = folder.resolve()
    previous = _previous(folder)
    if not folder.exists() and previous.is_dir():
        previous.rename(folder)


def _remove_left_over(folder: Path) -> None:
    """Remove the scratch folders of earlier saves that were killed; one that may still be written is left alone."""
    for path in folder.parent.glob(f".{glob.escape(folder.name)}.*.writing"):
        host, _, process = path.name.split(".")[-2].rpartition("-")
        if host == _writer().rpartition("-")[0] and process.isdecimal():
            left_over = not _runs(int(process))
        else:  # another machine's, which alone could tell whether its writer still runs
            left_over = time.time() - path.stat().st_mtime > A_DAY
        if left_over:
            shutil.rmtree(path, ignore_errors=True)


def _writer() -> str:
    """This process, in the name of its scratch folders."""
    host = re.sub(r"[^\w-]+", "_", platform.node())
    return f"{host}-{os.getpid()}"


def _runs(process: int) -> bool:
    """Whether a process of this machine is there; where that cannot be asked safely, it is taken to be."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True


def _carry_over(source: Path, target: Path) -> None:
    """Copy what the user has put into the folder; links stay links."""
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def _swap(scratch: Path, folder: Path) -> None:
    previous = _previous(folder)
    shutil.rmtree(previous, ignore_errors=True)
    if folder.exists():
        folder.rename(previous)
    try:
        scratch.rename(folder)
    except OSError:
        if previous.exists():
            previous.rename(folder)
        raise
    shutil.rmtree(previous, ignore_errors=True)


def _previous(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.previous")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
