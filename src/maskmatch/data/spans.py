"""Character spans: where a field such as the head entity occurs in the text."""

from __future__ import annotations

import re
from typing import Any

from maskmatch.data.values import InvalidCellError, is_blank, to_python

# Nine digits exceed the length of any text, and are few enough for int().
_SPAN_STRING = re.compile(r"[\[(]?\s*(\d{1,9})\s*[:,]\s*(\d{1,9})\s*[\])]?")


def span_column(field: str) -> str:
    """The column name, and the key in a dict of fields, of a field's span."""
    return f"{field}_span"


def occurs_in_text(field: str) -> bool:
    """Whether a field, such as an entity, occurs in the text, so that its span refers to the text."""
    return field not in ("text", "text_b")


def read_span(value: Any, field: str, text: str | None = None) -> tuple[int, int] | None:
    """Parse the span in a cell as (start, end): character offsets from 0, end exclusive.

    Examples:
        >>> read_span([12, 18], "head")
        (12, 18)
        >>> read_span("12:18", "head")
        (12, 18)

    Args:
        value: A list of two integers, or a string such as "12:18", "12,18" or "[12, 18]".
        field: The field that the span marks, for error messages.
        text: The text that must contain the span, if known.

    Returns:
        The span, or None if the cell is blank.
    """
    value = to_python(value)
    if is_blank(value):
        return None
    offsets = _parse_offsets(value)
    if offsets is None or not 0 <= offsets[0] < offsets[1]:
        raise InvalidCellError(f"the {span_column(field)} {value!r} is not a span such as [12, 18] or 12:18")
    start, end = offsets
    if text is not None and end > len(text):
        raise InvalidCellError(
            f"the {span_column(field)} {value!r} ends after the end of the text ({len(text)} characters)"
        )
    return start, end


def _parse_offsets(value: Any) -> tuple[int, int] | None:
    if isinstance(value, str):
        match = _SPAN_STRING.fullmatch(value.strip())
        return (int(match[1]), int(match[2])) if match else None
    if not isinstance(value, list) or len(value) != 2 or not all(map(_is_integer, value)):
        return None
    return int(value[0]), int(value[1])


def _is_integer(number: Any) -> bool:
    """Whether a number is an integer. Data frames turn integers into floats in a column with missing values."""
    if isinstance(number, bool):
        return False
    return isinstance(number, int) or (isinstance(number, float) and number.is_integer())
