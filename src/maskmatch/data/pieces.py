"""How a format is written in pieces, so that a table may be larger than memory and a run may resume."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

Cells = Mapping[str, Any]
"""One row: cells by column."""


@dataclass(frozen=True)
class Pieces:
    """A format that is written piece by piece; a file is the start, the rows of each piece, and the end.

    Args:
        start: The bytes before the first row, by the columns.
        rows: The bytes of some rows: of the columns, the rows, and how many rows came before them.
        end: The bytes after the last row.
        finish: Makes the file of all pieces, if they are not the file yet: it reads the one and writes the other.
        any_columns: Whether each row may have columns of its own.
        package: The package that it needs, if it is optional.
    """

    start: Callable[[Sequence[str]], bytes]
    rows: Callable[[Sequence[str], Sequence[Cells], int], bytes]
    end: bytes = b""
    finish: Callable[[Path, Path], None] | None = None
    any_columns: bool = False
    package: str | None = None
