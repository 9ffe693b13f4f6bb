"""Write Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskmatch.data.cells import json_value, text_cells
from maskmatch.data.pieces import Cells, Pieces
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

ROWS_PER_GROUP = 65_536
"""How many rows a row group has, at least, but for the last one."""


def _start(columns: Sequence[str]) -> bytes:
    """An empty table, so that a file without rows has its columns, too."""
    import pyarrow

    return _stream(pyarrow.table({column: pyarrow.array([], pyarrow.null()) for column in columns}))


def _rows(columns: Sequence[str], table: Sequence[Cells], before: int) -> bytes:
    """Some rows as a stream of Arrow: only when all are known are the types of the columns known."""
    import pyarrow

    if not table:
        return b""
    names = list(dict.fromkeys((*columns, *(name for row in table for name in row))))
    return _stream(pyarrow.table({name: _array([row.get(name) for row in table]) for name in names}))


def _array(cells: list[Any]) -> Any:
    """The cells of a column, as texts if they are of several types."""
    import pyarrow

    try:
        array = pyarrow.array(cells)
    except (pyarrow.ArrowException, UnicodeError, OverflowError, TypeError, ValueError):
        return pyarrow.array(_as_texts(cells), pyarrow.string())
    if _has_empty_struct(array.type):
        return pyarrow.array(_as_texts(cells), pyarrow.string())
    if pyarrow.types.is_timestamp(array.type) and any(getattr(cell, "nanosecond", 0) for cell in cells):
        return pyarrow.array(cells, pyarrow.timestamp("ns", array.type.tz))
    return array


def _has_empty_struct(type_: Any) -> bool:
    """Whether a type has an object without keys, also in lists and other objects, which Parquet cannot hold."""
    import pyarrow

    if pyarrow.types.is_struct(type_) and not type_.num_fields:
        return True
    return any(_has_empty_struct(type_.field(place).type) for place in range(type_.num_fields))


def _as_texts(cells: Sequence[Any]) -> list[str | None]:
    texts = text_cells(cells, "Parquet", keep_nul=True)
    return [None if json_value(cell) is None else text for cell, text in zip(cells, texts, strict=True)]


def _stream(table: Any) -> bytes:
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _tables(path: Path) -> Iterator[Any]:
    """The tables of a file of streams, one after the other."""
    import pyarrow

    with pyarrow.OSFile(str(path)) as file:
        size = file.size()
        while file.tell() < size:
            with pyarrow.ipc.open_stream(file) as stream:
                yield stream.read_all()


def _finish(source: Path, target: Path) -> None:
    """Write the Parquet file, with types that fit all rows."""
    import pyarrow
    import pyarrow.parquet

    schema = _schema(source)
    waiting: list[Any] = []
    try:
        with pyarrow.parquet.ParquetWriter(str(target), schema) as writer:
            for table in _tables(source):
                waiting.append(_cast(table, schema))
                if sum(map(len, waiting)) >= ROWS_PER_GROUP:
                    writer.write_table(pyarrow.concat_tables(waiting), ROWS_PER_GROUP)
                    waiting = []
            if waiting:
                writer.write_table(pyarrow.concat_tables(waiting), ROWS_PER_GROUP)
    except pyarrow.ArrowException as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise MaskMatchError(f"The table cannot be written as Parquet ({reason}); write .jsonl.") from error


def _schema(source: Path) -> Any:
    """The types of all columns: text for a column whose values are of several types."""
    import pyarrow

    schemas = list(dict.fromkeys(table.schema.remove_metadata() for table in _tables(source)))
    names = list(dict.fromkeys(name for schema in schemas for name in schema.names))
    found = []
    for name in names:
        kinds = [pyarrow.schema([schema.field(name)]) for schema in schemas if name in schema.names]
        types = {kind.field(0).type for kind in kinds} - {pyarrow.null()}
        try:
            found.append(pyarrow.unify_schemas(kinds, promote_options="permissive").field(0))
        except pyarrow.ArrowException:
            found.append(pyarrow.field(name, pyarrow.string()))
        different = len(types) > 1 and pyarrow.types.is_struct(found[-1].type)  # objects with different keys
        if pyarrow.types.is_floating(found[-1].type) and not _fits(source, name, found[-1].type):
            found[-1] = pyarrow.field(name, pyarrow.string())  # an id of 17 digits among fractions
        if different or _has_empty_struct(found[-1].type):  # these are in partial files of an earlier version
            found[-1] = pyarrow.field(name, pyarrow.string())
    return pyarrow.schema(found)


def _fits(source: Path, name: str, type_: Any) -> bool:
    """Whether all values of a column stay the same in a type."""
    import pyarrow

    try:
        for table in _tables(source):
            if name in table.schema.names and pyarrow.types.is_integer(table.schema.field(name).type):
                table.column(name).cast(type_)
    except pyarrow.ArrowException:
        return False
    return True


def _cast(table: Any, schema: Any) -> Any:
    """A table with the types of all rows."""
    import pyarrow

    columns = []
    for field in schema:
        if field.name not in table.schema.names:
            columns.append(pyarrow.nulls(len(table), field.type))
            continue
        column = table.column(field.name)
        try:
            columns.append(column.cast(field.type, safe=False))
        except pyarrow.ArrowException:
            columns.append(pyarrow.array(_as_texts(column.to_pylist()), pyarrow.string()))
    return pyarrow.table(columns, schema=schema)


PARQUET = Pieces(_start, _rows, finish=_finish, any_columns=True, package="pyarrow")
