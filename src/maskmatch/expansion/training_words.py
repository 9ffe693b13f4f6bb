"""Phrases from labelled texts: the words that set the texts of a label apart from all others."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.expansion.phrases import Candidate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from maskmatch.labels import LabelSet

WORD = re.compile(r"[^\W\d_](?:[\w'\u2019-]*\w)?")
PRIOR = 10.0
"""How many texts the background weighs: counts of a word in few texts are shrunk towards its share in all of them."""

BY_CHANCE = 0.5
"""How many words of a label may be found typical by chance, were counts normal. Many words are looked at, so some are
always more frequent with a label by chance; with rare words it is somewhat more than this."""

LEAST_SURE = 1.96
"""How many standard errors a typical word is above what is usual, however few words are looked at."""

LEAST_TEXTS = 2


def training_words(
    labels: LabelSet, texts: Sequence[Any], targets: Sequence[Any], number: int
) -> list[list[Candidate]]:
    """For each label the words and pairs of words that are most typical of its texts.

    A word is as typical as the difference of its log-odds with the label and elsewhere, in standard errors, where
    counts are shrunk towards the background (Monroe et al. 2008, "Fightin' Words").

    Args:
        labels: The labels.
        texts: Labelled texts.
        targets: The label of each text, or a list of labels.
        number: The most words a label.
    """
    counts, sizes = _counts(labels, texts, targets)
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    names = {name.casefold() for name in labels.names}
    found = []
    for count, size in zip(counts, sizes, strict=True):
        words = sorted(word for word, own in count.items() if own >= LEAST_TEXTS and word not in names)
        own, everywhere = (np.array([of[word] for word in words], dtype=np.float64) for of in (count, total))
        strength = typicality(own, everywhere, size, sum(sizes))
        sure = max(LEAST_SURE, NormalDist().inv_cdf(1 - BY_CHANCE / max(len(words), 1)))
        order = [place for place in np.argsort(-strength, kind="stable").tolist() if strength[place] >= sure]
        taken = _without_parts([words[place] for place in order], number)
        found.append([Candidate(word, settled=True) for word in taken])
    return found


def typicality(own: NDArray[np.float64], everywhere: NDArray[np.float64], size: int, texts: int) -> NDArray[np.float64]:
    """How typical words are of a label, in standard errors: (words,).

    Args:
        own: (words,), in how many texts of the label each word stands.
        everywhere: (words,), in how many texts of all labels.
        size: How many texts the label has.
        texts: How many texts all labels have.
    """
    background = PRIOR * everywhere / max(texts, 1)  # (words,), what the prior says of PRIOR texts
    inside, outside = own + background, everywhere - own + background
    room_inside = np.maximum(size + PRIOR - inside, 0.5)
    room_outside = np.maximum(texts - size + PRIOR - outside, 0.5)
    odds = np.log(inside / room_inside) - np.log(outside / room_outside)
    return np.asarray(odds / np.sqrt(1 / inside + 1 / outside))


def _counts(labels: LabelSet, texts: Sequence[Any], targets: Sequence[Any]) -> tuple[list[Counter[str]], list[int]]:
    """In how many texts of each label each word stands, and how many texts the label has."""
    if len(texts) != len(targets):
        raise MaskMatchError(f"There are {len(texts)} training texts and {len(targets)} labels; each needs one.")
    counts: list[Counter[str]] = [Counter() for _ in labels]
    sizes = [0] * len(counts)
    for text, target in zip(texts, targets, strict=True):
        words = set(_words(text))
        for id_ in target if isinstance(target, list) else [target]:
            place = labels.position(labels.own(id_))
            counts[place].update(words)
            sizes[place] += 1
    return counts, sizes


def _words(text: Any) -> Iterable[str]:
    """The words of a text and the pairs that stand side by side, in small letters."""
    fields = text.values() if isinstance(text, dict) else (text,)
    for field in fields:
        if isinstance(field, str):
            words = [word.lower() for word in WORD.findall(field)]
            yield from (word for word in words if len(word) > 2)
            yield from (f"{first} {second}" for first, second in pairwise(words))


def _without_parts(words: Iterable[str], number: int) -> list[str]:
    """The first so many of the words, without those that stand in one of them already."""
    taken: list[str] = []
    for word in words:
        if len(taken) == number:
            break
        if not any(f" {word} " in f" {other} " or f" {other} " in f" {word} " for other in taken):
            taken.append(word)
    return taken
