"""Label vectors that are kept, and what texts score with them: all that prediction computes behind the encoder."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.similarity_config import FIRST_OFFSET, STEEPNESS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maskmatch.similarity_config import PhraseJoin, SimilarityConfig

SMALLEST = 1e-12
"""What a vector's length is taken for at least, as torch does."""


@dataclass(frozen=True)
class KeptLabels:
    """Label vectors, ready to be compared with input vectors. Make it with :meth:`of`.

    Attributes:
        vectors: (K, phrases, dim), one for each phrase of each label; of length 1 for a cosine.
        present: (K, phrases), which phrases there are.
        config: Which similarity.
        scale: What a similarity is multiplied with to be a score.
        offset: From which similarity on a label applies, where a text may have several; else None.
    """

    vectors: NDArray[np.float32]
    present: NDArray[np.bool_]
    config: SimilarityConfig
    scale: float
    offset: float | None = None

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
        return cls(_as_compared(vectors, config), present, config, scale, offset)

    def scores(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Score every text with every label: (n, masks, dim) → (n, K)."""
        rows = _as_compared(inputs, self.config)  # (n, dim)
        labels, phrases, dimension = self.vectors.shape
        scores = (rows @ self.vectors.reshape(-1, dimension).T).reshape(-1, labels, phrases)
        if self.offset is not None:
            scores = scores - np.float32(self.offset)
        return join_phrases(scores * np.float32(self.scale), self.present, self.config.phrases)

    def probabilities(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """How probable each label is: (n, masks, dim) → (n, K). Where a text may have several, each by itself."""
        scores = self.scores(inputs)
        if self.offset is None:
            return _softmax(scores)
        # Training never leaves the offset in place: where it is, no similarity tells that a label applies.
        knows_offset = self.offset != FIRST_OFFSET[self.config.kind]
        return _sigmoid(scores) if knows_offset or scores.shape[1] < 2 else standing_out(scores)


def standing_out(scores: NDArray[Any]) -> NDArray[Any]:
    """How far each label stands out among the labels of its text, as a probability: (n, K) → (n, K).

    Encoders differ in how similar they find any two things, so without training no similarity tells that a label
    applies. What does tell is the lead over the other labels, in standard deviations: it has to be larger the more
    labels there are, as the best of many leads by chance. Each text is judged by itself, whatever its neighbours.
    """
    lead = scores - scores.mean(axis=1, keepdims=True)
    spread = np.maximum(np.sqrt(np.square(lead).mean(axis=1, keepdims=True)), 1e-6)
    return _sigmoid(STEEPNESS * (lead / spread - math.sqrt(math.log(scores.shape[1]))))


def join_phrases(scores: NDArray[Any], present: NDArray[np.bool_], join: PhraseJoin) -> NDArray[Any]:
    """One score a label from the scores of its phrases: (n, K, phrases) → (n, K)."""
    if scores.shape[-1] == 1:
        return scores[..., 0]
    count = present.sum(axis=-1).astype(scores.dtype)  # (K,)
    if join == "mean":
        return np.asarray(np.where(present, scores, 0.0).sum(axis=-1) / count)
    scores = np.where(present, scores, -np.inf)
    largest = scores.max(axis=-1)
    if join == "max":
        return np.asarray(largest)
    # Less the logarithm of their number, so that a label does not gain by having more phrases.
    return np.asarray(largest + np.log(np.exp(scores - largest[..., None]).sum(axis=-1)) - np.log(count))


def _as_compared(vectors: NDArray[Any], config: SimilarityConfig) -> NDArray[np.float32]:
    """Vectors (…, masks, dim) as (…, dim): averaged over masks, and for a cosine of length 1."""
    mean = vectors[..., 0, :] if vectors.shape[-2] == 1 else vectors.mean(axis=-2)
    if config.kind == "cosine":
        mean = mean / np.maximum(np.linalg.norm(mean, axis=-1, keepdims=True), SMALLEST)
    return np.ascontiguousarray(mean, dtype=np.float32)


def _softmax(scores: NDArray[Any]) -> NDArray[Any]:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _sigmoid(scores: NDArray[Any]) -> NDArray[Any]:
    # With exp of what is not positive alone, nothing overflows.
    powers = np.exp(-np.abs(scores))
    return np.asarray(np.where(scores >= 0, 1.0, powers) / (1.0 + powers)).astype(scores.dtype, copy=False)
