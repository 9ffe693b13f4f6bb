"""Candidate phrases from the user: a word list, or a function that returns phrases for a label name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.label_tools.expansion.result import Candidate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from maskmatch.label_tools.expansion.encoded_labels import EncodedLabels


def phrases_from_list(labels: EncodedLabels, words: Iterable[str], limit: int) -> list[list[Candidate]]:
    """Assign each word of a list to its nearest label; return the nearest words per label."""
    word_list = _checked_phrases(words, "The word list")
    if not word_list:
        raise MaskMatchError("The word list is empty; give at least one word.")
    similarities = labels.encode_phrases(word_list) @ labels.vectors.T  # (words, K)
    nearest = similarities.argmax(axis=1)  # (words,)
    candidates = []
    for position in range(len(labels.labels)):
        own = np.flatnonzero(nearest == position)
        order = own[np.argsort(-similarities[own, position], kind="stable")][:limit]
        candidates.append([Candidate(word_list[row]) for row in order])
    return candidates


def phrases_from_function(
    labels: EncodedLabels, function: Callable[[str], Iterable[str]], limit: int
) -> list[list[Candidate]]:
    """Call a function with each label name; return the phrases per label."""
    candidates = []
    for label in labels.labels.labels:
        phrases = _checked_phrases(function(label.name), f"The result for the label {label.name!r}")
        candidates.append([Candidate(text) for text in phrases if text.casefold() != label.name.casefold()][:limit])
    return candidates


def _checked_phrases(given: Any, what: str) -> Sequence[str]:
    """Return the distinct phrases, with white space normalised; raise unless they are a list of strings."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise MaskMatchError(f"{what} is {given!r}; it has to be a list of words or phrases.")
    texts = list(given)
    for text in texts:
        if not isinstance(text, str):
            raise MaskMatchError(f"{what} contains {text!r}; words and phrases are strings.")
    return list(dict.fromkeys(spaced for text in texts if (spaced := " ".join(text.split()))))
