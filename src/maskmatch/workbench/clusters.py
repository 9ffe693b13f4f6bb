"""Groups of texts that no label covers, and the words that are typical of texts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maskmatch.label_tools.check.names import content_words
from maskmatch.workbench.records import plain
from maskmatch.workbench.vectors import unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.workbench.project import Project

SHARE = 0.1
"""Groups are sought among this share of the texts: those that are furthest from all labels."""

MOST_TEXTS, LEAST_TEXTS, LEAST_GROUP = 2_000, 30, 5
PER_GROUP, MOST_GROUPS = 12, 8
"""About how many texts a group has, and how many groups there are at most."""


@dataclass(frozen=True)
class Group:
    """Texts that are alike and far from all labels.

    Attributes:
        texts: Their numbers.
        words: Words that are typical of them.
    """

    texts: tuple[int, ...]
    words: tuple[str, ...]


def uncovered(project: Project) -> list[Group]:
    """Groups of texts that no label covers, the closest ones first; none if there are few texts."""
    from sklearn.cluster import KMeans

    novelty = project.engine.novelty(project.labels) if project.labels.labels else np.zeros(0)
    count = min(MOST_TEXTS, int(SHARE * len(novelty)))
    if count < LEAST_TEXTS:
        return []
    far = np.argsort(-novelty, kind="stable")[:count]
    vectors = unit(project.engine.vectors[far])
    found = KMeans(max(2, min(MOST_GROUPS, count // PER_GROUP)), n_init=3, random_state=0).fit(vectors)
    others = [plain(text) for text in project.store.texts(project.store.drawn()[:MOST_TEXTS])]
    groups = []
    for number in range(found.n_clusters):
        own = far[found.labels_ == number]
        if len(own) < LEAST_GROUP:
            continue
        spread = float(np.linalg.norm(vectors[found.labels_ == number] - found.cluster_centers_[number], axis=1).mean())
        words = typical_words([plain(text) for text in project.store.texts(own.tolist())], others)
        groups.append((spread, Group(tuple(own.tolist()), tuple(words))))
    return [group for _, group in sorted(groups, key=lambda pair: pair[0])]


def typical_words(texts: Sequence[str], others: Sequence[str], most: int = 6) -> list[str]:
    """Words that are far more frequent in some texts than in others.

    >>> typical_words(["a red bike", "the red bike"], ["a red car", "a blue car", "a green boat", "a red bike"])
    ['bike', 'red']
    """
    own = Counter(word for text in texts for word in set(content_words(text)))
    every = Counter(word for text in others for word in set(content_words(text)))
    scores = {
        word: count / len(texts) * np.log(len(others) / max(1, every[word]))
        for word, count in own.items()
        if count >= max(2, len(texts) // 10) and not word.isdigit()
    }
    return sorted(scores, key=lambda word: (-scores[word], word))[:most]
