"""Labels and texts of the user as people can read them: on one line, in a given width, told apart."""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

NOTHING = "(nothing)"

# Invisible, but they hold emoji together and shape Persian and Indic words.
_JOINERS = "\u200c\u200d"


def one_line(text: str) -> str:
    """The text without line breaks, tabs and control characters, which could upset a terminal or a page."""
    return " ".join("".join(sign if sign.isprintable() or sign in _JOINERS else " " for sign in text).split())


def text_width(text: str) -> int:
    """How many columns the text takes in a terminal: wide East Asian signs take two, combining signs none."""
    return sum(_sign_width(sign) for sign in text)


def shorten(text: str, width: int) -> str:
    """The text on one line, and with "..." at its end if it would take more than `width` columns.

    Example:
        >>> shorten("My card has not arrived yet", 15)
        'My card has...'
    """
    line = one_line(text)
    if text_width(line) <= width:
        return line
    return _beginning(line, width - 3).rstrip() + "..."


def shorten_name(name: str, width: int) -> str:
    """The name of a label in at most `width` columns, with its end kept because names often differ there.

    Example:
        >>> shorten_name("balance not updated after bank transfer", 30)
        'balance not update...transfer'
    """
    line = one_line(name)
    if text_width(line) <= width:
        return line
    end = _beginning(line[::-1], (width - 3) // 3)[::-1]
    return f"{_beginning(line, width - 3 - text_width(end)).rstrip()}...{end.lstrip()}"


def pad(text: str, width: int) -> str:
    """The text with spaces up to `width` columns."""
    return text + " " * (width - text_width(text))


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """The text in lines of at most `width` columns, the second and later ones indented."""
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
    """A number with its noun.

    Example:
        >>> counted(1, "row"), counted(1200, "row")
        ('1 row', '1,200 rows')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


class LabelNames:
    """What to call each label in a report: its plain text, or its Python form where two would read the same.

    Example:
        >>> names = LabelNames([1, "1", "refund"])
        >>> names[1], names["1"], names["refund"]
        ('1', "'1'", 'refund')
    """

    def __init__(self, labels: Iterable[Hashable]) -> None:
        distinct = list(dict.fromkeys(labels))
        plain = {label: one_line(str(label)) for label in distinct}
        uses = Counter(plain.values())
        self._names = {
            label: name if uses[name] == 1 and name else one_line(repr(label)) for label, name in plain.items()
        }

    def __getitem__(self, label: Hashable) -> str:
        return self._names.get(label, NOTHING)


def _beginning(text: str, width: int) -> str:
    """As much of the text as takes at most `width` columns."""
    used = 0
    for place, sign in enumerate(text):
        used += _sign_width(sign)
        if used > width:
            return text[:place]
    return text


def _sign_width(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1
