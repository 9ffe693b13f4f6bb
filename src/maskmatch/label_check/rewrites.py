"""Other names for labels, made of words that texts have, and read by the encoder before anybody is told of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from maskmatch.label_check.informativeness import measure, usual_similarity
from maskmatch.labels import LabelSet

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from maskmatch.expansion import Ground

SAYS_LITTLE = 0.5
"""A name whose sense is below this says little."""

TOO_CLOSE = 0.25
"""Two names that are this near are too close: 0 is the same vector, 1 is as far apart as unrelated names."""

WORDS_ADDED = 2
"""How many words a name gets to be told from another one."""


@dataclass(frozen=True)
class Rewrite:
    """Other names for one or two labels, and what the encoder makes of them.

    Attributes:
        names: The ids of labels with their new names.
        told: What they would change, in a sentence.
    """

    names: tuple[tuple[Hashable, str], ...]
    told: str


def closeness_limit(ground: Ground) -> float:
    """From which cosine on two names are too close."""
    return max(1 - TOO_CLOSE * (1 - usual_similarity(ground)), 1e-9)


class Rewriter:
    """Makes other names for labels, none of which comes too close to another label or to another of these names.

    Args:
        ground: The labels as they are read.
    """

    def __init__(self, ground: Ground) -> None:
        self._ground, self._limit = ground, closeness_limit(ground)
        self._names = {name.casefold() for name in ground.labels.names}
        self._given: list[NDArray[np.float32]] = []
        self._renamed: set[Hashable] = set()

    def renamed(self, place: int, words: Sequence[str]) -> Rewrite | None:
        """A name made of words for a label that has none that says anything; None if these words say no more.

        Args:
            place: The label's position.
            words: Words that are typical of its texts, the most typical first.
        """
        if not words:
            return None
        own = self._ground.labels.labels[place]
        before = measure(self._under([(place, own.name)])).sense[0]
        best: tuple[float, str] | None = None
        for name in dict.fromkeys((" and ".join(words[:2]), words[0])):  # no commas: names are listed with these
            if name.casefold() in self._names:
                continue
            read = self._under([(place, name)])
            sense = measure(read).sense[0]
            if sense >= SAYS_LITTLE and sense > max(before, best[0] if best else 0) and self._free([place], read):
                best = sense, name
        if best is None:
            return None
        sense, name = best
        self._take(self._under([(place, name)]))
        self._renamed.add(own.id)
        told = f'As "{name}" it would say more: its sense would rise from {before:.2f} to {sense:.2f}.'
        return Rewrite(((own.id, name),), told)

    def told_apart(self, places: tuple[int, int], words: tuple[Sequence[str], Sequence[str]]) -> Rewrite | None:
        """Names for two labels that are too close, each with words of its own texts; None if they stay too close.

        Args:
            places: The positions of the two labels.
            words: Words that set the texts of each apart from those of the other.
        """
        labels = [self._ground.labels.labels[place] for place in places]
        names = [
            f"{label.name} ({' and '.join(own[:WORDS_ADDED])})" if own else label.name
            for label, own in zip(labels, words, strict=True)
        ]
        changed = [(label.id, name) for label, name in zip(labels, names, strict=True) if name != label.name]
        if not changed or any(name.casefold() in self._names for _, name in changed):
            return None
        if names[0].casefold() == names[1].casefold() or any(label.id in self._renamed for label in labels):
            return None
        read = self._under(list(zip(places, names, strict=True)))
        cosine = float(read.vectors[0] @ read.vectors[1])
        if cosine >= self._limit or not self._free(places, read):
            return None
        self._take(read)
        told = " and ".join(f'"{name}"' for name in names)
        return Rewrite(tuple(changed), f"As {told} they would be told apart (cosine {cosine:.2f}).")

    def _under(self, names: Sequence[tuple[int, str]]) -> Ground:
        """Some labels alone, by their positions, under other names; what was read before is not read again."""
        labels = tuple(replace(self._ground.labels.labels[place], name=name) for place, name in names)
        return replace(self._ground, labels=LabelSet(labels))

    def _free(self, places: Sequence[int], read: Ground) -> bool:
        """Whether labels, at some places and read under other names, are too close to none of the other labels."""
        others = np.delete(self._ground.vectors, list(places), axis=0)
        known = np.concatenate([others, *(given[None] for given in self._given)])  # (m, dim)
        return not len(known) or float((read.vectors @ known.T).max()) < self._limit

    def _take(self, read: Ground) -> None:
        """Remember names that are suggested: another label must not get them too."""
        self._given += list(read.vectors)
        self._names |= {name.casefold() for name in read.labels.names}
