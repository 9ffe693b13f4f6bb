"""Centroids: texts with a label shift its vector towards themselves, be they examples or training texts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.labels import LabelSet

MAX_WEIGHT = 0.6
"""The weight of the centroid of very many examples in a label's vector; the name has the rest."""

EXAMPLES_FOR_HALF, TRAINING_TEXTS_FOR_HALF = 4, 1
"""With this many texts the centroid has half of its weight. Examples may be wrong: a machine may have found them."""

LABELS_FOR_HALF = 8
"""If this many labels have texts, labels without texts are shifted by half of the mean shift."""

TEXTS_PER_LABEL, TEXTS_IN_ALL = 32, 50_000
"""How many training texts a centroid is computed from: with very many labels, fewer per label."""


def example_weight(count: float) -> float:
    """The weight of the centroid of so many examples in a label's vector.

    A few examples, which may be wrong, shift it little; the name always keeps a good part.

    >>> example_weight(4)
    0.3
    """
    return MAX_WEIGHT * count / (count + EXAMPLES_FOR_HALF)


def training_weight(count: float, maximum: float) -> float:
    """The weight of the centroid of so many training texts, if that of very many is ``maximum``.

    >>> training_weight(5, maximum=0.6)
    0.5
    """
    return maximum * count / (count + TRAINING_TEXTS_FOR_HALF)


def check_examples(config: MatcherConfig) -> None:
    """Raise if examples would be read in another way than texts are."""
    if config.method.input_readout != config.method.label_readout:
        raise MaskMatchError(
            f"The method {config.method.name} reads texts and labels at different positions, so labels cannot have "
            "examples; leave them out, or choose mask-matching."
        )
    if len(config.prompts) > 1 or len(config.label_prompts) > 1 or config.debias in ("labels", "both"):
        raise MaskMatchError(
            "Examples are read in the input prompt and names in the label prompt, so they do not go with a pool of "
            "prompts or debiased labels; leave one of the two out."
        )
    if config.prompt.masks != config.label_prompt.masks:
        raise MaskMatchError(
            "Labels can have examples only if the input prompt and the label prompt have the same number of masks; "
            f"here they have {config.prompt.masks} and {config.label_prompt.masks}."
        )


