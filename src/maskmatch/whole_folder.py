"""Writing a folder whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from maskmatch.errors import MaskMatchError


@contextmanager
def whole_folder(folder: Path, ours: Sequence[str] = ()) -> Iterator[Path]:
    """Give a scratch folder to write into, and put it in the place of ``folder`` when all has gone well.

    Args:
        folder: Where the files should be in the end.
        ours: Names of files in the folder that are written anew; all others are the user's, and are carried over.
    """
    folder = folder.absolute()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".writing", dir=folder.parent))
    except OSError as error:
        raise MaskMatchError(f"{folder} cannot be written: {error.strerror}.") from error
    try:
        yield scratch
        if folder.exists():
            for path in folder.iterdir():
                if path.name not in ours and not (scratch / path.name).exists():
                    copy = shutil.copytree if path.is_dir() else shutil.copy2
                    copy(path, scratch / path.name)
        os.chmod(scratch, 0o777 & ~_umask())  # noqa: PTH101 - mkdtemp made it private
        _swap(scratch, folder)
    except OSError as error:
        raise MaskMatchError(f"{folder} could not be written: {error}; what was there before is as it was.") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def recover(folder: Path) -> None:
    """Bring back the folder that a crash, between the two renames of a swap, left under its other name."""
    previous = _previous(folder.absolute())
    if not folder.exists() and previous.is_dir():
        previous.rename(folder)


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
