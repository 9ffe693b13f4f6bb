"""Rows of files by their numbers: tables in the columns of the file, and plain rows for the classifier."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from maskmatch.data.formats import READERS, read_rows
from maskmatch.data.rows import check_unique_columns
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import pyarrow as pa

    from maskmatch.data.formats import Format
    from maskmatch.data.rows import Row
    from maskmatch.integrations.places import Place

BATCH = 1024
"""How many rows of a Parquet file are read at once."""


@dataclass(frozen=True)
class Rows:
    """Some rows of a file.

    Attributes:
        table: All their columns, to write them again.
        plain: The cells of the columns that were asked for, by column.
        numbers: Their numbers in the file, as ``maskmatch predict`` prints them.
        problems: Why rows could not be read, by their place.
    """

    table: pa.Table
    plain: list[dict[str, Any]]
    numbers: list[int]
    problems: dict[int, str] = field(default_factory=dict)


def format_of(name: str, given: Format | None = None) -> Format | None:
    """The format of a file: as given, or by its suffix; None if neither is known."""
    if given is not None:
        return given
    suffix = name.lower().removesuffix(".gz").rpartition(".")[2]
    return next((known for known in READERS if known == suffix), None)


def open_rows(place: Place, format: Format, encoding: str) -> ParquetRows | TextRows:  # noqa: A002
    """Open a file to read ranges of its rows."""
    if format == "parquet" and not str(place).endswith(".gz"):
        return ParquetRows(place)
    return TextRows(place, format, encoding)


class ParquetRows:
    """The rows of a Parquet file, with their types. Only the row groups of a range are read."""

    def __init__(self, place: Place) -> None:
        import pyarrow.parquet

        self._place = place
        with _parquet_errors(place):
            self._file = pyarrow.parquet.ParquetFile(place.open())
            groups = self._file.metadata.num_row_groups
            self._sizes = [self._file.metadata.row_group(group).num_rows for group in range(groups)]
        self.columns: list[str] = self._file.schema_arrow.names
        check_unique_columns(self.columns, str(place))
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._waiting: pa.Table | None = None
        self._position = self._end = -1  # the next row of what is being read, and where its row group ends

    def count(self) -> int:
        """How many rows there are."""
        return sum(self._sizes)

    def read(self, start: int, stop: int, columns: Collection[str]) -> Rows:
        """Rows by their numbers. It goes on where the last call ended, if that was in the same row group.

        Args:
            start: The number of the first row.
            stop: The number after the last row.
            columns: The columns that are needed as plain cells; others may have values that Python cannot hold.
        """
        import pyarrow as pa

        from maskmatch.integrations.arrow import plain_rows

        with _parquet_errors(self._place):
            if self._position != start and not 0 <= self._position <= start < self._end:
                self._seek(start)
            parts = []
            while self._position < stop:
                batch = self._next()
                begin = min(max(start - self._position, 0), len(batch))
                taken = batch.slice(begin, stop - self._position - begin)
                parts.append(taken)
                used = min(begin + len(taken), len(batch))
                self._position += used
                self._waiting = batch.slice(used) if used < len(batch) else None
            table = pa.concat_tables(parts) if parts else self._file.schema_arrow.empty_table()
            plain, problems = plain_rows(table.select(list(dict.fromkeys(columns))))
            return Rows(table.combine_chunks(), plain, list(range(start, stop)), problems)

    def _seek(self, start: int) -> None:
        first = group = 0
        while group < len(self._sizes) - 1 and first + self._sizes[group] <= start:
            first += self._sizes[group]
            group += 1
        groups = list(range(group, len(self._sizes)))
        self._batches = self._file.iter_batches(batch_size=BATCH, row_groups=groups)
        self._waiting, self._position, self._end = None, first, first + self._sizes[group]

    def _next(self) -> pa.Table:
        import pyarrow as pa

        if self._waiting is not None:
            return self._waiting
        batch = next(self._batches, None)
        if batch is None:
            raise ValueError("it has fewer rows than it says")
        return pa.Table.from_batches([batch])


class TextRows:
    """The rows of a CSV, JSON or text file, read from its start; their cells are strings in the table."""

    def __init__(self, place: Place, format: Format, encoding: str) -> None:  # noqa: A002
        self._place, self._format, self._encoding = place, format, encoding
        self._rows: Iterator[Row] = iter(())
        self._position = -1
        self._number = -1
        self.columns: list[str] = []

    def count(self) -> int:
        """How many rows there are; finds all columns, too."""
        columns: dict[str, None] = {}
        rows = 0
        for row in self._open():
            columns.update(dict.fromkeys(row.fields))
            rows += 1
        self.columns = list(columns)
        return rows

    def read(self, start: int, stop: int, columns: Collection[str]) -> Rows:
        """Rows by their places. It goes on where the last call ended, if that was before."""
        import pyarrow as pa

        if not 0 <= self._position <= start:
            self._rows, self._position, self._number = self._open(), 0, -1
        for row in islice(self._rows, start - self._position):
            self._number = self._number + 1 if row.number is None else row.number
        fields, numbers, problems = [], [], {}
        for place, row in enumerate(islice(self._rows, stop - start)):
            self._number = self._number + 1 if row.number is None else row.number
            fields.append(row.fields)
            numbers.append(self._number)
            if row.problem is not None:
                problems[place] = row.problem
        self._position = start + len(fields)
        cells = {name: pa.array([_as_text(row.get(name)) for row in fields], pa.string()) for name in self.columns}
        plain = [{name: row[name] for name in columns if name in row} for row in fields]
        return Rows(pa.table(cells), plain, numbers, problems)

    def _open(self) -> Iterator[Row]:
        local = self._place.local
        source: Any = local if local is not None else _Named(self._place)
        return read_rows(source, format=self._format, encoding=self._encoding, keep_bad=True, may_be_empty=True)


class _Named(io.BufferedReader):
    """A file of an object store, which has its name in errors."""

    def __init__(self, place: Place) -> None:
        super().__init__(_Raw(place.open()))
        self._place_name = str(place)

    @property
    def name(self) -> str:
        return self._place_name


class _Raw(io.RawIOBase):
    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


@contextmanager
def _parquet_errors(place: Place) -> Iterator[None]:
    """What a damaged Parquet file makes pyarrow raise, in one sentence."""
    from pyarrow import ArrowException

    try:
        yield
    except MaskMatchError:
        raise
    except (ArrowException, OSError, ValueError, OverflowError, NotImplementedError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".") or "the file is damaged"
        raise MaskMatchError(f"{place} cannot be read as Parquet: {reason}.") from error


def _as_text(cell: Any) -> str | None:
    """A cell as a string, so that all partitions have the same types: lists and numbers as JSON."""
    if cell is None:
        return None
    if isinstance(cell, str):
        return cell.encode("utf-8", "replace").decode()
    plain = cell if isinstance(cell, (bool, int, float, list, Mapping)) else str(cell)
    return json.dumps(plain, ensure_ascii=True, default=str)
