"""Reading CSV and TSV files."""

from __future__ import annotations

import csv
import io
import re
from itertools import chain
from typing import TYPE_CHECKING

from maskmatch.data.rows import Row, refuse_repeated
from maskmatch.data.sources import Source, open_lines, source_name
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterator

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
# The largest value that a C long holds everywhere; csv refuses a larger one on some systems.
_LARGEST_CELL = 2**31 - 1


def read_csv(source: Source, encoding: str) -> Iterator[Row]:
    """Yield the rows of a CSV file, whose delimiter is picked from its header."""
    return _read_delimited(source, encoding, delimiter=None)


def read_tsv(source: Source, encoding: str) -> Iterator[Row]:
    """Yield the rows of a TSV file."""
    return _read_delimited(source, encoding, delimiter="\t")


def _read_delimited(source: Source, encoding: str, delimiter: str | None) -> Iterator[Row]:
    name = source_name(source)
    with open_lines(source, encoding) as lines:
        records = _Records(lines, name, delimiter)
        header: list[str] | None = None
        for start, cells in records:
            if header is None:
                header = _checked_header(cells, name)
                continue
            where = f"{name}, line {start}"
            if len(cells) != len(header):
                counts = f"{_count(len(cells), 'cell')}, but the header has {_count(len(header), 'column')}"
                delimiter_name = _DELIMITERS[records.delimiter]
                raise MaskMatchError(
                    f"{where} has {counts}; put a cell that holds a {delimiter_name} in double quotes."
                )
            yield Row(dict(zip(header, cells, strict=True)), where)


class _Records:
    """The records of a delimited file with the line each begins on; blank lines are left out."""

    def __init__(self, lines: Iterator[str], name: str, delimiter: str | None) -> None:
        self.delimiter = delimiter or ","
        self._choose_delimiter = delimiter is None
        self._lines = lines
        self._name = name
        # The lines of the record being read, kept to explain what is wrong in them.
        self._record: list[str] = []

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        first_line = self._skip_blank_lines()
        reader = csv.reader(self._remember_lines(), delimiter=self.delimiter, strict=True)
        while True:
            start = first_line + reader.line_num
            self._record.clear()
            try:
                cells = _next_record(reader)
            except csv.Error as error:
                raise MaskMatchError(self._explain(start, error)) from error
            if cells is None:
                return
            if len(cells) > 1 or "".join(self._record).strip():
                yield start, cells

    def _skip_blank_lines(self) -> int:
        """Go to the header, choose the delimiter by it, and return its line number."""
        for number, line in enumerate(self._lines, start=1):
            if line.strip():
                if self._choose_delimiter:
                    self.delimiter = _delimiter_of(line)
                self._lines = chain([line], self._lines)
                return number
        return 1

    def _remember_lines(self) -> Iterator[str]:
        for line in self._lines:
            self._record.append(line)
            yield line

    def _explain(self, start: int, error: csv.Error) -> str:
        """Say which line of a broken record is wrong."""
        if "new-line" in str(error):
            return f"{self._name}, line {start} has a stray carriage return; put its cell in double quotes."
        if "unexpected end of data" not in str(error):
            last = start + max(len(self._record) - 1, 0)
            return (
                f"{self._name}, line {last} goes on behind the closing quote of a cell; put the whole cell "
                'in double quotes, and write those inside as "".'
            )
        # A reader that is not strict returns the open cell, whose lines count back to the opening quote.
        lenient = csv.reader(self._record, delimiter=self.delimiter)
        cells = _next_record(lenient) or [""]
        lines_of_cell = max(sum(1 for _ in io.StringIO(cells[-1], newline="")), 1)
        opened = start + len(self._record) - lines_of_cell
        return (
            f"{self._name}, line {opened} opens a double quote that is never closed; close it, or, if it "
            "belongs to the text, put the whole cell in double quotes and double those inside."
        )


def _next_record(reader: Iterator[list[str]]) -> list[str] | None:
    """Return the next record with cells of any size, or None at the end.

    The limit on the size of a cell is one setting for the whole process, so it is lifted only while csv is at
    work.
    """
    limit = csv.field_size_limit(_LARGEST_CELL)
    try:
        return next(reader, None)
    finally:
        csv.field_size_limit(limit)


def _delimiter_of(header: str) -> str:
    """Return the only delimiter in a header, or a comma where there is none or a choice."""
    outside_quotes = re.sub(r'"[^"]*"', "", header)
    present = [delimiter for delimiter in _DELIMITERS if delimiter in outside_quotes]
    return present[0] if len(present) == 1 else ","


def _checked_header(cells: list[str], name: str) -> list[str]:
    """Return the column names without spaces around them, each of them there and different."""
    header = [cell.strip() for cell in cells]
    if "" in header:
        raise MaskMatchError(
            f"{name} has no name for column {header.index('') + 1} in its header; name every column "
            "(a data frame is written without its index by index=False)."
        )
    refuse_repeated(header, name)
    return header


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
