"""Load texts and labels from files, data frames, datasets, lists and dicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from maskmatch.data.columns import Columns, guess_columns
from maskmatch.data.in_memory import class_label_names, is_table, rows_of
from maskmatch.data.label_cells import read_label_cells
from maskmatch.data.rows import TableRows
from maskmatch.data.spans import occurs_in_text, read_span, span_column
from maskmatch.data.values import InvalidCellError, is_blank, is_empty_label, to_label, to_python, to_text
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from maskmatch.data.formats import Format
    from maskmatch.data.rows import Row

_MAX_LISTED = 3
_CHUNK_SIZE = 1000


@dataclass(frozen=True)
class Examples:
    """Texts with their labels.

    Attributes:
        texts: One text per row: a string, or a dict of fields if the task has several fields or the row has a span.
        labels: One label per row, as in the table; a list if the row has several. None if no labels were wanted.
        skipped: The location of each skipped row, and the reason.
        label_names: The class names of integer labels, if the dataset has them.
        row_numbers: The row number of each text in its table, counted from 0; None if the texts are not from a table.
        weights: How much each row counts in training; None: all the same.
        table: All rows as they were, those that were skipped too, if they were to be kept.
    """

    texts: list[str | dict[str, Any]]
    labels: list[Any] | None = None
    skipped: list[str] = field(default_factory=list)
    label_names: dict[Any, str] | None = None
    row_numbers: list[int] | None = field(default=None, compare=False)
    weights: list[float] | None = None
    table: TableRows | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.texts)

    def with_weight(self) -> Examples:
        """The rows whose weight is not 0."""
        if self.weights is None or all(self.weights):
            return self
        return self.select([row for row, weight in enumerate(self.weights) if weight])

    def select(self, rows: Sequence[int]) -> Examples:
        """Some of the rows."""
        return replace(
            self,
            table=None,
            texts=[self.texts[row] for row in rows],
            labels=None if self.labels is None else [self.labels[row] for row in rows],
            row_numbers=None if self.row_numbers is None else [self.row_numbers[row] for row in rows],
            weights=None if self.weights is None else [self.weights[row] for row in rows],
        )

    def split_empty_labels(self) -> tuple[Examples, list[str | dict[str, Any]]]:
        """The rows that have a label, and the texts of those whose label is empty."""
        labels = self.labels or []
        kept = [row for row, label in enumerate(labels) if not is_empty_label(label)]
        if len(kept) == len(labels):
            return self, []
        return self.select(kept), [self.texts[row] for row in range(len(labels)) if is_empty_label(labels[row])]


def load_examples(
    source: Any,
    fields: Sequence[str] = ("text",),
    *,
    text_field: str | None = None,
    label_field: str | None = None,
    named: Mapping[str, str] | None = None,
    want_label: bool = True,
    skip_bad_rows: bool = False,
    empty_labels: bool = False,
    multi_label: bool = False,
    label_separator: str | None = None,
    keep_rows: bool = False,
    encoding: str = "utf-8",
    format: Format | None = None,  # noqa: A002 (the word users know from other readers)
) -> Examples:
    """Load all texts and labels of a table.

    Args:
        source: A path, "-" for standard input, a stream, a pandas or polars data frame, a `datasets.Dataset`,
            a list of dicts, or a dict of lists of equal length.
        fields: The fields of the task. With one field, texts are strings; with several, dicts.
        text_field: The column of the field "text" (of the first field, if the task has no "text"), if it is not
            obvious.
        label_field: The label column, if it is not obvious.
        named: The columns of other fields, by field, if they are not obvious. A field with a span in the text, such
            as "head" with "head_span", needs no column of its own.
        want_label: Whether every row needs a label.
        skip_bad_rows: Skip rows with an invalid text or label and list them in `skipped`, instead of raising.
        empty_labels: Whether a row may have an empty label, which becomes None; otherwise the row is invalid.
        multi_label: Whether a row may have several labels. Cells such as ``a|b`` or ``["a", "b"]``, which are strings
            in CSV, are then read as lists, where it is clear that they are.
        label_separator: What separates several labels in a cell, such as "|" or ";"; "none": each cell is one label.
        keep_rows: Whether to keep all columns of all rows, in `table`.
        encoding: The encoding of a text file.
        format: The format of a file, if it has no known suffix.

    Raises:
        MaskMatchError: If the table cannot be read, its columns are not obvious, or a row is invalid.
    """
    chunks = iter_examples(
        source,
        fields,
        text_field=text_field,
        label_field=label_field,
        named=named,
        want_label=want_label,
        skip_bad_rows=True,  # so that the error below counts all invalid rows
        empty_labels=empty_labels,
        keep_rows=keep_rows,
        encoding=encoding,
        format=format,
    )
    try:
        examples = _concatenate(list(chunks))
    except _NothingReadError as error:
        raise MaskMatchError(_invalid_rows(error.reasons, none_left=skip_bad_rows)) from None
    if examples.skipped and not (skip_bad_rows and examples.texts):
        raise MaskMatchError(_invalid_rows(examples.skipped, none_left=skip_bad_rows))
    if examples.labels is None:
        return examples
    return replace(
        examples, labels=read_label_cells(examples.labels, multi_label=multi_label, separator=label_separator)
    )


def iter_examples(
    source: Any,
    fields: Sequence[str] = ("text",),
    *,
    text_field: str | None = None,
    label_field: str | None = None,
    named: Mapping[str, str] | None = None,
    want_label: bool = True,
    skip_bad_rows: bool = False,
    empty_labels: bool = False,
    keep_rows: bool = False,
    encoding: str = "utf-8",
    format: Format | None = None,  # noqa: A002 (the word users know from other readers)
    chunk_size: int = _CHUNK_SIZE,
) -> Iterator[Examples]:
    """Yield the examples of a table in chunks, for tables larger than memory.

    The arguments are those of `load_examples`, and `chunk_size`, the number of rows per chunk. A cell is one label, as
    it takes all rows to see whether cells hold several. Skipped rows count, so a chunk may have fewer examples, or
    none. The columns are found in the first chunk. Unless invalid rows are skipped, the iteration raises at the chunk
    of the first one.

    Raises:
        MaskMatchError: As for `load_examples`, when the iteration reaches the error.
    """
    if chunk_size < 1:
        raise MaskMatchError(f"The chunk size is {chunk_size}; it must be 1 or more.")
    task_fields = _check_fields(fields)
    columns_named = _add_text_field(named, text_field, task_fields)
    rows = rows_of(source, format=format, encoding=encoding)
    columns: Columns | None = None
    label_names: dict[Any, str] | None = None
    first = 0
    unread: list[str] = []  # the rows before the first one that can be read
    before: list[Row] = []  # the same rows, to be kept
    while chunk := list(islice(rows, chunk_size)):
        if columns is None:
            present = list(dict.fromkeys(column for row in chunk for column in row.fields))
            if all(row.problem for row in chunk):
                unread += [_reason(row) for row in chunk]
                before += chunk if keep_rows else []
                first += len(chunk)
                if not skip_bad_rows:
                    raise MaskMatchError(_invalid_rows(unread))
                continue
            columns = guess_columns(present, task_fields, named=columns_named, label=label_field, want_label=want_label)
            label_names = class_label_names(source, columns)
        examples = _to_examples(chunk, first, task_fields, columns, label_names, empty_labels=empty_labels)
        if keep_rows:
            kept = TableRows(before + chunk, [*unread, *_problems(chunk, first, examples)])
            examples = replace(examples, table=kept)
        examples.skipped[:0] = unread
        unread, before = [], []
        first += len(chunk)
        if examples.skipped and not skip_bad_rows:
            raise MaskMatchError(_invalid_rows(examples.skipped))
        yield examples
    if unread:
        raise _NothingReadError(unread)


class _NothingReadError(MaskMatchError):
    """No row of a file can be read."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__(_invalid_rows(reasons, none_left=True))
        self.reasons = reasons


