"""Texts and their labels, from files, data frames, datasets, lists and dicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from maskmatch.data.columns import Columns, guess_columns
from maskmatch.data.spans import lies_in_text, read_span, span_column
from maskmatch.data.tables import class_label_names, rows_of
from maskmatch.data.values import UnusableCellError, is_empty, label_of, plain, text_of
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from maskmatch.choices import Format
    from maskmatch.data.rows import Row

_NAMED_BAD_ROWS = 3
_ROWS_AT_ONCE = 1000


@dataclass(frozen=True)
class Examples:
    """Texts with their labels.

    Attributes:
        texts: A string for each row, or, for a task with several fields or with a span, a dict of its fields.
        labels: The label of each row as the table has it, a list where a row has several; None if not wanted.
        skipped: Why and where each row that could not be used was left out.
        label_names: The names of labels that are numbers, where a dataset knows them.
        row_numbers: Which row of the table each text is, counted from 0; None if the texts are no table's.
    """

    texts: list[str | dict[str, Any]]
    labels: list[Any] | None = None
    skipped: list[str] = field(default_factory=list)
    label_names: dict[Any, str] | None = None
    row_numbers: list[int] | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.texts)


def load_examples(
    source: Any,
    fields: Sequence[str] = ("text",),
    *,
    text_field: str | None = None,
    label_field: str | None = None,
    named: Mapping[str, str] | None = None,
    want_label: bool = True,
    skip_bad_rows: bool = False,
    encoding: str = "utf-8",
    format: Format | None = None,  # noqa: A002 (the word users know from other readers)
) -> Examples:
    """Load all texts and labels of a table.

    Args:
        source: A path, "-" for standard input, a stream, a pandas or polars data frame, a `datasets.Dataset`,
            a list of dicts, or a dict of equally long lists.
        fields: The fields of the task. One field makes texts strings, several make them dicts.
        text_field: The column of the field "text" (of the first field, if the task has no "text"), if it is
            not obvious.
        label_field: The column of the label, if it is not obvious.
        named: The columns of other fields, by field, if they are not obvious. A field that is marked by a
            span in the text, such as "head" by "head_span", needs no column of its own.
        want_label: Whether every row needs a label.
        skip_bad_rows: Leave out rows without a usable text or label and list them in `skipped`, instead of
            refusing the table.
        encoding: The encoding of a text file.
        format: The format of a file, if its suffix does not tell.

    Raises:
        MaskMatchError: If the table cannot be read, its columns are not obvious, or a row cannot be used.
    """
    chunks = list(
        iter_examples(
            source,
            fields,
            text_field=text_field,
            label_field=label_field,
            named=named,
            want_label=want_label,
            skip_bad_rows=True,  # so that the message below knows all of them
            encoding=encoding,
            format=format,
        )
    )
    examples = _joined(chunks)
    if examples.skipped and not (skip_bad_rows and examples.texts):
        raise MaskMatchError(_bad_rows(examples.skipped, none_left=skip_bad_rows))
    return examples


def iter_examples(
    source: Any,
    fields: Sequence[str] = ("text",),
    *,
    text_field: str | None = None,
    label_field: str | None = None,
    named: Mapping[str, str] | None = None,
    want_label: bool = True,
    skip_bad_rows: bool = False,
    encoding: str = "utf-8",
    format: Format | None = None,  # noqa: A002 (the word users know from other readers)
    chunk_size: int = _ROWS_AT_ONCE,
) -> Iterator[Examples]:
    """Yield the examples of a table in chunks, for tables larger than memory.

    The columns are found by the rows of the first chunk. A chunk has `chunk_size` rows, less those that were
    skipped, so it may be empty.

    The arguments are those of `load_examples`, and `chunk_size`, the number of rows to read at once. A row
    that cannot be used stops the iteration at its chunk, unless such rows are to be skipped.

    Raises:
        MaskMatchError: As for `load_examples`, when the iteration comes to it.
    """
    if chunk_size < 1:
        raise MaskMatchError(f"The chunk size is {chunk_size}; it must be 1 or more.")
    task_fields = _checked_fields(fields)
    columns_named = _with_text_field(named, text_field, task_fields)
    rows = rows_of(source, format=format, encoding=encoding)
    columns: Columns | None = None
    label_names: dict[Any, str] | None = None
    first = 0
    while chunk := list(islice(rows, chunk_size)):
        if columns is None:
            present = list(dict.fromkeys(column for row in chunk for column in row.fields))
            columns = guess_columns(present, task_fields, named=columns_named, label=label_field, want_label=want_label)
            label_names = class_label_names(source, columns)
        examples = _converted(chunk, first, task_fields, columns, label_names)
        first += len(chunk)
        if examples.skipped and not skip_bad_rows:
            raise MaskMatchError(_bad_rows(examples.skipped))
        yield examples


def _joined(chunks: list[Examples]) -> Examples:
    first = chunks[0]
    return Examples(
        texts=[text for chunk in chunks for text in chunk.texts],
        labels=None if first.labels is None else [label for chunk in chunks for label in chunk.labels or []],
        skipped=[reason for chunk in chunks for reason in chunk.skipped],
        label_names=first.label_names,
        row_numbers=[number for chunk in chunks for number in chunk.row_numbers or []],
    )


def _converted(
    rows: list[Row], first: int, fields: Sequence[str], columns: Columns, label_names: dict[Any, str] | None
) -> Examples:
    """Turn rows into examples; those that cannot be used are listed as skipped."""
    texts: list[str | dict[str, Any]] = []
    labels: list[Any] = []
    skipped: list[str] = []
    numbers: list[int] = []
    for number, row in enumerate(rows, first):
        try:
            text = _text(row, fields, columns)
            label = None if columns.label is None else label_of(row.fields.get(columns.label), label_names)
        except UnusableCellError as reason:
            skipped.append(f"{row.where}: {reason}")
        else:
            texts.append(text)
            labels.append(label)
            numbers.append(number)
    return Examples(texts, None if columns.label is None else labels, skipped, label_names, numbers)


def _text(row: Row, fields: Sequence[str], columns: Columns) -> str | dict[str, Any]:
    """Return the text of a row: a string if there is nothing but one field."""
    # A column may be missing from the rows that the columns were found by, so its own name is looked up too.
    cells = {
        name: row.fields.get(columns.fields.get(name, name))
        for field_name in fields
        for name in (field_name, span_column(field_name))
    }
    values: dict[str, Any] = {}
    for name in fields:
        marked = "text" in fields and lies_in_text(name) and not is_empty(plain(cells[span_column(name)]))
        if not (marked and is_empty(cells[name])):
            values[name] = text_of(cells[name], name)
    for name in fields:
        host = values.get("text" if lies_in_text(name) else name)
        span = read_span(cells[span_column(name)], name, host)
        if span is not None:
            if host is not None:
                values.setdefault(name, host[slice(*span)])
            values[span_column(name)] = span
    return str(values[fields[0]]) if len(values) == 1 else values


def _checked_fields(fields: Sequence[str]) -> list[str]:
    names = [fields] if isinstance(fields, str) else list(fields)
    if not names or len(set(names)) < len(names) or "label" in names:
        raise MaskMatchError(
            f"The fields are {names}; a task has at least one field, each with a name of its own other than 'label'."
        )
    return names


def _with_text_field(named: Mapping[str, str] | None, text_field: str | None, fields: list[str]) -> dict[str, str]:
    """Add the column of the text to those of the other fields; a task without a "text" has a first field."""
    columns = dict(named or {})
    main_field = "text" if "text" in fields else fields[0]
    if text_field is not None and columns.setdefault(main_field, text_field) != text_field:
        raise MaskMatchError(
            f"The {main_field} is to come from the columns {text_field!r} and {columns[main_field]!r}; name "
            "one of them."
        )
    return columns


def _bad_rows(reasons: Sequence[str], *, none_left: bool = False) -> str:
    """Name the first bad rows and say how many there are."""
    more = len(reasons) - _NAMED_BAD_ROWS
    listed = "; ".join(reasons[:_NAMED_BAD_ROWS]) + (f"; and {more} more" if more > 0 else "")
    rows, them = ("1 row", "it") if len(reasons) == 1 else (f"{len(reasons)} rows", "them")
    if none_left:
        return f"No row is left, as {rows} cannot be used ({listed})."
    return (
        f"{rows} cannot be used ({listed}); mend {them}, or leave {them} out with --skip-bad-rows "
        "(skip_bad_rows=True in Python)."
    )
