"""Read JSON and JSON Lines files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from maskmatch.data.limits import limits, too_large
from maskmatch.data.rows import Row, check_equal_lengths
from maskmatch.data.streams import Source, non_blank_lines, open_lines, source_name
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterator

# json raises a plain ValueError for an integer of thousands of digits.
_JSON_ERRORS = (ValueError, RecursionError)

_JSON_TYPES = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "an array",
}


class _DuplicateKeyError(Exception):
    """An object has a key twice; the first value would be lost."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these keys and values."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _DuplicateKeyError(f"an object has the key {twice!r} twice; give each key once.")
    return found


def read_json(source: Source, encoding: str) -> Iterator[Row]:
    """Yield the rows of a JSON file: an array of objects, or an object of columns. The file is loaded into memory."""
    name = source_name(source)
    with open_lines(source, encoding, longest=limits().whole) as lines:
        content = _joined(lines, name)
    if not content.strip():
        return
    try:
        table = json.loads(content, object_pairs_hook=_unique_keys)
    except _DuplicateKeyError as error:
        raise MaskMatchError(f"{name}: {error}") from error
    except _JSON_ERRORS as error:
        raise MaskMatchError(_invalid_json(error, name)) from error
    for number, item in enumerate(_items(table, name), start=1):
        yield _to_row(item, f"{name}, row {number}")


def _joined(lines: Iterator[str], name: str) -> str:
    """The whole content of a file; raise if it is too large."""
    most, size, parts = limits().whole, 0, []
    for line in lines:
        size += len(line)
        if size > most:
            raise too_large(name, f"has more than {most:,} characters, and JSON must be read as a whole", "whole")
        parts.append(line)
    return "".join(parts)


def read_json_lines(source: Source, encoding: str) -> Iterator[Row]:
    """Yield the rows of a file with one JSON object, or one JSON string, per line."""
    for where, line in non_blank_lines(source, encoding):
        yield parse_json_row(line, where)


def parse_json_row(line: str, where: str) -> Row:
    """Parse one line of JSON as a row; if that fails, the row has a problem."""
    try:
        item = json.loads(line, object_pairs_hook=_unique_keys)
    except _DuplicateKeyError as error:
        return Row({}, where, problem=f"{where}: {error}")
    except _JSON_ERRORS as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply, or a number too long"
        return Row({}, where, problem=f"{where} is not valid JSON ({reason}); write one JSON object per line.")
    return _to_row(item, where)


def unquote(line: str) -> str:
    """Decode a line that is a JSON string; return any other line unchanged."""
    if not line.startswith('"'):
        return line
    try:
        value = json.loads(line)
    except _JSON_ERRORS:
        return line
    return value if isinstance(value, str) else line


def _to_row(item: Any, where: str) -> Row:
    if isinstance(item, str):
        return Row({"text": item}, where)
    if isinstance(item, dict):
        return Row(item, where)
    json_type = _JSON_TYPES.get(type(item), "a value")
    problem = f'{where} is {json_type}, not an object; write it as {{"text": …}} or as a quoted string.'
    return Row({}, where, problem=problem)


def _items(table: Any, name: str) -> Iterator[Any]:
    """Yield the items of an array, or the rows of an object of columns."""
    if isinstance(table, list):
        yield from table
        return
    if not isinstance(table, dict) or not all(isinstance(column, list) for column in table.values()):
        raise MaskMatchError(f"{name} must be a list of objects, or an object with one list per column.")
    check_equal_lengths({column: len(values) for column, values in table.items()}, name)
    for values in zip(*table.values(), strict=True):
        yield dict(zip(table, values, strict=True))


def _invalid_json(error: Exception, name: str) -> str:
    if isinstance(error, json.JSONDecodeError):
        hint = "; use the suffix .jsonl if each line is an object" if error.msg == "Extra data" else ""
        return f"{name}, line {error.lineno} is not valid JSON ({error.msg}){hint}."
    return f"{name} is not valid JSON: it is nested too deeply, or has a number with too many digits."
