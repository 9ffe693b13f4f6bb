"""Reading JSON, JSON Lines and plain lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from maskmatch.data.rows import Row
from maskmatch.data.sources import Source, open_lines, source_name
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterator

# What json raises for a text it cannot take; an integer of thousands of digits is a plain ValueError.
_JSON_ERRORS = (ValueError, RecursionError)


def read_json(source: Source, encoding: str) -> Iterator[Row]:
    """Yield the rows of a JSON file, a list of objects or an object of columns, read as a whole."""
    name = source_name(source)
    with open_lines(source, encoding) as lines:
        content = "".join(lines)
    if not content.strip():
        return
    try:
        table = json.loads(content)
    except _JSON_ERRORS as error:
        raise MaskMatchError(_explain(error, name)) from error
    for number, item in enumerate(_objects(table, name), start=1):
        where = f"{name}, row {number}"
        yield Row(_fields(item, where), where)


def read_json_lines(source: Source, encoding: str) -> Iterator[Row]:
    """Yield the rows of a file with one JSON object, or one JSON string, on each line."""
    for where, line in _filled_lines(source, encoding):
        yield Row(_fields(_parsed(line, where), where), where)


def read_text_lines(source: Source, encoding: str) -> Iterator[Row]:
    """Yield each line as a row with the one column "text"."""
    for where, line in _filled_lines(source, encoding):
        yield Row({"text": line}, where)


def read_mixed_lines(source: Source, encoding: str) -> Iterator[Row]:
    """Yield rows from lines that are JSON objects, JSON strings or plain text, as each line shows."""
    for where, line in _filled_lines(source, encoding):
        if line.lstrip().startswith("{"):
            yield Row(_fields(_parsed(line, where), where), where)
        else:
            yield Row({"text": _unquoted(line)}, where)


def _filled_lines(source: Source, encoding: str) -> Iterator[tuple[str, str]]:
    """Yield the place and the content of each line that is not blank."""
    name = source_name(source)
    with open_lines(source, encoding) as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield f"{name}, line {number}", line.rstrip("\r\n")


def _parsed(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except _JSON_ERRORS as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "it is too deep or too long"
        raise MaskMatchError(f"{where} is not valid JSON ({reason}); write one JSON object on each line.") from error


def _unquoted(line: str) -> str:
    """Return the string that a line quotes as JSON, or else the line."""
    if not line.startswith('"'):
        return line
    try:
        value = json.loads(line)
    except _JSON_ERRORS:
        return line
    return value if isinstance(value, str) else line


def _fields(item: Any, where: str) -> dict[str, Any]:
    if isinstance(item, str):
        return {"text": item}
    if isinstance(item, dict):
        return item
    raise MaskMatchError(f'{where} is {_kind(item)}, not an object; write it as {{"text": …}}, or as a quoted string.')


def _objects(table: Any, name: str) -> Iterator[Any]:
    """Yield the items of a list, or the rows of an object of columns."""
    if isinstance(table, list):
        yield from table
        return
    if not isinstance(table, dict) or not all(isinstance(column, list) for column in table.values()):
        raise MaskMatchError(f"{name} must hold a list of objects, or an object of lists, one for each column.")
    lengths = {column: len(values) for column, values in table.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{column} {length}" for column, length in lengths.items())
        raise MaskMatchError(f"{name} has columns of different lengths ({listed}); make them equally long.")
    for values in zip(*table.values(), strict=True):
        yield dict(zip(table, values, strict=True))


def _explain(error: Exception, name: str) -> str:
    if isinstance(error, json.JSONDecodeError):
        hint = "; name it .jsonl if each line is an object of its own" if error.msg == "Extra data" else ""
        return f"{name}, line {error.lineno} is not valid JSON ({error.msg}){hint}."
    return f"{name} is not valid JSON: it is nested too deep, or has a number of too many digits."


def _kind(item: Any) -> str:
    """Name a JSON value the way JSON does."""
    if item is None:
        return "null"
    kinds = {bool: "a truth value", int: "a number", float: "a number", list: "a list"}
    return kinds.get(type(item), "a value")
