"""Label vectors that are kept, and what texts score with them: all that prediction computes behind the encoder."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.products import product
from maskmatch.similarity_config import FIRST_OFFSET, STEEPNESS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maskmatch.choices import PhraseJoin
    from maskmatch.similarity_config import SimilarityConfig

SMALLEST = 1e-12
"""What a vector's length is taken for at least, as torch does."""

GATHERED = 1 << 23
"""How many numbers of label vectors are gathered at a time, for texts that have labels of their own: 32 MB."""

PRODUCTS = 1 << 21
"""How many products late interaction holds at a time: 8 MB."""


@dataclass(frozen=True)
class KeptLabels:
    """Label vectors, ready to be compared with input vectors. Make it with :meth:`of`.

    Attributes:
        vectors: (F, dim), one for each phrase of each label, in the order of labels; of length 1 for a cosine. For late
            interaction (F, masks, dim). Where labels are read with each text, those of some texts: (n, F, …).
        present: (K, phrases), which phrases there are.
        config: Which similarity.
        scale: What a similarity is multiplied with to be a score.
        offset: From which similarity on a label applies, where a text may have several; else None.
        in_context: Whether labels are read with each text. Their vectors come with the texts: :meth:`for_texts`.
    """

    vectors: NDArray[np.float32]
    present: NDArray[np.bool_]
    config: SimilarityConfig
    scale: float
    offset: float | None = None
    in_context: bool = False

    @classmethod
    def of(
        cls,
        vectors: NDArray[np.float32],
        present: NDArray[np.bool_],
        config: SimilarityConfig,
        *,
        scale: float,
        offset: float | None = None,
    ) -> KeptLabels:
        """Take in label vectors as they are read, (K, phrases, masks, dim)."""
        single = vectors.shape[1] == 1  # nothing is left out, so nothing is copied
        flat = vectors[:, 0] if single else vectors[present]  # (F, masks, dim)
        return cls(_as_compared(flat, config), present, config, scale, offset)

    @classmethod
    def to_come(
        cls, present: NDArray[np.bool_], config: SimilarityConfig, *, scale: float, offset: float | None = None
    ) -> KeptLabels:
        """Labels that are read with each text, before there is a text."""
        nothing = np.empty((0, int(present.sum()), 0), np.float32)
        return cls(nothing, present, config, scale, offset, in_context=True)

    def for_texts(self, vectors: NDArray[np.float32]) -> KeptLabels:
        """The same labels as they were read with some texts, (n, F, masks, dim)."""
        return replace(self, vectors=_as_compared(vectors, self.config))

    def __len__(self) -> int:
        return len(self.present)

    @property
    def texts(self) -> int:
        """How many label texts there are."""
        return int(self.present.sum())

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """Each label's rows of ``vectors``, padded with 0: (K, phrases)."""
        table = np.zeros(self.present.shape, dtype=np.int64)
        table[self.present] = np.arange(self.texts)
        return table

    @property
    def owners(self) -> NDArray[np.int64]:
        """The label of each of ``vectors``: (F,)."""
        return np.repeat(np.arange(len(self)), self.present.sum(axis=1))

    def select(self, labels: NDArray[np.int64]) -> KeptLabels:
        """Some of the labels (s,), alone."""
        present = self.present[labels]
        return replace(self, vectors=self.vectors[self.table[labels][present]], present=present)

    # -- scores ----------------------------------------------------------------------------------------------

    def as_compared(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The vectors of texts as they are compared: (n, masks, dim) → (n, dim), or (n, masks, dim) if that is late."""
        return _as_compared(inputs, self.config)

    def scores(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Score every text with every label: (n, masks, dim) → (n, K)."""
        return self.block(self.as_compared(inputs), 0, len(self))

    def multiplications(self, rows: NDArray[np.float32]) -> int:
        """How many of them the scores of texts, as they are compared (n, …, dim), take with all labels."""
        masks = rows.shape[1] if self.config.masks == "late" else 1
        return masks * self.vectors.size * (1 if self.in_context else len(rows))

    def block(self, rows: NDArray[np.float32], start: int, stop: int) -> NDArray[np.float32]:
        """The scores of texts, as they are compared (n, …, dim), with the labels of a range: (n, stop - start)."""
        table, present = self.table[start:stop], self.present[start:stop]
        first, last = int(table[0, 0]), int(table[-1].max()) + 1  # label texts lie in the order of labels
        texts = self.vectors[:, first:last] if self.in_context else self.vectors[first:last]
        compare = _best_products if self.config.masks == "late" else _products
        scores = self._scaled(compare(rows, texts))
        arranged = scores[:, :, None] if table.shape[1] == 1 else scores[:, np.maximum(table - first, 0)]
        return join_phrases(arranged, present, self.config.phrases)

    def pairs(self, rows: NDArray[np.float32], labels: NDArray[np.int64]) -> NDArray[np.float32]:
        """The scores of texts, as they are compared (n, dim), with labels of their own (n, c): (n, c)."""
        table = self.table[labels]  # (n, c, phrases)
        products = np.empty(table.shape, np.float32)
        size = max(1, GATHERED // (table[:1].size * self.vectors.shape[1]))
        for start in range(0, len(rows), size):
            some = table[start : start + size]
            vectors = self.vectors[some.reshape(len(some), -1)]  # (some, c * phrases, dim)
            products[start : start + size] = (vectors @ rows[start : start + size, :, None]).reshape(some.shape)
        return join_phrases(self._scaled(products), self.present[labels], self.config.phrases)

    def _scaled(self, products: NDArray[np.float32]) -> NDArray[np.float32]:
        """Products of vectors as scores, in their place: they are large, and nobody else has them."""
        if self.offset is not None:
            products -= np.float32(self.offset)
        products *= np.float32(self.scale)
        return products

    # -- probabilities ---------------------------------------------------------------------------------------

    @property
    def by_lead(self) -> bool:
        """Whether a label's lead over the others tells that it applies, as no similarity does yet.

        Training never leaves the offset in place: where it is, nothing has been learned.
        """
        return self.offset is not None and self.offset == FIRST_OFFSET[self.config.kind] and len(self) > 1

    def probabilities(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """How probable each label is: (n, masks, dim) → (n, K). Where a text may have several, each by itself."""
        scores = self.scores(inputs)
        if self.offset is None:
            return np.asarray(np.exp(scores - log_of_sum(scores)[:, None]))
        return standing_out(scores) if self.by_lead else sigmoid(scores)


def standing_out(scores: NDArray[Any]) -> NDArray[Any]:
    """How far each label stands out among the labels of its text, as a probability: (n, K) → (n, K).

    Encoders differ in how similar they find any two things, so without training no similarity tells that a label
    applies. What does tell is the lead over the other labels, in standard deviations: it has to be larger the more
    labels there are, as the best of many leads by chance. Each text is judged by itself, whatever its neighbours.
    """
    mean = scores.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.square(scores - mean).mean(axis=1, keepdims=True))
    return lead_probability(scores, mean, spread, scores.shape[1])


def lead_probability(scores: NDArray[Any], mean: NDArray[Any], spread: NDArray[Any], labels: int) -> NDArray[Any]:
    """The same from the mean (n, 1) and the standard deviation (n, 1) of the scores of all labels."""
    return sigmoid(STEEPNESS * ((scores - mean) / np.maximum(spread, 1e-6) - math.sqrt(math.log(labels))))


def join_phrases(scores: NDArray[Any], present: NDArray[np.bool_], join: PhraseJoin) -> NDArray[Any]:
    """One score a label from the scores of its phrases: (n, K, phrases) → (n, K)."""
    if scores.shape[-1] == 1:
        return scores[..., 0]
    count = present.sum(axis=-1).astype(scores.dtype)  # (K,)
    if join == "mean":
        return np.asarray(np.where(present, scores, 0.0).sum(axis=-1) / count)
    scores = np.where(present, scores, -np.inf)
    if join == "max":
        return np.asarray(scores.max(axis=-1))
    # Less the logarithm of their number, so that a label does not gain by having more phrases.
    return np.asarray(log_of_sum(scores) - np.log(count))


def log_of_sum(scores: NDArray[Any]) -> NDArray[Any]:
    """The logarithm of the sum of exponentiated scores over the last axis; -inf where all of them are."""
    largest = scores.max(axis=-1)
    shift = np.where(np.isfinite(largest), largest, 0.0).astype(scores.dtype, copy=False)
    powers = scores - shift[..., None]
    np.exp(powers, out=powers)  # one copy of what may be large, not two
    with np.errstate(divide="ignore"):
        return np.asarray(shift + np.log(powers.sum(axis=-1)))


def sigmoid(scores: NDArray[Any]) -> NDArray[Any]:
    """The logistic function."""
    # With exp of what is not positive alone, nothing overflows.
    powers = np.exp(-np.abs(scores))
    return np.asarray(np.where(scores >= 0, 1.0, powers) / (1.0 + powers)).astype(scores.dtype, copy=False)


def _as_compared(vectors: NDArray[Any], config: SimilarityConfig) -> NDArray[np.float32]:
    """Vectors as they are compared: (…, masks, dim) as (…, dim), or as they are for late interaction.

    For a cosine they are of length 1.
    """
    if config.masks == "concat":
        vectors = vectors.reshape(*vectors.shape[:-2], -1)
    elif config.masks == "mean":
        vectors = vectors[..., 0, :] if vectors.shape[-2] == 1 else vectors.mean(axis=-2)
    if config.kind == "cosine":
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), SMALLEST)
    return np.ascontiguousarray(vectors, dtype=np.float32)


