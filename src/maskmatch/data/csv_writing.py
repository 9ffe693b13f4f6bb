"""Write CSV and TSV files."""

from __future__ import annotations

import csv
from itertools import islice
from typing import TYPE_CHECKING, Any

from maskmatch.data.cells import text_cells
from maskmatch.data.pieces import Cells, Pieces
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class _Lines(list[str]):
    """Records of a csv writer, which end in a line feed."""

    def write(self, record: str) -> None:
        # The writer ends records in \r\n, because then it quotes cells with either of the two.
        self.append(record[:-2] + "\n")


def _encoded(records: Iterable[Sequence[Any]], delimiter: str) -> bytes:
    lines = _Lines()
    csv.writer(lines, delimiter=delimiter, lineterminator="\r\n").writerows(records)
    return "".join(lines).encode()


def _pieces(delimiter: str, name: str) -> Pieces:
    def start(columns: Sequence[str]) -> bytes:
        for column in columns:
            plain = column.strip().removeprefix("\ufeff")
            if not plain or plain != column or text_cells([column], name) != [column]:
                raise MaskMatchError(
                    f"The column {column!r} would not be read back from {name}: its name is empty, or begins or ends "
                    "with white space; rename it, or write .jsonl."
                )
        return _encoded([columns], delimiter)

    def rows(columns: Sequence[str], table: Sequence[Cells], before: int) -> bytes:
        cells = iter(text_cells([row.get(column) for row in table for column in columns], name))
        return _encoded([list(islice(cells, len(columns))) for _ in table], delimiter)

    return Pieces(start, rows)


CSV, TSV = _pieces(",", "CSV"), _pieces("\t", "TSV")
