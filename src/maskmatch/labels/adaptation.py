"""Adaptation: what a classifier learns from unlabelled texts.

Before training, names say little about texts, so labels are shifted. Texts of one domain share a direction, and so do
label names. Both are subtracted, so that what differs remains. Then each label vector is shifted towards the texts that
are nearest to it, in a few rounds of soft assignment. A label keeps its own name as an anchor, with the weight of some
texts.

After training, labels know their texts, so texts are smoothed instead: the vector of a text is shifted towards the
unlabelled texts that are nearest to it. A text that is far from all of them stays where it is.

Texts are not kept. What is kept is their mean, and the means of groups of similar texts (prototypes) with their sizes.
The rounds run over prototypes, so they can run again when labels are edited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from maskmatch.labels.layout import LabelLayout

MAX_TEXTS = 20_000
"""How many texts are used at most, drawn at random: more change nothing."""

PROTOTYPES = 2048
"""The most prototypes. With a quarter of them, adapting gains half a point less."""

TEXTS_PER_PROTOTYPE = 2
"""Fewer texts have fewer prototypes, so that not every prototype is a single text."""

ROUNDS = 3
"""Rounds of soft assignment. Later rounds drift away from the names."""

TEMPERATURE = 0.05
"""The temperature of soft assignment, of cosines."""

NAME_WEIGHTS = {0.5: 1.0, 0.7: 0.25, 0.8: 0.1}
"""The weight of a label's name, as a share of the mean number of texts per label, by how far labels before and after
agree. Where texts group by the labels, names need little weight."""

FIRST_WEIGHT = NAME_WEIGHTS[0.7]
"""The weight with which the agreement is measured."""

LEAST_NAME_WEIGHT = 5.0
"""The least weight of a name, in texts: a few texts say little about a label."""

SHRINKAGE = 100.0
"""With this many texts, half of their mean is subtracted; with more, nearly all of it."""

NEIGHBOURS = 8
"""Towards how many prototypes the vector of a text is shifted."""

BLOCK = 1 << 24
"""How many scores are held at a time."""


@dataclass(frozen=True, eq=False)
class Adaptation:
    """What is kept of unlabelled texts. Make one with :meth:`of`.

    Attributes:
        mean: (dim,), what is subtracted from the unit vectors of texts
        prototypes: (m, dim), the means of groups of similar texts, centred
        counts: (m,), the number of texts of each group
        name_weight: The weight of a label's own vector, as a share of the mean number of texts per label
        scale: By what scores are multiplied, so that answers are as confident as they were with names alone
        smooths: Whether the vectors of texts are shifted towards prototypes, instead of labels; their mean is then zero
    """

    mean: NDArray[np.float32]
    prototypes: NDArray[np.float32]
    counts: NDArray[np.float32]
    name_weight: float = FIRST_WEIGHT
    scale: float = 1.0
    smooths: bool = False

    def __post_init__(self) -> None:
        groups = len(self.prototypes)
        if self.mean.ndim != 1 or self.prototypes.shape != (groups, len(self.mean)) or self.counts.shape != (groups,):
            raise MaskMatchError("The mean, the prototypes and their counts do not fit together.")

    @classmethod
    def of(cls, vectors: NDArray[np.float32], seed: int = 0, *, trained: bool = False) -> Adaptation:
        """The adaptation to texts by their vectors (n, dim).

        Args:
            vectors: The vectors of texts.
            seed: The seed of the groups.
            trained: Whether the classifier was trained, so that its labels are more than names.
        """
        from sklearn.cluster import MiniBatchKMeans

        texts = unit(np.asarray(vectors, np.float32))
        mean = (texts.mean(axis=0) * (0.0 if trained else _shrunk(len(texts)))).astype(np.float32)
        texts = unit(texts - mean)
        groups = max(1, min(PROTOTYPES, len(texts) // TEXTS_PER_PROTOTYPE))
        found = MiniBatchKMeans(groups, init="random", n_init=1, max_iter=5, batch_size=1024, random_state=seed).fit(
            texts
        )
        counts = np.bincount(found.labels_, minlength=groups).astype(np.float32)
        sums = np.zeros((groups, texts.shape[1]), np.float32)
        np.add.at(sums, found.labels_, texts)
        filled = counts > 0
        return cls(mean, sums[filled] / counts[filled, None], counts[filled], smooths=trained)

    @property
    def texts(self) -> int:
        """The number of texts."""
        return round(float(self.counts.sum()))

    def to_arrays(self) -> dict[str, NDArray[np.float32]]:
        """Its arrays by name, to save them."""
        numbers = np.array([self.name_weight, self.scale, self.smooths], np.float32)
        return {"mean": self.mean, "prototypes": self.prototypes, "counts": self.counts, "numbers": numbers}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.float32]]) -> Adaptation:
        """What :meth:`to_arrays` gave."""
        mean, prototypes, counts = (np.asarray(arrays[name], np.float32) for name in ("mean", "prototypes", "counts"))
        name_weight, scale, *more = (float(number) for number in arrays["numbers"])
        return cls(mean, prototypes, counts, name_weight, scale, smooths=any(more))

    def label_vectors(self, vectors: NDArray[np.float32], layout: LabelLayout) -> NDArray[np.float32]:
        """The vectors of label texts (F, dim), centred and shifted towards the texts that are nearest.

        Args:
            vectors: The vectors of label texts.
            layout: Which label texts belong to which label.
        """
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        raw = unit(vectors)
        owners, counts = layout.owners, layout.counts[:, None]
        origin = (_by_label(raw, owners, len(layout)) / counts).mean(axis=0) * _shrunk(self.texts)
        names = unit(raw - origin)  # (F, dim)
        labels = unit(_by_label(names, owners, len(layout)))  # (K, dim)
        centroids, weights = self._centroids(labels)
        shifted = unit(weights[owners] * centroids[owners] + (1 - weights[owners]) * names)
        return np.ascontiguousarray(shifted * norms, dtype=np.float32)

    def _centroids(self, labels: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The centroid of the texts assigned to each label, (K, dim), and its weight against the name, (K, 1)."""
        anchor = max(self.name_weight * self.texts / len(labels), LEAST_NAME_WEIGHT)
        current = labels
        for _ in range(ROUNDS):
            sums = self._assigned(current)
            sizes = np.linalg.norm(sums, axis=1, keepdims=True)
            weights, centroids = sizes / (sizes + anchor), unit(sums)
            current = unit(weights * centroids + (1 - weights) * labels)
        return centroids, weights

    def _assigned(self, labels: NDArray[np.float32]) -> NDArray[np.float32]:
        """The sum of the texts that are softly assigned to each label: (K, dim)."""
        sums = np.zeros_like(labels)
        size = max(1, BLOCK // len(labels))
        for start in range(0, len(self.prototypes), size):
            some = self.prototypes[start : start + size]
            scores = some @ labels.T / TEMPERATURE  # (some, K)
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            shares *= (self.counts[start : start + size] / shares.sum(axis=1))[:, None]
            sums += shares.T @ some
        return sums


def name_weight(agreement: float) -> float:
    """The weight of names by how far labels before and after adapting agree (Cohen's kappa).

    >>> [round(name_weight(agreement), 3) for agreement in (0.3, 0.6, 0.75, 0.9)]
    [1.0, 0.625, 0.175, 0.1]
    """
    return float(np.interp(agreement, list(NAME_WEIGHTS), list(NAME_WEIGHTS.values())))


def matching_scale(before: NDArray[np.float32], after: NDArray[np.float32]) -> float:
    """The factor that makes scores as confident on average as others were: scores (n, K) before and after.

    Adapted scores spread more than those of names, so the softmax would be too sure of them. Nobody knows how many
    answers are right, but names alone are nearly calibrated, and adapting makes answers better, not worse.
    """
    wanted = _confidence(before, 1.0)
    low, high = 1e-3, 1e3
    for _ in range(40):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if _confidence(after, middle) < wanted else (low, middle)
    return float(np.sqrt(low * high))


def _confidence(scores: NDArray[np.float32], factor: float) -> float:
    """The mean probability of the best label."""
    scaled = scores * np.float32(factor)
    return float(np.mean(1 / np.exp(scaled - scaled.max(axis=1, keepdims=True)).sum(axis=1)))


def centred(vectors: NDArray[np.float32], mean: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors (n, dim) with a mean subtracted from their directions; their norms stay."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.ascontiguousarray(unit(unit(vectors) - mean) * norms, dtype=np.float32)


def smoothed(vectors: NDArray[np.float32], prototypes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors of texts (n, dim), shifted towards the nearest prototypes (m, dim); their norms stay.

    The weight of the prototypes is the square of their mean cosine with the text. Among themselves they are weighted by
    how much nearer they are than the next one, so that no prototype enters or leaves with a jump.
    """
    count = min(NEIGHBOURS, len(prototypes) - 1)
    if count < 1:
        return vectors
    norms_of_prototypes = np.maximum(np.linalg.norm(prototypes, axis=1), 1e-12)
    parts = []
    size = max(1, BLOCK // max(len(prototypes), (count + 1) * prototypes.shape[1]))
    for start in range(0, len(vectors), size):
        texts = unit(vectors[start : start + size])
        cosines = texts @ prototypes.T / norms_of_prototypes  # (some, m)
        nearest = np.argpartition(-cosines, count, axis=1)[:, : count + 1]
        near = np.take_along_axis(cosines, nearest, axis=1)  # (some, count + 1)
        weights = near - near.min(axis=1, keepdims=True)
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)
        means = unit(np.einsum("nk,nkd->nd", weights, prototypes[nearest]))
        shares = np.square(np.clip((weights * near).sum(axis=1, keepdims=True), 0.0, 1.0))
        parts.append(unit((1 - shares) * texts + shares * means))
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.ascontiguousarray(np.concatenate(parts) * norms, dtype=np.float32) if parts else vectors


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors with unit norm."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, 1e-12), dtype=np.float32)


def _shrunk(texts: int) -> float:
    return texts / (texts + SHRINKAGE)


def _by_label(vectors: NDArray[np.float32], owners: NDArray[np.int64], labels: int) -> NDArray[np.float32]:
    sums = np.zeros((labels, vectors.shape[1]), np.float32)
    np.add.at(sums, owners, vectors)
    return sums
