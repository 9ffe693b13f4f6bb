"""Read plain text files, one text per line, and streams whose lines may be JSON or plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskmatch.data.json_format import parse_json_row, unquote
from maskmatch.data.rows import Row
from maskmatch.data.streams import Source, non_blank_lines

if TYPE_CHECKING:
    from collections.abc import Iterator


def read_text_lines(source: Source, encoding: str) -> Iterator[Row]:
    """Yield each line as a row with the single column "text"."""
    for where, line in non_blank_lines(source, encoding):
        yield Row({"text": line}, where)


def read_mixed_lines(source: Source, encoding: str) -> Iterator[Row]:
    """Yield a row per line, which is a JSON object, a JSON string or plain text, depending on how it starts."""
    for where, line in non_blank_lines(source, encoding):
        if line.lstrip().startswith("{"):
            yield parse_json_row(line, where)
        else:
            yield Row({"text": unquote(line)}, where)
