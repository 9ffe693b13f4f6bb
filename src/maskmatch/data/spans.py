"""Where in a text something stands: spans of characters."""

from __future__ import annotations

import re
from typing import Any

from maskmatch.data.values import UnusableCellError, is_empty, plain

# Nine digits are more than any text is long, and few enough for int().
_WRITTEN_SPAN = re.compile(r"[\[(]?\s*(\d{1,9})\s*[:,]\s*(\d{1,9})\s*[\])]?")


def span_column(field: str) -> str:
    """Return the column, and the key in a text of several fields, that holds the span of a field."""
    return f"{field}_span"


def lies_in_text(field: str) -> bool:
    """Tell whether a field is marked by its span in the text; a text has its span in itself."""
    return field not in ("text", "text_b")


def read_span(value: Any, field: str, text: str | None = None) -> tuple[int, int] | None:
    """Return the span in a cell as (start, end), counted in characters from 0 with the end left out.

    Examples:
        >>> read_span([12, 18], "head")
        (12, 18)
        >>> read_span("12:18", "head")
        (12, 18)

    Args:
        value: A list of two whole numbers, or a string such as "12:18", "12,18" or "[12, 18]".
        field: The field whose span this is, for messages.
        text: The text the span has to lie in, if known.

    Returns:
        The span, or None if the cell is empty.
    """
    value = plain(value)
    if is_empty(value):
        return None
    numbers = _two_numbers(value)
    if numbers is None or not 0 <= numbers[0] < numbers[1]:
        raise UnusableCellError(f"the {span_column(field)} {value!r} is not a span such as [12, 18] or 12:18")
    start, end = numbers
    if text is not None and end > len(text):
        raise UnusableCellError(f"the {span_column(field)} {value!r} ends behind the text of {len(text)} characters")
    return start, end


def _two_numbers(value: Any) -> tuple[int, int] | None:
    if isinstance(value, str):
        match = _WRITTEN_SPAN.fullmatch(value.strip())
        return (int(match[1]), int(match[2])) if match else None
    if not isinstance(value, list) or len(value) != 2:
        return None
    # A column with an empty cell turns whole numbers into floats in data frames.
    whole = [number for number in value if _is_whole(number)]
    return (int(whole[0]), int(whole[1])) if len(whole) == 2 else None


def _is_whole(number: Any) -> bool:
    if isinstance(number, bool):
        return False
    return isinstance(number, int) or (isinstance(number, float) and number.is_integer())