def rows_per_label(targets: NDArray[Any]) -> dict[int, NDArray[np.int64]]:
    """The rows of each label that has any, evenly spaced over the data: positions of labels (n,) → rows.

    >>> rows_per_label(np.array([2, 0, 2]))
    {0: array([1]), 2: array([0, 2])}
    """
    order = np.argsort(targets, kind="stable")
    labels, starts = np.unique(targets[order], return_index=True)
    most = max(1, min(TEXTS_PER_LABEL, TEXTS_IN_ALL // max(1, len(labels))))
    rows = {}
    for label, own in zip(labels, np.split(order, starts[1:]), strict=True):
        rows[int(label)] = own[np.linspace(0, len(own) - 1, min(len(own), most)).round().astype(np.int64)]
    return rows


@dataclass(frozen=True, eq=False)
class Centroids:
    """The centroids of labels' texts.

    Attributes:
        ids: The ids of the labels that have texts.
        vectors: The mean direction of each label's texts, with unit norm over all masks: (k, masks, dim).
        weights: The weight of the centroid in the label's vector: (k,).
    """

    ids: tuple[Hashable, ...]
    vectors: NDArray[np.float32]
    weights: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.vectors.ndim != 3 or not len(self.ids) == len(self.vectors) == len(self.weights):
            raise ValueError(f"{len(self.ids)} labels do not fit vectors of shape {self.vectors.shape}.")

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(
        cls,
        ids: Sequence[Hashable],
        vectors: NDArray[np.float32],
        owners: NDArray[np.int64],
        weights: Sequence[float],
        of_texts: NDArray[np.float32] | None = None,
    ) -> Centroids:
        """The centroids of labels from the vectors of their texts.

        Args:
            ids: The ids of the labels.
            vectors: (n, masks, dim), the vectors of the texts.
            owners: (n,), the label of each text, as a place in ``ids``.
            weights: The weight of each centroid in the vector of its label.
            of_texts: (n,), how much each text counts in its centroid; None: all the same.
        """
        directions = vectors / _norms(vectors)
        if of_texts is not None:
            directions = directions * of_texts[:, None, None]
        return cls(tuple(ids), _mean_directions(len(ids), directions, owners), np.array(weights, float))

    def renamed(self, ids: Mapping[Hashable, Hashable]) -> Centroids:
        """The centroids of the labels in ``ids``, under their new ids."""
        places = [place for place, id_ in enumerate(self.ids) if id_ in ids]
        kept = tuple(ids[self.ids[place]] for place in places)
        return Centroids(kept, self.vectors[places], self.weights[places])

    def merged(self, other: Centroids) -> Centroids:
        """Both together; a label that both have gets the centroid of all its texts and the larger weight."""
        if not len(other) or not len(self):
            return other if not len(self) else self
        ids = tuple(dict.fromkeys((*self.ids, *other.ids)))
        place = {id_: number for number, id_ in enumerate(ids)}
        owners = np.array([place[id_] for id_ in (*self.ids, *other.ids)])
        weights = np.concatenate([self.weights, other.weights])
        vectors = np.concatenate([self.vectors, other.vectors]) * weights.astype(np.float32)[:, None, None]
        largest = np.zeros(len(ids))
        np.maximum.at(largest, owners, weights)
        return Centroids(ids, _mean_directions(len(ids), vectors, owners), largest)

    def shift(self, names: NDArray[np.float32], owners: Sequence[Hashable]) -> NDArray[np.float32]:
        """The vectors of names and phrases, each shifted towards the centroid of its label.

        Names and texts are read in different prompts, so texts are nearer to one another than to any name. If an
        example were one more phrase, labels with texts would win over labels without, and the mean of scores would
        punish a label whose texts differ. For the same reason labels without texts are shifted by the mean shift of
        the others, shrunk if few labels have texts.

        Args:
            names: (F, masks, dim), the vectors of names and phrases.
            owners: (F,), the ids of their labels.
        """
        place = {id_: number for number, id_ in enumerate(self.ids)}
        own = np.array([place.get(owner, -1) for owner in owners])  # (F,)
        rows = np.flatnonzero(own >= 0)  # (f,)
        if not len(rows):
            return names
        known = own[rows]
        norms = _norms(names)
        vectors = names / norms
        weights = self.weights[known].astype(np.float32)[:, None, None]
        shifts = weights * (self.vectors[known] - vectors[rows])  # (f, masks, dim)
        phrases = Counter(known.tolist())
        per_label = np.array([1 / phrases[each] for each in known.tolist()], np.float32)[:, None, None]
        mean_shift = (per_label * shifts).sum(axis=0) / np.float32(len(phrases) + LABELS_FOR_HALF)
        fixed = vectors[rows] + shifts
        vectors += mean_shift
        vectors[rows] = fixed
        vectors *= norms / _norms(vectors)  # the old norm: a dot product should not favour unshifted labels
        return vectors


NO_CENTROIDS = Centroids((), np.empty((0, 1, 0), np.float32), np.empty(0))


def split_examples(vectors: NDArray[np.float32], labels: LabelSet) -> tuple[NDArray[np.float32], Centroids]:
    """The vectors of names and phrases alone, and the centroids of labels that have examples.

    Args:
        vectors: (F, masks, dim), of all that is read for the labels: for each label its texts, then its examples.
        labels: The labels.
    """
    with_examples = [label for label in labels.labels if label.examples]
    number = {label.id: place for place, label in enumerate(with_examples)}
    parts = [(label.id, isinstance(part, str)) for label in labels.labels for part in label.parts]
    names = [row for row, (_, is_name) in enumerate(parts) if is_name]
    examples = [row for row, (_, is_name) in enumerate(parts) if not is_name]
    owners = np.array([number[parts[row][0]] for row in examples], np.int64)
    weights = [example_weight(len(label.examples)) for label in with_examples]
    return vectors[names], Centroids.of(list(number), vectors[examples], owners, weights)


def _mean_directions(count: int, vectors: NDArray[np.float32], owners: NDArray[np.int64]) -> NDArray[np.float32]:
    """The sums of the vectors of each owner, with unit norm: (n, masks, dim) → (count, masks, dim)."""
    sums = np.zeros((count, *vectors.shape[1:]), np.float32)
    np.add.at(sums, owners, vectors)
    return np.asarray(sums / _norms(sums))


def _norms(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The norms of vectors (n, masks, dim) over all their masks: (n, 1, 1)."""
    norms = np.linalg.norm(vectors.reshape(len(vectors), -1), axis=1)
    return np.asarray(np.maximum(norms, 1e-12), np.float32)[:, None, None]
