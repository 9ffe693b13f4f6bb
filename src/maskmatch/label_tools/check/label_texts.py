"""The texts of each label, by their labels or by similarity: suggestions take their words from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.label_tools.expansion.encoded_labels import mean_centred
from maskmatch.label_tools.expansion.training_words import training_words
from maskmatch.labels import LabelSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NEAREST = 10
"""The number of nearest texts per label, if the texts have no labels."""

WORDS = 4
"""The maximum number of typical words per label."""


@dataclass(frozen=True)
class LabelTexts:
    """Texts, and which of them belong to each label.

    Attributes:
        texts: The texts.
        rows: The row numbers of each label's texts.
        labelled: Whether the rows come from true labels; if not, they are the texts nearest to each label.
    """

    texts: Sequence[Any]
    rows: Sequence[NDArray[np.int64]]
    labelled: bool

    @classmethod
    def from_labels(cls, texts: Sequence[Any], targets: Sequence[Any], labels: LabelSet) -> LabelTexts:
        """Group labelled texts. A target is a label or a list of labels; unknown labels are ignored."""
        rows: list[list[int]] = [[] for _ in labels]
        for row, target in enumerate(targets):
            for id_ in target if isinstance(target, list) else [target]:
                if labels.resolve(id_) in labels:
                    rows[labels.position(labels.resolve(id_))].append(row)
        return cls(texts, [np.array(own, dtype=np.int64) for own in rows], labelled=True)

    @classmethod
    def nearest(cls, texts: Sequence[Any], vectors: NDArray[np.float32], labels: NDArray[np.float32]) -> LabelTexts:
        """Give each label the unlabelled texts nearest to it. Texts and labels are mean-centred first.

        Args:
            texts: The texts.
            vectors: (n, dim), their vectors.
            labels: (K, dim), the vectors of the labels.
        """
        similarities = mean_centred(vectors) @ mean_centred(labels).T  # (n, K)
        count = min(NEAREST, len(texts) // 2)  # leave at least as many other texts to compare them with
        order = np.argsort(-similarities, axis=0, kind="stable")[:count]  # (count, K)
        return cls(texts, list(order.T), labelled=False)

    def __len__(self) -> int:
        return len(self.texts)

    def typical_words(self, position: int) -> list[str]:
        """Return the words that are typical of a label's texts, compared with all other texts."""
        is_own = np.zeros(len(self.texts), dtype=np.int64)
        is_own[self.rows[position]] = 1
        return _typical_words(self.texts, is_own.tolist())[1]

    def distinguishing_words(self, first: int, second: int) -> tuple[list[str], list[str]]:
        """Return the words that are typical of the texts of two labels, compared with each other."""
        one, other = (set(self.rows[position].tolist()) for position in (first, second))
        rows = sorted(one ^ other)
        return _typical_words([self.texts[row] for row in rows], [int(row in other) for row in rows])


def _typical_words(texts: Sequence[Any], groups: Sequence[int]) -> tuple[list[str], list[str]]:
    """Return the typical words of two groups of texts; ``groups`` has a 0 or 1 per text."""
    first, second = training_words(LabelSet.of([0, 1]), texts, list(groups), WORDS)
    return [each.text for each in first], [each.text for each in second]
