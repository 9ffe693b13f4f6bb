"""Write JSON and JSON Lines files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskmatch.data.cells import to_json
from maskmatch.data.pieces import Cells, Pieces

if TYPE_CHECKING:
    from collections.abc import Sequence


def _lines(columns: Sequence[str], table: Sequence[Cells], before: int) -> bytes:
    return "".join(f"{to_json(row)}\n" for row in table).encode()


def _items(columns: Sequence[str], table: Sequence[Cells], before: int) -> bytes:
    joined = ",\n".join(map(to_json, table))
    return (",\n" * bool(before and table) + joined).encode()


JSON_LINES = Pieces(lambda columns: b"", _lines, any_columns=True)
JSON = Pieces(lambda columns: b"[\n", _items, b"\n]\n", any_columns=True)
