"""Copies of a predictor for other processes: the bytes of a saved folder, never pickled modules."""

from __future__ import annotations

import io
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Callable

Loaded = TypeVar("Loaded")


def folder_bytes(folder: Path) -> bytes:
    """All files of a folder as bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(folder.iterdir()):
            if path.is_file():
                archive.write(path, path.name)
    return buffer.getvalue()


def load_bytes(data: bytes, load: Callable[[Path], Loaded]) -> Loaded:
    """What a function loads from the folder that :func:`folder_bytes` read."""
    with tempfile.TemporaryDirectory(prefix="maskmatch-") as scratch:
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                archive.extractall(scratch)
        except (zipfile.BadZipFile, TypeError, ValueError, OSError, NotImplementedError, zlib.error) as error:
            raise MaskMatchError(f"These bytes are not those of a saved classifier: {error}.") from error
        return load(Path(scratch))
