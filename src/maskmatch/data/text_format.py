"""Read plain text files, one text per line, and streams whose lines may be JSON or plain text."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from maskmatch.data.json_format import parse_json_row, unquote
from maskmatch.data.rows import Row
from maskmatch.data.streams import Source, open_lines, source_name

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger("maskmatch")


def read_text_lines(source: Source, encoding: str) -> Iterator[Row]:
    """Yield each line as a row with the single column "text"."""
    return _numbered(source, encoding)


def read_mixed_lines(source: Source, encoding: str) -> Iterator[Row]:
    """Yield a row per line, which is a JSON object, a JSON string or plain text, depending on how it starts."""
    for row in _numbered(source, encoding):
        line = row.fields["text"]
        if line.lstrip().startswith("{"):
            yield replace(parse_json_row(line, row.where), number=row.number)
        else:
            yield replace(row, fields={"text": unquote(line)})


def _numbered(source: Source, encoding: str) -> Iterator[Row]:
    """Yield each line that is not blank. Blank lines count, so that answers can be matched with lines."""
    name = source_name(source)
    expected, skipped = 0, 0
    with open_lines(source, encoding) as lines:
        for number, line in enumerate(lines):
            if line.strip():
                skipped += number - expected
                expected = number + 1
                yield Row({"text": line.rstrip("\r\n")}, f"{name}, line {number + 1}", number)
    if skipped:
        logger.warning("Skipped blank lines of %s: %d.", name, skipped)
