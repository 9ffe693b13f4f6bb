"""Candidate phrases from labelled texts: the words that are typical of a label's texts."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.label_tools.expansion.result import Candidate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from maskmatch.labels import LabelSet

WORD = re.compile(r"[^\W\d_](?:[\w'\u2019-]*\w)?")
PRIOR_TEXTS = 10.0
"""The weight of the prior in texts: counts in few texts are shrunk towards the word's frequency in all texts."""

FALSE_POSITIVES = 0.5
"""The expected number of words per label that pass the threshold by chance, if z-scores were normal.
With many candidate words some are always more frequent with a label by chance. Rare words are not normal, so the actual
number is a little higher."""

LEAST_Z_SCORE = 1.96
"""The lowest threshold, however few candidate words there are."""

LEAST_TEXTS = 2
"""A word has to occur in at least this many texts of the label."""


def training_words(labels: LabelSet, texts: Sequence[Any], targets: Sequence[Any], limit: int) -> list[list[Candidate]]:
    """Return the words and bigrams per label that are most typical of its texts.

    The measure is the z-score of the log-odds ratio between the label's texts and all other texts, with a Dirichlet
    prior from the background (Monroe et al. 2008, "Fightin' Words").

    Args:
        labels: The labels.
        texts: Labelled texts.
        targets: The label of each text, or a list of labels.
        limit: The maximum number of words per label.
    """
    counts, sizes = _document_frequencies(labels, texts, targets)
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    names = {name.casefold() for name in labels.names}
    candidates = []
    for count, size in zip(counts, sizes, strict=True):
        words = sorted(word for word, own in count.items() if own >= LEAST_TEXTS and word not in names)
        own, everywhere = (np.array([of[word] for word in words], dtype=np.float64) for of in (count, total))
        z_scores = typicality(own, everywhere, size, sum(sizes))
        threshold = max(LEAST_Z_SCORE, NormalDist().inv_cdf(1 - FALSE_POSITIVES / max(len(words), 1)))
        order = [word for word in np.argsort(-z_scores, kind="stable").tolist() if z_scores[word] >= threshold]
        chosen = _without_overlaps([words[word] for word in order], limit)
        candidates.append([Candidate(word, skip_filter=True) for word in chosen])
    return candidates


def typicality(own: NDArray[np.float64], everywhere: NDArray[np.float64], size: int, texts: int) -> NDArray[np.float64]:
    """Return the z-score of each word's log-odds ratio: how typical it is of a label. Shape: (words,).

    Args:
        own: (words,), the number of the label's texts that contain each word.
        everywhere: (words,), the number of texts of all labels that contain it.
        size: The number of the label's texts.
        texts: The number of texts of all labels.
    """
    prior = PRIOR_TEXTS * everywhere / max(texts, 1)  # (words,), expected counts in PRIOR_TEXTS texts
    inside, outside = own + prior, everywhere - own + prior
    without_inside = np.maximum(size + PRIOR_TEXTS - inside, 0.5)
    without_outside = np.maximum(texts - size + PRIOR_TEXTS - outside, 0.5)
    log_odds_ratio = np.log(inside / without_inside) - np.log(outside / without_outside)
    return np.asarray(log_odds_ratio / np.sqrt(1 / inside + 1 / outside))


def _document_frequencies(
    labels: LabelSet, texts: Sequence[Any], targets: Sequence[Any]
) -> tuple[list[Counter[str]], list[int]]:
    """Count per label the texts that contain each word, and all texts."""
    if len(texts) != len(targets):
        raise MaskMatchError(f"There are {len(texts)} training texts and {len(targets)} labels; each text needs one.")
    counts: list[Counter[str]] = [Counter() for _ in labels]
    sizes = [0] * len(counts)
    for text, target in zip(texts, targets, strict=True):
        words = set(_words_and_bigrams(text))
        for id_ in target if isinstance(target, list) else [target]:
            position = labels.position(labels.resolve(id_))
            counts[position].update(words)
            sizes[position] += 1
    return counts, sizes


def _words_and_bigrams(text: Any) -> Iterable[str]:
    """Yield the words (of three letters or more) and bigrams of a text, in lower case."""
    fields = text.values() if isinstance(text, dict) else (text,)
    for field in fields:
        if isinstance(field, str):
            words = [word.lower() for word in WORD.findall(field)]
            yield from (word for word in words if len(word) > 2)
            yield from (f"{first} {second}" for first, second in pairwise(words))


def _without_overlaps(words: Iterable[str], limit: int) -> list[str]:
    """Return the first words, skipping each that contains, or is part of, one that was chosen before."""
    chosen: list[str] = []
    for word in words:
        if len(chosen) == limit:
            break
        if not any(f" {word} " in f" {other} " or f" {other} " in f" {word} " for other in chosen):
            chosen.append(word)
    return chosen
