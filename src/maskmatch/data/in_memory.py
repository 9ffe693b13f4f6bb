"""Rows of in-memory tables: data frames, Hugging Face datasets, lists of dicts, dicts of lists."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maskmatch.data.formats import read_rows
from maskmatch.data.rows import Row, check_equal_lengths, check_unique_columns
from maskmatch.data.streams import is_stream
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from maskmatch.data.columns import Columns
    from maskmatch.data.formats import Format

_DATASETS = ("Dataset", "IterableDataset")
_DATASET_DICTS = ("DatasetDict", "IterableDatasetDict")


def rows_of(
    source: Any,
    *,
    format: Format | None = None,  # noqa: A002 (the word users know from other readers)
    encoding: str = "utf-8",
) -> Iterator[Row]:
    """Return the rows of a file, a stream, a data frame, a dataset, a list of dicts or a dict of lists.

    The location of an in-memory row is its position, counted from 0 as in Python. Rows of a file that cannot be read
    have a ``problem``.
    """
    if isinstance(source, (str, os.PathLike)):
        return read_rows(source, format=format, encoding=encoding, keep_bad=True)
    if _is_instance(source, "datasets", *_DATASET_DICTS):
        splits = ", ".join(repr(str(split)) for split in source)
        raise MaskMatchError(f"The dataset has the splits {splits}; pass one of them.")
    if is_stream(source):
        return read_rows(source, format=format, encoding=encoding, keep_bad=True)
    for kind in _TABLE_KINDS:
        if kind.matches(source):
            return _numbered_rows(kind.name, kind.records(source))
    hint = "; call collect() on it first" if _is_instance(source, "polars", "LazyFrame") else ""
    raise MaskMatchError(
        f"Cannot read rows from a value of type {type(source).__name__}{hint}; give a path, '-', a stream, a data "
        "frame, a dataset, a list of dicts or a dict of lists."
    )


def is_table(value: object) -> bool:
    """Whether a value is an in-memory table with columns: a data frame, a dataset or a dict of lists.

    A list of texts is not a table, nor is a dict of fields, which is a single text.
    """
    if isinstance(value, Mapping) and not _is_instance(value, "datasets", *_DATASETS, *_DATASET_DICTS):
        return bool(value) and all(_is_column(column) for column in value.values())
    return (
        _is_instance(value, "pandas", "DataFrame")
        or _is_instance(value, "polars", "DataFrame", "LazyFrame")
        or _is_instance(value, "datasets", *_DATASETS, *_DATASET_DICTS)
    )


def class_label_names(source: Any, columns: Columns) -> dict[Any, str] | None:
    """Return the class names of a dataset's label column by class index, or None if it has none."""
    if columns.label is None or not _is_instance(source, "datasets", *_DATASETS):
        return None
    feature = (source.features or {}).get(columns.label)
    # In a multi-label column, the feature of a single label is nested in a sequence.
    if isinstance(feature, list):
        feature = feature[0]
    names = getattr(getattr(feature, "feature", feature), "names", None)
    return dict(enumerate(names)) if names else None


@dataclass(frozen=True)
class _TableKind:
    """A kind of in-memory table.

    Attributes:
        name: Its name in error messages.
        matches: Whether a value is of this kind.
        records: The rows of a table of this kind, each as a dict by column name.
    """

    name: str
    matches: Callable[[Any], bool]
    records: Callable[[Any], Iterator[Mapping[str, Any]]]


def _numbered_rows(name: str, records: Iterator[Mapping[str, Any]]) -> Iterator[Row]:
    position = -1
    for position, record in enumerate(records):
        yield Row(dict(record), f"{name}, position {position}")
    if position < 0:
        raise MaskMatchError(f"The {name} has no rows; give at least one.")


def _is_instance(value: object, library: str, *class_names: str) -> bool:
    """Whether a value is an instance of a library's class, without importing the library."""
    return any(
        parent.__module__.partition(".")[0] == library and parent.__name__ in class_names
        for parent in type(value).__mro__
    )


def _column_names(columns: Iterable[Any], table: str) -> list[str]:
    names = [str(column) for column in columns]
    check_unique_columns(names, table)
    return names


def _name_cells(columns: list[str], rows: Iterable[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield dict(zip(columns, row, strict=True))


def _pandas_records(frame: Any) -> Iterator[dict[str, Any]]:
    return _name_cells(_column_names(frame.columns, "The data frame"), frame.itertuples(index=False, name=None))


def _polars_records(frame: Any) -> Iterator[dict[str, Any]]:
    return _name_cells(list(frame.columns), frame.iter_rows())


def _dataset_records(dataset: Any) -> Iterator[Mapping[str, Any]]:
    # Without a format, rows are plain Python values, even if the dataset is set to return tensors.
    return iter(dataset.with_format(None))


def _column_records(table: Mapping[Any, Any]) -> Iterator[dict[str, Any]]:
    columns = _column_names(table, "The dict of columns")
    for column, values in zip(columns, table.values(), strict=True):
        if not _is_column(values):
            raise MaskMatchError(f"The column {column!r} is a {type(values).__name__}; give a list of values.")
    lengths = dict(zip(columns, map(len, table.values()), strict=True))
    check_equal_lengths(lengths, "The dict of columns")
    return _name_cells(columns, zip(*table.values(), strict=True))


def _is_column(values: object) -> bool:
    return isinstance(values, Sized) and not isinstance(values, (str, bytes, Mapping, set, frozenset))


def _list_records(items: list[Any] | tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    for position, item in enumerate(items):
        if isinstance(item, str):
            yield {"text": item}
        elif isinstance(item, Mapping):
            yield {str(column): value for column, value in item.items()}
        else:
            raise MaskMatchError(
                f"The list has a value of type {type(item).__name__} at position {position}; each item must be a dict "
                "of columns, or a text."
            )


_TABLE_KINDS = (
    _TableKind("data frame", lambda value: _is_instance(value, "pandas", "DataFrame"), _pandas_records),
    _TableKind("data frame", lambda value: _is_instance(value, "polars", "DataFrame"), _polars_records),
    _TableKind("dataset", lambda value: _is_instance(value, "datasets", *_DATASETS), _dataset_records),
    _TableKind("dict of columns", lambda value: isinstance(value, Mapping), _column_records),
    _TableKind("list", lambda value: isinstance(value, (list, tuple)), _list_records),
)
"""The kinds of tables; the first that matches reads the table."""