def _products(rows: NDArray[np.float32], texts: NDArray[np.float32]) -> NDArray[np.float32]:
    """Dot products of texts (n, dim) with label texts, (F, dim) or (n, F, dim): (n, F)."""
    return product(rows, texts) if texts.ndim == 2 else np.asarray((texts @ rows[:, :, None])[:, :, 0])


def _best_products(rows: NDArray[np.float32], texts: NDArray[np.float32]) -> NDArray[np.float32]:
    """The products of masks of texts with the label's mask that suits each best, on average.

    Args:
        rows: (n, masks, dim)
        texts: (F, label masks, dim), or (n, F, label masks, dim)

    Returns:
        (n, F)
    """
    count, (labels, masks, dimension) = len(rows), texts.shape[-3:]
    found = np.zeros((count, labels), dtype=np.float32)
    size = max(1, PRODUCTS // max(1, count * masks))
    for start in range(0, labels, size):
        part = texts[..., start : start + size, :, :]
        flat = part.reshape(*part.shape[:-3], -1, dimension)  # (…, labels of the block * label masks, dim)
        for mask in range(rows.shape[1]):
            products = _products(np.ascontiguousarray(rows[:, mask]), flat)
            found[:, start : start + size] += products.reshape(count, -1, masks).max(axis=-1)
    return np.asarray(found / np.float32(rows.shape[1]))
