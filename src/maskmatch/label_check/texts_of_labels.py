"""Texts and the labels that they belong to, or come closest to: where the words of suggestions are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.expansion.ground import centred
from maskmatch.label_check.suggestions import typical_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from maskmatch.labels import LabelSet

CLOSEST = 10
"""How many texts are looked at for what a label may be about, where it is not known which are its own."""


@dataclass(frozen=True)
class TextsOfLabels:
    """Texts, and which of them are those of each label.

    Attributes:
        texts: The texts.
        rows: For each label the numbers of its texts.
        known: Whether these are the labels that the texts have; else they are the texts that come closest.
    """

    texts: Sequence[Any]
    rows: Sequence[NDArray[np.int64]]
    known: bool

    @classmethod
    def labelled(cls, texts: Sequence[Any], targets: Sequence[Any], labels: LabelSet) -> TextsOfLabels:
        """Texts with their labels, one or a list of them; labels that are not among these are left out."""
        rows: list[list[int]] = [[] for _ in labels]
        for row, target in enumerate(targets):
            for id_ in target if isinstance(target, list) else [target]:
                if labels.own(id_) in labels:
                    rows[labels.position(labels.own(id_))].append(row)
        return cls(texts, [np.array(own, dtype=np.int64) for own in rows], known=True)

    @classmethod
    def closest(cls, texts: Sequence[Any], vectors: NDArray[np.float32], labels: NDArray[np.float32]) -> TextsOfLabels:
        """Texts without labels: each label gets those that come closest to it.

        What all texts have in common, and what all names have in common, is taken out before they are compared.

        Args:
            texts: The texts.
            vectors: (n, dim), their vectors.
            labels: (K, dim), those of the labels.
        """
        similarities = centred(vectors) @ centred(labels).T  # (n, K)
        count = min(CLOSEST, len(texts) // 2)  # as many others to set them apart from
        order = np.argsort(-similarities, axis=0, kind="stable")[:count]  # (count, K)
        return cls(texts, list(order.T), known=False)

    def __len__(self) -> int:
        return len(self.texts)

    def words(self, place: int) -> list[str]:
        """The words that set the texts of a label apart from all others."""
        own = np.zeros(len(self.texts), dtype=np.int64)
        own[self.rows[place]] = 1
        return typical_words(self.texts, own.tolist(), 2)[1]

    def words_apart(self, first: int, second: int) -> tuple[list[str], list[str]]:
        """The words that set the texts of two labels apart from each other."""
        one, other = (set(self.rows[place].tolist()) for place in (first, second))
        rows = sorted(one ^ other)
        found = typical_words([self.texts[row] for row in rows], [int(row in other) for row in rows], 2)
        return found[0], found[1]
