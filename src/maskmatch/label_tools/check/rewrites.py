"""New names for labels, made from words of their texts. A name is suggested only if its vector is better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from maskmatch.label_tools.check.informativeness import measure, unrelated_similarity
from maskmatch.labels import LabelSet

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from maskmatch.label_tools.expansion import EncodedLabels

LEAST_SENSE = 0.5
"""A name whose sense is below this is uninformative."""

LEAST_DISTANCE = 0.25
"""Two names at a smaller distance are too close. 0 is the same vector, 1 is the distance of unrelated names."""

WORDS_ADDED = 2
"""The number of words that are added to a name to distinguish it from another one."""


@dataclass(frozen=True)
class Rewrite:
    """New names for one or two labels.

    Attributes:
        names: The ids of the labels with their new names.
        effect: What the new names improve, in a sentence.
    """

    names: tuple[tuple[Hashable, str], ...]
    effect: str


def too_close_cosine(labels: EncodedLabels) -> float:
    """Return the cosine from which on two names are too close."""
    return max(1 - LEAST_DISTANCE * (1 - unrelated_similarity(labels)), 1e-9)


class Rewriter:
    """Makes new names for labels. No new name is too close to another label or to another new name.

    Args:
        labels: The labels with their vectors.
    """

    def __init__(self, labels: EncodedLabels) -> None:
        self._labels, self._max_cosine = labels, too_close_cosine(labels)
        self._used_names = {name.casefold() for name in labels.labels.names}
        self._new_vectors: list[NDArray[np.float32]] = []
        self._renamed: set[Hashable] = set()

    def rename(self, position: int, words: Sequence[str]) -> Rewrite | None:
        """Make a new name for an uninformative label; None if these words are no more informative.

        Args:
            position: The label's position.
            words: The typical words of its texts, most typical first.
        """
        if not words:
            return None
        label = self._labels.labels.labels[position]
        sense_before = measure(self._with_names([(position, label.name)])).sense[0]
        best: tuple[float, str] | None = None
        for name in dict.fromkeys((" and ".join(words[:2]), words[0])):  # no commas: they separate names in lists
            if name.casefold() in self._used_names:
                continue
            encoded = self._with_names([(position, name)])
            sense = measure(encoded).sense[0]
            is_better = sense >= LEAST_SENSE and sense > max(sense_before, best[0] if best else 0)
            if is_better and self._is_far_from_others([position], encoded):
                best = sense, name
        if best is None:
            return None
        sense, name = best
        self._reserve(self._with_names([(position, name)]))
        self._renamed.add(label.id)
        effect = f'With the name "{name}" its sense would rise from {sense_before:.2f} to {sense:.2f}.'
        return Rewrite(((label.id, name),), effect)

    def separate(self, positions: tuple[int, int], words: tuple[Sequence[str], Sequence[str]]) -> Rewrite | None:
        """Make names for two labels that are too close, by adding words of their texts; None if they stay too close.

        Args:
            positions: The positions of the two labels.
            words: The words that distinguish the texts of each from those of the other.
        """
        labels = [self._labels.labels.labels[position] for position in positions]
        names = [
            f"{label.name} ({' and '.join(own[:WORDS_ADDED])})" if own else label.name
            for label, own in zip(labels, words, strict=True)
        ]
        changed = [(label.id, name) for label, name in zip(labels, names, strict=True) if name != label.name]
        if not changed or any(name.casefold() in self._used_names for _, name in changed):
            return None
        if names[0].casefold() == names[1].casefold() or any(label.id in self._renamed for label in labels):
            return None
        encoded = self._with_names(list(zip(positions, names, strict=True)))
        cosine = float(encoded.vectors[0] @ encoded.vectors[1])
        if cosine >= self._max_cosine or not self._is_far_from_others(positions, encoded):
            return None
        self._reserve(encoded)
        shown = " and ".join(f'"{name}"' for name in names)
        return Rewrite(tuple(changed), f"With the names {shown} their cosine would fall to {cosine:.2f}.")

    def _with_names(self, names: Sequence[tuple[int, str]]) -> EncodedLabels:
        """Return some labels, by their positions, with other names. The cache of vectors is shared."""
        labels = tuple(replace(self._labels.labels.labels[position], name=name) for position, name in names)
        return replace(self._labels, labels=LabelSet(labels))

    def _is_far_from_others(self, positions: Sequence[int], encoded: EncodedLabels) -> bool:
        """Whether renamed labels are not too close to any other label or new name."""
        others = np.delete(self._labels.vectors, list(positions), axis=0)
        taken = np.concatenate([others, *(vector[None] for vector in self._new_vectors)])  # (m, dim)
        return not len(taken) or float((encoded.vectors @ taken.T).max()) < self._max_cosine

    def _reserve(self, encoded: EncodedLabels) -> None:
        """Remember suggested names, so that no other label gets the same or a close one."""
        self._new_vectors += list(encoded.vectors)
        self._used_names |= {name.casefold() for name in encoded.labels.names}
