"""An example as the user gives it, checked and ready for a prompt: field texts with their marked spans."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maskmatch.data.sources import is_unicode
from maskmatch.errors import MaskMatchError

MARKS = {"head": ("@", "@"), "tail": ("#", "#"), "entity": ("*", "*")}
"""What is written around a marked span. Punctuation needs no new tokens, so it works in every encoder."""


@dataclass(frozen=True)
class FieldText:
    """The text of one field, and the character ranges in it that truncation should spare."""

    text: str
    spared: tuple[tuple[int, int], ...] = ()


def field_texts(example: str | Mapping[str, Any], fields: Sequence[str], row: int = 0) -> dict[str, FieldText]:
    """Turn an example into the texts of the fields that a prompt names.

    A plain string is the one field that the prompt names. In a mapping, ``head_span``, ``tail_span`` and
    ``entity_span`` (start and end, in characters of ``text``) mark that span in the text, and stand in for
    ``head``, ``tail`` or ``entity`` where these are left out.

    Args:
        example: A string, or a mapping from field to text.
        fields: The fields to return.
        row: The example's number, for the message if it cannot be used.
    """
    if isinstance(example, str):
        example = {fields[0] if len(fields) == 1 else "text": example}
    elif not isinstance(example, Mapping):
        raise MaskMatchError(
            f"Text {row} is of type {type(example).__name__}; a text is a string or a dict of fields "
            f"({', '.join(fields)})."
        )
    spans = _spans(example, row)
    values: dict[str, FieldText] = {}
    for name in fields:
        value = example.get(name)
        if value is None and name in spans:
            start, end = spans[name]
            value = example["text"][start:end]
        if not isinstance(value, str):
            found = "is missing" if value is None else f"is of type {type(value).__name__}, not a string"
            raise MaskMatchError(f"Text {row}: its field {name!r} {found}; fields needed: {', '.join(fields)}.")
        if not is_unicode(value):
            raise MaskMatchError(f"Text {row}: its field {name!r} holds half of a character (a lone surrogate).")
        values[name] = mark_spans(value, spans) if name == "text" and spans else FieldText(value)
    return values


def mark_spans(text: str, spans: Mapping[str, tuple[int, int]]) -> FieldText:
    """Write marks around spans of a text, and spare the marked words when the text is cut.

    >>> mark_spans("The clay was in a jar.", {"head": (4, 8), "tail": (18, 21)}).text
    'The @ clay @ was in a # jar #.'
    """
    # Opening marks of an outer span come before those of an inner one, closing marks after; of two spans that
    # are the same, the first is the outer one.
    inserts: list[tuple[int, int, int, int, str]] = []
    for number, (name, (start, end)) in enumerate(spans.items()):
        opening, closing = MARKS[name]
        inserts.append((start, 1, -end, number, f"{opening} "))
        inserts.append((end, 0, -start, -number, f" {closing}"))
    pieces: list[str] = []
    spared: list[tuple[int, int]] = []
    position = length = depth = begin = 0
    for place, is_opening, _, _, mark in sorted(inserts):
        pieces += [text[position:place], mark]
        length += place - position
        if is_opening and depth == 0:
            begin = length
        length += len(mark)
        depth += 1 if is_opening else -1
        if depth == 0:
            spared.append((begin, length))
        position = place
    pieces.append(text[position:])
    return FieldText("".join(pieces), tuple(spared))


def _spans(example: Mapping[str, Any], row: int) -> dict[str, tuple[int, int]]:
    """The spans of an example, checked against its text."""
    spans: dict[str, tuple[int, int]] = {}
    for name in MARKS:
        span = example.get(f"{name}_span")
        if span is None:
            continue
        text = example.get("text")
        try:
            start, end = (operator.index(place) for place in span)
        except (TypeError, ValueError):
            raise MaskMatchError(
                f"Text {row}: {name}_span is {span!r}; a span is two numbers, start and end, in characters of text."
            ) from None
        if not isinstance(text, str) or not 0 <= start < end <= len(text):
            raise MaskMatchError(
                f"Text {row}: {name}_span {start} to {end} does not lie within its text of "
                f"{len(text) if isinstance(text, str) else 0} characters."
            )
        mention = example.get(name)
        if isinstance(mention, str) and _plain(mention) != _plain(text[start:end]):
            raise MaskMatchError(
                f"Text {row}: {name}_span marks {text[start:end]!r}, but {name} is {mention!r}; "
                "spans count characters from 0, the end not included."
            )
        spans[name] = (start, end)
    return spans


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
