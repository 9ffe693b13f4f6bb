"""Very long texts: what truncation would take away anyway need not be tokenised first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from maskmatch.prompts.fields import FieldText

if TYPE_CHECKING:
    from collections.abc import Callable

CHARACTERS_A_TOKEN = 16
"""More characters a token than texts usually have; a text that has even more is looked at further along."""

BLANK = re.compile(r"(?<=[^\s])[ \n]")
"""The end of a word: no tokenizer looks across it, so what stands before it is tokenised the same without the rest."""


def without_far_end(value: FieldText, tokens: int, count: Callable[[str], int]) -> FieldText:
    """A field text without the words that lie too far behind to be among its first tokens.

    The result is longer than ``tokens`` if the text is, so it is cut to the same tokens, and counts as cut. The last
    word stays, because it may form a token together with the prompt's words behind the field; spared spans stay too.

    Args:
        value: The field text.
        tokens: More tokens than could be kept of it.
        count: How many tokens a text makes.
    """
    text = value.text
    reach = tokens * CHARACTERS_A_TOKEN
    start = max((end for _, end in value.spared), default=0)
    if len(text) <= start + 2 * reach:
        return value
    end = len(text.rstrip(" \n"))
    last_word = max(text.rfind(" ", start, end), text.rfind("\n", start, end))  # with the blank before it
    while blank := BLANK.search(text, start + reach, max(last_word, 0)):
        if count(text[start : blank.start()]) > tokens:
            return FieldText(text[: blank.start()] + text[last_word:], value.spared)
        reach = 2 * (blank.start() - start)
    return value