def _concatenate(chunks: list[Examples]) -> Examples:
    first = chunks[0]
    return Examples(
        texts=[text for chunk in chunks for text in chunk.texts],
        labels=None if first.labels is None else [label for chunk in chunks for label in chunk.labels or []],
        skipped=[reason for chunk in chunks for reason in chunk.skipped],
        label_names=first.label_names,
        row_numbers=[number for chunk in chunks for number in chunk.row_numbers or []],
        table=None if first.table is None else _joined([chunk.table for chunk in chunks if chunk.table is not None]),
    )


def _joined(tables: Sequence[TableRows]) -> TableRows:
    return TableRows([row for each in tables for row in each.rows], [why for each in tables for why in each.problems])


def _to_examples(
    rows: list[Row],
    first: int,
    fields: Sequence[str],
    columns: Columns,
    label_names: dict[Any, str] | None,
    *,
    empty_labels: bool,
) -> Examples:
    """Convert rows to examples, and list the invalid rows as skipped."""
    texts: list[str | dict[str, Any]] = []
    labels: list[Any] = []
    skipped: list[str] = []
    numbers: list[int] = []
    for number, row in enumerate(rows, first):
        if row.problem is not None:
            skipped.append(_reason(row))
            continue
        try:
            text = _read_text(row, fields, columns)
            cell = None if columns.label is None else row.fields.get(columns.label)
            unlabelled = columns.label is None or (empty_labels and is_empty_label(cell))
            label = None if unlabelled else to_label(cell, label_names)
        except InvalidCellError as reason:
            skipped.append(f"{row.where}: {reason}")
        else:
            texts.append(text)
            labels.append(label)
            numbers.append(number if row.number is None else row.number)
    return Examples(texts, None if columns.label is None else labels, skipped, label_names, numbers)


