"""Phrases that the user brings: a list of words, or a function that tells some for each label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.expansion.phrases import Candidate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from maskmatch.expansion.ground import Ground


def listed_words(ground: Ground, words: Iterable[str], number: int) -> list[list[Candidate]]:
    """For each label the words of a list that come nearest to it, and nearer than to any other label."""
    listed = _texts(words, "The word list")
    if not listed:
        raise MaskMatchError("The word list is empty; give at least one word.")
    similarities = ground.read_phrases(listed) @ ground.vectors.T  # (words, K)
    best = similarities.argmax(axis=1)
    found = []
    for place in range(len(ground.labels)):
        own = np.flatnonzero(best == place)
        order = own[np.argsort(-similarities[own, place], kind="stable")][:number]
        found.append([Candidate(listed[row]) for row in order])
    return found


def told_phrases(ground: Ground, tell: Callable[[str], Iterable[str]], number: int) -> list[list[Candidate]]:
    """For each label the phrases that a function tells when it is given the label's name."""
    found = []
    for label in ground.labels.labels:
        told = _texts(tell(label.name), f"What was told for the label {label.name!r}")
        found.append([Candidate(text) for text in told if text.casefold() != label.name.casefold()][:number])
    return found


def _texts(given: Any, what: str) -> Sequence[str]:
    """The distinct texts among what was given, with single blanks."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise MaskMatchError(f"{what} is {given!r}; it has to be a list of words or phrases.")
    texts = list(given)
    for text in texts:
        if not isinstance(text, str):
            raise MaskMatchError(f"{what} holds {text!r}; words and phrases are texts.")
    return list(dict.fromkeys(spaced for text in texts if (spaced := " ".join(text.split()))))
