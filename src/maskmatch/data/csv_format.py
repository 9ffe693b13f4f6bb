"""Read CSV and TSV files."""

from __future__ import annotations

import csv
import io
import re
from itertools import chain
from typing import TYPE_CHECKING

from maskmatch.data.limits import VARIABLE, limits
from maskmatch.data.rows import Row, check_unique_columns
from maskmatch.data.streams import Source, open_lines, source_name
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterator

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
# The largest C long on every platform; on some, csv raises for a larger limit.
_MAX_CELL_SIZE = 2**31 - 1


def read_csv(source: Source, encoding: str) -> Iterator[Row]:
    """Yield the rows of a CSV file. Its delimiter is detected from the header."""
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
                header = _parse_header(cells, name)
                continue
            where = f"{name}, line {start}"
            if len(cells) != len(header):
                counts = f"{_count(len(cells), 'cell')}, but the header has {_count(len(header), 'column')}"
                delimiter_name = _DELIMITERS[records.delimiter]
                if records.lines > 1:  # it may have swallowed rows, so it is more than a row to skip
                    raise MaskMatchError(
                        f"{name}, lines {start} to {start + records.lines - 1} have {counts}; a double quote is "
                        "probably missing or in the wrong place."
                    )
                hint = (
                    "add the cells that are missing"
                    if len(cells) < len(header)
                    else f"put a cell that contains a {delimiter_name} in double quotes"
                )
                problem = f"{where} has {counts}; {hint}."
                yield Row({}, where, problem=problem)
                continue
            yield Row(dict(zip(header, cells, strict=True)), where)


class _Records:
    """The records of a delimited file, each with the number of its first line. Blank lines are skipped."""

    def __init__(self, lines: Iterator[str], name: str, delimiter: str | None) -> None:
        self.delimiter = delimiter or ","
        self._detect_delimiter = delimiter is None
        self._lines = lines
        self._name = name
        # The lines of the current record, for error messages.
        self._record: list[str] = []
        self._size, self._start = 0, 1

    @property
    def lines(self) -> int:
        """The number of lines of the current record."""
        return len(self._record)

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        first_line = self._find_header()
        reader = csv.reader(self._record_lines(), delimiter=self.delimiter, strict=True)
        while True:
            start = first_line + reader.line_num
            self._record.clear()
            self._size, self._start = 0, start
            try:
                cells = _next_record(reader)
            except csv.Error as error:
                raise MaskMatchError(self._explain(start, error)) from error
            if cells is None:
                return
            if len(cells) > 1 or "".join(self._record).strip():
                yield start, cells

    def _find_header(self) -> int:
        """Skip blank lines, detect the delimiter from the header, and return the header's line number."""
        for number, line in enumerate(self._lines, start=1):
            if line.strip():
                if self._detect_delimiter:
                    self.delimiter = _delimiter_of(line)
                self._lines = chain([line], self._lines)
                return number
        return 1

    def _record_lines(self) -> Iterator[str]:
        most = limits().record
        for line in self._lines:
            self._record.append(line)
            self._size += len(line)
            if self._size > most:
                raise MaskMatchError(self._unclosed(most))
            yield line

    def _unclosed(self, most: int) -> str:
        return (
            f"{self._name}, line {self._start} starts a record of more than {most:,} characters; a double quote is "
            f"probably never closed. If that is right, raise the limit with {VARIABLE}=record=NUMBER."
        )

    def _explain(self, start: int, error: csv.Error) -> str:
        """The error message for a malformed record, with the line to correct."""
        if "new-line" in str(error):
            return f"{self._name}, line {start} contains a stray carriage return; put its cell in double quotes."
        if "unexpected end of data" not in str(error):
            last = start + max(len(self._record) - 1, 0)
            return (
                f"{self._name}, line {last} continues after the closing quote of a cell; put the whole cell in double "
                'quotes, and write each double quote inside it as "".'
            )
        # A reader that is not strict returns the unclosed cell; its number of lines leads back to the opening quote.
        lenient = csv.reader(self._record, delimiter=self.delimiter)
        cells = _next_record(lenient) or [""]
        lines_of_cell = max(sum(1 for _ in io.StringIO(cells[-1], newline="")), 1)
        opened = start + len(self._record) - lines_of_cell
        return (
            f"{self._name}, line {opened} opens a double quote that is never closed; close it, or, if it is part of "
            'the text, put the whole cell in double quotes and write each double quote inside it as "".'
        )


def _next_record(reader: Iterator[list[str]]) -> list[str] | None:
    """Return the next record, with cells of any size, or None at the end.

    The csv module's limit on the cell size applies to the whole process, so it is raised only during this call.
    """
    limit = csv.field_size_limit(_MAX_CELL_SIZE)
    try:
        return next(reader, None)
    finally:
        csv.field_size_limit(limit)


def _delimiter_of(header: str) -> str:
    """Return the delimiter that occurs in a header; a comma if none or several occur."""
    outside_quotes = re.sub(r'"[^"]*"', "", header)
    present = [delimiter for delimiter in _DELIMITERS if delimiter in outside_quotes]
    return present[0] if len(present) == 1 else ","


def _parse_header(cells: list[str], name: str) -> list[str]:
    """Strip the column names; raise if one is empty or occurs twice."""
    header = [cell.strip() for cell in cells]
    if "" in header:
        raise MaskMatchError(
            f"{name} has no name for column {header.index('') + 1} in its header; name every column "
            "(for a data frame, write the file with index=False)."
        )
    check_unique_columns(header, name)
    return header


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
