"""Errors that a user can cause, each with one sentence for the person who can fix it."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class MaskMatchError(ValueError):
    """A mistake in the user's input: a prompt, a label, a file, a folder.

    The message is one sentence that names what was wrong and what would be right. The command line prints it and
    exits with 1; it never shows a traceback for it.
    """


class TrainingDivergedError(MaskMatchError):
    """Training left weights that are NaN or inf: the classifier cannot be used any more."""


def did_you_mean(word: object, known: Iterable[object]) -> str:
    """A hint to the known word that is spelled most like an unknown one; empty if none is close.

    >>> did_you_mean("topik", ["topic", "intent"])
    " Did you mean 'topic'?"
    >>> did_you_mean("weather", ["topic", "intent"])
    ''
    """
    by_spelling = {str(each).casefold(): each for each in known}
    close = get_close_matches(str(word).casefold(), list(by_spelling), n=1, cutoff=0.7)
    return f" Did you mean {by_spelling[close[0]]!r}?" if close else ""
