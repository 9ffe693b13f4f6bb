"""Reading rows from files, standard input and streams, whatever their format."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, get_args

from maskmatch.choices import Format
from maskmatch.data.delimited import read_csv, read_tsv
from maskmatch.data.json_rows import read_json, read_json_lines, read_mixed_lines, read_text_lines
from maskmatch.data.parquet import read_parquet
from maskmatch.data.rows import Row
from maskmatch.data.sources import Source, is_path, is_stream, source_name, stream_path
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Row", "Source", "read_rows"]

_READERS: dict[str, Callable[[Source, str], Iterator[Row]]] = {
    "csv": read_csv,
    "tsv": read_tsv,
    "json": read_json,
    "jsonl": read_json_lines,
    "ndjson": read_json_lines,
    "parquet": read_parquet,
    "txt": read_text_lines,
}


def read_rows(
    source: Source,
    *,
    format: Format | None = None,  # noqa: A002 (the word users know from other readers)
    encoding: str = "utf-8",
) -> Iterator[Row]:
    """Read the rows of a table one after the other.

    CSV, TSV, JSON Lines, Parquet and text files are read in constant memory, so they may be larger than it; a
    JSON file, a compressed Parquet file and a Parquet stream are read as a whole. Blank lines are not rows.

    Args:
        source: A path, "-" for standard input, or an open stream of text or bytes, which stays open.
        format: How the rows are written. Told by the suffix if left out: .csv, .tsv, .json, .jsonl, .ndjson,
            .parquet or .txt, each also with .gz behind it. Without a suffix, as on standard input, each line
            is a JSON object, a JSON string or plain text, as it begins.
        encoding: The encoding of text formats. A byte-order mark in the file decides over it.

    Returns:
        An iterator over the rows. A text without columns is the row `{"text": …}`.

    Raises:
        MaskMatchError: In one sentence with the file and the line, if the source has no rows or cannot be
            read. What concerns the content is raised when the iteration comes to it.
    """
    if not is_path(source) and not is_stream(source) and source != "-":
        raise MaskMatchError(
            f"Rows cannot be read from a value of type {type(source).__name__}; give a path, '-' or a stream."
        )
    read = _READERS[format_name] if (format_name := _format_of(source, format)) else read_mixed_lines
    return _at_least_one(read(source, encoding), source_name(source))


def _format_of(source: Source, named: str | None) -> str | None:
    """Return the format by its name or by the suffix, or None if the lines of a stream have to show it."""
    if named is not None:
        wanted = named.lower().removeprefix(".")
        if wanted not in _READERS:
            raise MaskMatchError(f"The format {named!r} is not known; it can be {_listed(get_args(Format))}.")
        return wanted
    path = stream_path(source)
    suffix = _suffix_of(path) if path is not None else ""
    if suffix in _READERS:
        return suffix
    if is_path(source) and path is not None:
        if os.path.isdir(path):
            raise MaskMatchError(f"{path} is a folder; name a file in it.")
        suffixes = _listed([f".{known}" for known in _READERS])
        raise MaskMatchError(
            f"{path} does not show its format; let its name end in {suffixes} (.gz may follow), or name the "
            "format with --format (format= in Python)."
        )
    return None


def _suffix_of(path: str) -> str:
    """Return the suffix in lower case without its dot, looking past .gz."""
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


def _listed(words: tuple[str, ...] | list[str]) -> str:
    return ", ".join(words[:-1]) + " or " + words[-1]
