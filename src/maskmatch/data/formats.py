"""The file formats, and reading rows in any of them.

To add a format, write a file with its reader, and add its name to `Format` and its row to `READERS`. If it can be
written, too, write a file with its `Pieces`, and add a row to `WRITERS`.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from maskmatch.data.csv_format import read_csv, read_tsv
from maskmatch.data.csv_writing import CSV, TSV
from maskmatch.data.json_format import read_json, read_json_lines
from maskmatch.data.json_writing import JSON, JSON_LINES
from maskmatch.data.parquet_format import read_parquet
from maskmatch.data.parquet_writing import PARQUET
from maskmatch.data.streams import Source, folder_message, is_path, is_stream, path_of, source_name
from maskmatch.data.text_format import read_mixed_lines, read_text_lines
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from maskmatch.data.pieces import Pieces
    from maskmatch.data.rows import Row

Format = Literal["csv", "tsv", "json", "jsonl", "ndjson", "parquet", "txt"]
"""The name of a file format, which is also its file suffix."""

READERS: dict[Format, Callable[[Source, str], Iterator[Row]]] = {
    "csv": read_csv,
    "tsv": read_tsv,
    "json": read_json,
    "jsonl": read_json_lines,
    "ndjson": read_json_lines,
    "parquet": read_parquet,
    "txt": read_text_lines,
}
"""The reader of each format: a function of the source and its encoding."""

WRITERS: dict[Format, Pieces] = {
    "csv": CSV,
    "tsv": TSV,
    "json": JSON,
    "jsonl": JSON_LINES,
    "ndjson": JSON_LINES,
    "parquet": PARQUET,
}
"""How each format is written; the readers read it back."""


def read_rows(
    source: Source,
    *,
    format: Format | None = None,  # noqa: A002 (the word users know from other readers)
    encoding: str = "utf-8",
    keep_bad: bool = False,
    may_be_empty: bool = False,
) -> Iterator[Row]:
    """Read the rows of a file one at a time.

    CSV, TSV, JSON Lines, Parquet and text files are streamed in constant memory, so they may be larger than it. JSON
    files, compressed Parquet files and Parquet streams are loaded into memory. Blank lines are skipped.

    Args:
        source: A path, "-" for standard input, or an open stream of text or bytes, which stays open.
        format: The file format. By default it follows from the suffix: .csv, .tsv, .json, .jsonl, .ndjson, .parquet
            or .txt, optionally followed by .gz. Without a suffix, as on standard input, each line may be a JSON
            object, a JSON string or plain text.
        encoding: The encoding of text formats. A byte-order mark in the file overrides it.
        keep_bad: Whether to yield rows that cannot be read, with their ``problem``, instead of raising.
        may_be_empty: Whether a source without rows is no error.

    Returns:
        An iterator over the rows. A line of plain text is the row `{"text": …}`.

    Raises:
        MaskMatchError: If the source has no rows, or cannot be read; the message names the file and the line. Errors
            in the content are raised when the iteration reaches them.
    """
    if not is_path(source) and not is_stream(source) and source != "-":
        raise MaskMatchError(
            f"Cannot read rows from a value of type {type(source).__name__}; give a path, '-' or a stream."
        )
    name = _find_format(source, format)
    read = read_mixed_lines if name is None else READERS[name]
    rows = read(source, encoding)
    if not may_be_empty:
        rows = _at_least_one(rows, source_name(source))
    return rows if keep_bad else _good(rows)


def _find_format(source: Source, requested: str | None) -> Format | None:
    """The requested format, or the format of the suffix; None for a stream without a suffix."""
    if requested is not None:
        name = requested.lower().removeprefix(".")
        if name not in READERS:
            raise MaskMatchError(f"Unknown format {requested!r}; choose {_either(list(READERS))}.")
        return name
    path = path_of(source)
    suffix = _suffix_of(path) if path is not None else ""
    if suffix in READERS:
        return suffix
    if is_path(source) and path is not None:
        if os.path.isdir(path):
            raise MaskMatchError(folder_message(path))
        if not os.path.exists(path):
            hint = "; give a text itself with --text." if " " in path else "; check the file name and the folder."
            raise MaskMatchError(f"There is no file {path!r}{hint}")
        suffixes = _either([f".{known}" for known in READERS])
        raise MaskMatchError(
            f"The format of {path} is unknown; use a file name that ends in {suffixes} (.gz may follow), or give the "
            "format with --format (format= in Python)."
        )
    return None


def written_format(path: str | os.PathLike[str]) -> Format:
    """The format of a table to write, by the ending of its name; MaskMatchError if there is none."""
    suffix = _suffix_of(os.fspath(path))
    if suffix not in WRITERS:
        raise MaskMatchError(
            f"Cannot tell how to write {os.fspath(path)}; give it a name that ends in "
            f"{_either([f'.{known}' for known in WRITERS])} (.gz may follow)."
        )
    package = WRITERS[suffix].package
    if package is not None and find_spec(package) is None:
        raise MaskMatchError(f'Writing {suffix} requires {package}; install it with pip install "maskmatch[{suffix}]".')
    return suffix


def _suffix_of(path: str) -> str:
    """The suffix in lower case without its dot, ignoring .gz."""
    stem, suffix = os.path.splitext(path.lower())
    if suffix == ".gz":
        suffix = os.path.splitext(stem)[1]
    return suffix.removeprefix(".")


def _at_least_one(rows: Iterator[Row], name: str) -> Iterator[Row]:
    first = next(rows, None)
    if first is None:
        raise MaskMatchError(f"{name} has no rows; give at least one.")
    yield first
    yield from rows


def _good(rows: Iterator[Row]) -> Iterator[Row]:
    """The rows; raise at the first one that cannot be read."""
    for row in rows:
        if row.problem is not None:
            raise MaskMatchError(row.problem)
        yield row


def _either(words: list[str]) -> str:
    return ", ".join(words[:-1]) + " or " + words[-1]
