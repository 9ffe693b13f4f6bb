"""Format labels and texts for display: on one line, in a given width, with distinct names."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

EXCERPT = 500
"""How many columns of a text reports show at most."""

NOTHING = "(nothing)"
"""The name of a missing true or predicted label."""

# Zero-width joiners are not printable, but emoji and Persian and Indic scripts need them.
_JOINERS = "\u200c\u200d"


def one_line(text: str) -> str:
    """Replace line breaks, tabs and control characters by spaces, so that they cannot disturb a terminal or a page."""
    return " ".join("".join(char if char.isprintable() or char in _JOINERS else " " for char in text).split())


def text_width(text: str) -> int:
    """The width of a text in terminal columns: East Asian wide characters take two, combining characters none."""
    return sum(_char_width(char) for char in text)


def shorten(text: str, width: int) -> str:
    """The text on one line, truncated with "..." to at most `width` columns.

    Example:
        >>> shorten("My card has not arrived yet", 15)
        'My card has...'
    """
    line = one_line(text)
    if text_width(line) <= width:
        return line
    return _prefix(line, width - 3).rstrip() + "..."


def shorten_name(name: str, width: int) -> str:
    """A label name in at most `width` columns. It is truncated in the middle, because names often differ at the end.

    Example:
        >>> shorten_name("balance not updated after bank transfer", 30)
        'balance not update...transfer'
    """
    line = one_line(name)
    if text_width(line) <= width:
        return line
    end = _prefix(line[::-1], (width - 3) // 3)[::-1]
    return f"{_prefix(line, width - 3 - text_width(end)).rstrip()}...{end.lstrip()}"


def excerpt(text: str | Mapping[str, Any]) -> str:
    """The start of a text on one line; a dict of fields as "field: value | field: value"."""
    if isinstance(text, Mapping):
        text = " | ".join(f"{name}: {one_line(str(value))}" for name, value in text.items() if value is not None)
    return shorten(text, EXCERPT)


def pad(text: str, width: int) -> str:
    """Pad the text with spaces to `width` columns."""
    return text + " " * (width - text_width(text))


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Wrap the text into lines of at most `width` columns, and indent all but the first."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if line and text_width(longer) > width:
            lines.append(line)
            longer = indent + word
        line = longer
    return [*lines, line]


def counted(number: int, thing: str) -> str:
    """A number with its noun in singular or plural.

    Example:
        >>> counted(1, "row"), counted(1200, "row")
        ('1 row', '1,200 rows')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


class LabelNames:
    """The display name of each label: its string, or its repr if two labels have the same string.

    Example:
        >>> names = LabelNames([1, "1", "refund"])
        >>> names[1], names["1"], names["refund"]
        ('1', "'1'", 'refund')
    """

    def __init__(self, labels: Iterable[Hashable]) -> None:
        distinct = list(dict.fromkeys(labels))
        strings = {label: one_line(str(label)) for label in distinct}
        uses = Counter(strings.values())
        self._names = {
            label: name if uses[name] == 1 and name else one_line(repr(label)) for label, name in strings.items()
        }

    def __getitem__(self, label: Hashable) -> str:
        return self._names.get(label, NOTHING)


def _prefix(text: str, width: int) -> str:
    """The longest prefix of the text in at most `width` columns."""
    used = 0
    for position, char in enumerate(text):
        used += _char_width(char)
        if used > width:
            return text[:position]
    return text


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
