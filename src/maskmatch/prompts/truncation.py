"""Truncation: shorten field texts so that a prompt fits, never the prompt's own words or masks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from maskmatch.prompts.fields import FieldText

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CHARACTERS_PER_TOKEN = 16
"""More characters per token than texts usually have. In a text with even more, a longer prefix is tokenised."""

WORD_END = re.compile(r"(?<=[^\s])[ \n]")
"""The white space after a word. No tokenizer merges across it, so the text before it has the same tokens alone."""


@dataclass(frozen=True)
class Token:
    """A token of a prompt, with its origin.

    Attributes:
        id: The token id.
        field: The number of its field, counted by occurrence in the prompt. None for tokens that are never truncated:
            the prompt's own words and special tokens.
        protected: Whether it belongs to a marked span, which is truncated last.
    """

    id: int
    field: int | None = None
    protected: bool = False


def fixed_length(segments: Sequence[Sequence[Token]]) -> int:
    """The number of tokens that are never truncated."""
    return sum(token.field is None for token in chain.from_iterable(segments))


def truncate(segments: Sequence[Sequence[Token]], max_length: int) -> list[list[int]]:
    """Truncate the fields of a prompt so that all segments together have at most ``max_length`` tokens.

    Args:
        segments: The tokens of each segment of the prompt.
        max_length: The maximum number of tokens, which must exceed the fixed length.

    Returns:
        The remaining token ids of each segment.
    """
    fields: dict[int, list[Token]] = {}
    for token in chain.from_iterable(segments):
        if token.field is not None:
            fields.setdefault(token.field, []).append(token)
    allocated = allocate_tokens([len(tokens) for tokens in fields.values()], max_length - fixed_length(segments))
    dropped = {
        id(tokens[position])
        for tokens, kept in zip(fields.values(), allocated, strict=True)
        for position in truncation_order([token.protected for token in tokens])[: len(tokens) - kept]
    }
    return [[token.id for token in segment if id(token) not in dropped] for segment in segments]


def allocate_tokens(lengths: Sequence[int], room: int) -> list[int]:
    """How many tokens each field keeps: the longest fields are truncated first, until all fit into the room.

    >>> allocate_tokens([10, 3, 6], 12)
    [5, 3, 4]
    """
    if sum(lengths) <= room:
        return list(lengths)
    level = 0  # every field keeps up to this many tokens
    while sum(min(length, level + 1) for length in lengths) <= room:
        level += 1
    allocated = [min(length, level) for length in lengths]
    for number, length in enumerate(lengths):  # the remaining tokens go to the first fields that are longer
        if sum(allocated) < room and length > level:
            allocated[number] += 1
    return allocated


def truncation_order(protected: Sequence[bool]) -> list[int]:
    """The order in which the tokens of a field are dropped, as positions.

    Without marked spans, tokens are dropped from the end. With marked spans, first the tokens after the last span, then
    those before the first span, then those between spans, and the spans themselves last.

    >>> truncation_order([False, False, True, False])
    [3, 0, 1, 2]
    """
    if not any(protected):
        return list(range(len(protected) - 1, -1, -1))
    spans = [position for position, flag in enumerate(protected) if flag]
    first, last = spans[0], spans[-1]
    after = list(range(len(protected) - 1, last, -1))
    before = list(range(first))
    between = [position for position in range(last, first, -1) if not protected[position]]
    return [*after, *before, *between, *reversed(spans)]


def shorten_long_text(value: FieldText, max_tokens: int, count: Callable[[str], int]) -> FieldText:
    """Drop words from a very long text before it is tokenised, if truncation would drop them anyway.

    The result has more than ``max_tokens`` tokens if the text has, so truncation gives the same tokens, and the text
    still counts as truncated. The last word stays, because it may form a token with the prompt's words after the
    field. Marked spans stay, too.

    Args:
        value: The field text.
        max_tokens: More tokens than truncation can keep.
        count: The function that counts the tokens of a text.
    """
    text = value.text
    reach = max_tokens * CHARACTERS_PER_TOKEN
    start = max((end for _, end in value.protected), default=0)
    if len(text) <= start + 2 * reach:
        return value
    end = len(text.rstrip(" \n"))
    last_word = max(text.rfind(" ", start, end), text.rfind("\n", start, end))  # including the space before it
    while word_end := WORD_END.search(text, start + reach, max(last_word, 0)):
        if count(text[start : word_end.start()]) > max_tokens:
            return FieldText(text[: word_end.start()] + text[last_word:], value.protected)
        reach = 2 * (word_end.start() - start)
    return value
