"""Rows of tables that are in memory already: data frames, datasets, lists of dicts, dicts of lists."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import TYPE_CHECKING, Any

from maskmatch.data.readers import read_rows
from maskmatch.data.rows import Row, refuse_repeated
from maskmatch.data.sources import is_stream
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from maskmatch.choices import Format
    from maskmatch.data.columns import Columns

_DATASETS = ("Dataset", "IterableDataset")
_DATASET_DICTS = ("DatasetDict", "IterableDatasetDict")


def rows_of(
    source: Any,
    *,
    format: Format | None = None,  # noqa: A002 (the word users know from other readers)
    encoding: str = "utf-8",
) -> Iterator[Row]:
    """Return the rows of a file, a stream, a data frame, a dataset, a list of dicts or a dict of lists.

    The place of a row in memory is its position counted from 0, as in Python.
    """
    if isinstance(source, (str, os.PathLike)):
        return read_rows(source, format=format, encoding=encoding)
    if _is_a(source, "datasets", *_DATASET_DICTS):
        splits = ", ".join(repr(str(split)) for split in source)
        raise MaskMatchError(f"The dataset is divided into the splits {splits}; give one of them.")
    if is_stream(source):
        return read_rows(source, format=format, encoding=encoding)
    name, records = _records(source)
    return _numbered(name, records)


def is_table(value: object) -> bool:
    """Tell whether a value is a table with columns in memory: a data frame, a dataset or a dict of lists.

    A list of texts is none, and neither is a dict with one text for each field.
    """
    if isinstance(value, Mapping) and not _is_a(value, "datasets", *_DATASETS, *_DATASET_DICTS):
        return bool(value) and all(_is_column(column) for column in value.values())
    return (
        _is_a(value, "pandas", "DataFrame")
        or _is_a(value, "polars", "DataFrame", "LazyFrame")
        or _is_a(value, "datasets", *_DATASETS, *_DATASET_DICTS)
    )


def class_label_names(source: Any, columns: Columns) -> dict[Any, str] | None:
    """Return the names behind the numbers in a dataset's label column, or None if there are none."""
    if columns.label is None or not _is_a(source, "datasets", *_DATASETS):
        return None
    feature = (source.features or {}).get(columns.label)
    # A column of several labels for each row wraps the feature of the single label.
    if isinstance(feature, list):
        feature = feature[0]
    names = getattr(getattr(feature, "feature", feature), "names", None)
    return dict(enumerate(names)) if names else None


def _records(source: Any) -> tuple[str, Iterator[Mapping[str, Any]]]:
    """Return what messages call the table, and its rows."""
    if _is_a(source, "pandas", "DataFrame"):
        columns = _column_names(source.columns, "The data frame")
        return "data frame", _with_names(columns, source.itertuples(index=False, name=None))
    if _is_a(source, "polars", "DataFrame"):
        return "data frame", _with_names(list(source.columns), source.iter_rows())
    if _is_a(source, "datasets", *_DATASETS):
        # Rows come as plain Python values, whatever tensors the dataset was set to return.
        return "dataset", iter(source.with_format(None))
    if isinstance(source, Mapping):
        return "dict of columns", _rows_of_columns(source)
    if isinstance(source, (list, tuple)):
        return "list", _rows_of_list(source)
    hint = "; call collect() on it first" if _is_a(source, "polars", "LazyFrame") else ""
    raise MaskMatchError(
        f"Rows cannot be read from a value of type {type(source).__name__}{hint}; give a path, '-', a "
        "stream, a data frame, a dataset, a list of dicts or a dict of lists."
    )


def _numbered(name: str, records: Iterator[Mapping[str, Any]]) -> Iterator[Row]:
    position = -1
    for position, record in enumerate(records):
        yield Row(dict(record), f"{name}, position {position}")
    if position < 0:
        raise MaskMatchError(f"The {name} has no rows; give at least one.")


def _is_a(value: object, library: str, *class_names: str) -> bool:
    """Tell whether a value is of a class of a library, without importing the library."""
    return any(
        parent.__module__.partition(".")[0] == library and parent.__name__ in class_names
        for parent in type(value).__mro__
    )


def _column_names(columns: Iterable[Any], table: str) -> list[str]:
    names = [str(column) for column in columns]
    refuse_repeated(names, table)
    return names


def _with_names(columns: list[str], rows: Iterable[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield dict(zip(columns, row, strict=True))


def _rows_of_columns(table: Mapping[Any, Any]) -> Iterator[dict[str, Any]]:
    columns = _column_names(table, "The dict of columns")
    for column, values in zip(columns, table.values(), strict=True):
        if not _is_column(values):
            raise MaskMatchError(f"The column {column!r} is a {type(values).__name__}; give a list of its values.")
    lengths = [len(values) for values in table.values()]
    if len(set(lengths)) > 1:
        listed = ", ".join(f"{column} {length}" for column, length in zip(columns, lengths, strict=True))
        raise MaskMatchError(f"The columns have different lengths ({listed}); make them equally long.")
    return _with_names(columns, zip(*table.values(), strict=True))


def _is_column(values: object) -> bool:
    return isinstance(values, Sized) and not isinstance(values, (str, bytes, Mapping, set, frozenset))


def _rows_of_list(items: list[Any] | tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    for position, item in enumerate(items):
        if isinstance(item, str):
            yield {"text": item}
        elif isinstance(item, Mapping):
            yield {str(column): value for column, value in item.items()}
        else:
            raise MaskMatchError(
                f"The list holds a {type(item).__name__} at position {position}; each item must be a dict of "
                "columns, or a text."
            )
