"""Writing a folder whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


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
        scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".writing", dir=folder.parent))
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


def recover(folder: Path) -> None:
    """Bring back the folder that a crash, between the two renames of a swap, left under its other name."""
    folder = folder.resolve()
    previous = _previous(folder)
    if not folder.exists() and previous.is_dir():
        previous.rename(folder)


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
