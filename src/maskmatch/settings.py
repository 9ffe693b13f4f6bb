"""Settings that were added later, and settings as plain JSON that tells one run from another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, is_dataclass
from typing import Any, TypeVar

Value = TypeVar("Value")

LEFT_OUT = "left out at"


def added_setting(default: Value) -> Value:
    """A field of a frozen settings class that was added when there were results already.

    At its default everything is as it was before, so :func:`as_json` leaves it out there: finished work whose
    settings were written down without the field is still known as the same.
    """
    found: Value = field(default=default, metadata={LEFT_OUT: default})
    return found


def as_json(value: Any) -> Any:
    """Settings as plain JSON, whatever classes they are made of.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Bread:
    ...     flour: str
    ...     seeds: str | None = added_setting(None)
    >>> as_json(Bread("rye")), as_json(Bread("rye", seeds="poppy"))
    ({'flour': 'rye'}, {'flour': 'rye', 'seeds': 'poppy'})
    """
    if is_dataclass(value) and not isinstance(value, type):
        held = {each: getattr(value, each.name) for each in fields(value)}
        return {
            each.name: as_json(content)
            for each, content in held.items()
            if LEFT_OUT not in each.metadata or content != each.metadata[LEFT_OUT]
        }
    if isinstance(value, Mapping):
        return {str(key): as_json(content) for key, content in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_json(content) for content in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