def _problems(rows: list[Row], first: int, examples: Examples) -> Iterator[str | None]:
    """Why each row was skipped; None if it was not."""
    good = set(examples.row_numbers or ())
    reasons = iter(examples.skipped)
    for number, row in enumerate(rows, first):
        yield None if (number if row.number is None else row.number) in good else next(reasons)


def _reason(row: Row) -> str:
    """Why a row cannot be read, as part of a sentence."""
    return (row.problem or "").rstrip(".")


def _read_text(row: Row, fields: Sequence[str], columns: Columns) -> str | dict[str, Any]:
    """Return the text of a row: a string if it has a single field and no span, else a dict."""
    # A column may be absent from the first chunk, where the columns were found, so look up the field's own name too.
    cells = {
        name: row.fields.get(columns.fields.get(name, name))
        for field_name in fields
        for name in (field_name, span_column(field_name))
    }
    values: dict[str, Any] = {}
    for name in fields:
        has_span = "text" in fields and occurs_in_text(name) and not is_blank(to_python(cells[span_column(name)]))
        if not (has_span and is_blank(cells[name])):
            values[name] = to_text(cells[name], name)
    for name in fields:
        text = values.get("text" if occurs_in_text(name) else name)
        span = read_span(cells[span_column(name)], name, text)
        if span is not None:
            if text is not None:
                values.setdefault(name, text[slice(*span)])
            values[span_column(name)] = span
    return str(values[fields[0]]) if len(values) == 1 else values


def _check_fields(fields: Sequence[str]) -> list[str]:
    names = [fields] if isinstance(fields, str) else list(fields)
    if not names or len(set(names)) < len(names) or "label" in names:
        raise MaskMatchError(
            f"The fields are {names}; a task needs at least one field, with unique names other than 'label'."
        )
    return names


def _add_text_field(named: Mapping[str, str] | None, text_field: str | None, fields: list[str]) -> dict[str, str]:
    """Add the text column to the named columns. In a task without a field "text", it belongs to the first field."""
    columns = dict(named or {})
    main_field = "text" if "text" in fields else fields[0]
    if text_field is not None and columns.setdefault(main_field, text_field) != text_field:
        raise MaskMatchError(
            f"The field {main_field} has two columns, {text_field!r} and {columns[main_field]!r}; name one of them."
        )
    return columns


def _invalid_rows(reasons: Sequence[str], *, none_left: bool = False) -> str:
    """The error message for invalid rows: the first ones, and their number."""
    more = len(reasons) - _MAX_LISTED
    listed = "; ".join(reasons[:_MAX_LISTED]) + (f"; and {more} more" if more > 0 else "")
    rows, them = ("1 row", "it") if len(reasons) == 1 else (f"{len(reasons)} rows", "them")
    if none_left:
        return f"No row is left, because {rows} cannot be used ({listed})."
    return (
        f"{rows} cannot be used ({listed}); correct {them}, or skip {them} with --skip-bad-rows "
        "(skip_bad_rows=True in Python)."
    )


def take_texts(texts: Any, fields: Sequence[str], *, allow_empty: bool = False) -> list[Any]:
    """Read the texts that a caller passes as a list, an array, a series, a data frame or a dataset."""
    if is_table(texts):
        return load_examples(texts, fields, want_label=False).texts
    if isinstance(texts, (str, dict)) or not isinstance(texts, Iterable):
        raise MaskMatchError(f"Texts come as a list, even a single one: [text]; this is a {type(texts).__name__}.")
    texts = list(texts)
    if not texts and not allow_empty:
        raise MaskMatchError("There are no texts; give at least one.")
    return list(texts)


def take_examples(
    texts: Any, labels: Any, fields: Sequence[str], *, empty_labels: bool = False, multi_label: bool = False
) -> Examples:
    """Read the texts and labels that a caller passes.

    Args:
        texts: A list of texts, or a table (data frame, dataset or dict of columns).
        labels: One label, or one list of labels, per text. For a table, the name of its label column, or None to
            find that column.
        fields: The fields of the task.
        empty_labels: Whether rows of a table may have an empty label.
        multi_label: Whether a row of a table may have several labels in a cell.
    """
    if is_table(texts) and (labels is None or isinstance(labels, str)):
        return load_examples(texts, fields, label_field=labels, empty_labels=empty_labels, multi_label=multi_label)
    texts = take_texts(texts, fields)
    if labels is None:
        raise MaskMatchError("The labels are missing; give one label per text.")
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise MaskMatchError(f"Labels come as a list, one per text, not as {labels!r}.")
    if getattr(labels, "ndim", 1) > 1:
        raise MaskMatchError("The labels are a matrix; give one label, or one list of labels, per text.")
    labels = list(labels)
    if len(labels) != len(texts):
        raise MaskMatchError(f"There are {len(texts)} texts but {len(labels)} labels; give one label per text.")
    return Examples(texts, labels)
