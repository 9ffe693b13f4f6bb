"""Similarities, and how several masks and phrases are joined: tables of rows, each with a torch and a numpy function.

Training computes with torch, prediction with numpy, so every row has both. Neither library is imported with this
module: the command line reads the names of the rows at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maskmatch.config.settings import Settings, setting

if TYPE_CHECKING:
    from collections.abc import Callable

SMALLEST = 1e-12
"""The smallest norm that a vector is divided by."""

STEEPNESS = 2.0
"""How fast an untrained label's probability rises with its lead over the other labels, in standard deviations."""


@dataclass(frozen=True)
class SimilarityKind:
    """A row of the table of similarities: the dot product of vectors, once both are prepared.

    Attributes:
        torch: Prepares vectors in training: (…, dim) → (…, dim).
        numpy: Prepares vectors in prediction.
        temperature: The default temperature.
        offset: Where a text may have several labels: the initial offset (bias) of the logits.
        unit_norm: Whether prepared vectors have unit norm.
    """

    torch: Callable[[Any], Any]
    numpy: Callable[[Any], Any]
    temperature: float
    offset: float
    unit_norm: bool


@dataclass(frozen=True)
class MaskJoin:
    """A row of the table of mask joins: how the states at several masks become what is compared.

    Attributes:
        torch: Joins the masks in training: (…, masks, dim) → (…, dim), or as they are for late interaction.
        numpy: Joins the masks in prediction.
        late: Whether each mask is compared by itself: every mask of the text with its nearest mask of the label.
    """

    torch: Callable[[Any], Any]
    numpy: Callable[[Any], Any]
    late: bool = False


@dataclass(frozen=True)
class PhraseJoin:
    """A row of the table of phrase joins: how the scores of a label's phrases become one score.

    Attributes:
        torch: Joins in training: scores (n, K, phrases) and which phrases are present (K, phrases) → (n, K).
        numpy: Joins in prediction.
    """

    torch: Callable[[Any, Any], Any]
    numpy: Callable[[Any, Any], Any]


def _same(vectors: Any) -> Any:
    return vectors


def _unit_norm_torch(vectors: Any) -> Any:
    return vectors / vectors.norm(dim=-1, keepdim=True).clamp(min=SMALLEST)


def _unit_norm_numpy(vectors: Any) -> Any:
    import numpy as np

    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), SMALLEST)


def _mean_numpy(vectors: Any) -> Any:
    return vectors[..., 0, :] if vectors.shape[-2] == 1 else vectors.mean(axis=-2)


def _mean_of_phrases_numpy(scores: Any, present: Any) -> Any:
    import numpy as np

    return np.where(present, scores, 0.0).sum(axis=-1) / present.sum(axis=-1).astype(scores.dtype)


def _max_of_phrases_numpy(scores: Any, present: Any) -> Any:
    import numpy as np

    return np.where(present, scores, -np.inf).max(axis=-1)


def _logsumexp_of_phrases_numpy(scores: Any, present: Any) -> Any:
    """Less the logarithm of the number of phrases, so that a label does not gain by having more of them."""
    import numpy as np

    scores = np.where(present, scores, -np.inf)
    largest = scores.max(axis=-1, keepdims=True)
    total = np.exp(scores - largest).sum(axis=-1)
    return largest[..., 0] + np.log(total) - np.log(present.sum(axis=-1).astype(scores.dtype))


SIMILARITIES = {
    "cosine": SimilarityKind(_unit_norm_torch, _unit_norm_numpy, temperature=0.05, offset=0.5, unit_norm=True),
    "dot": SimilarityKind(_same, _same, temperature=1.0, offset=0.0, unit_norm=False),  # as in the paper
}

MASK_JOINS = {
    "mean": MaskJoin(lambda vectors: vectors.mean(dim=-2), _mean_numpy),
    "concat": MaskJoin(lambda vectors: vectors.flatten(-2), lambda vectors: vectors.reshape(*vectors.shape[:-2], -1)),
    "late": MaskJoin(_same, _same, late=True),
}

PHRASE_JOINS = {
    "mean": PhraseJoin(
        lambda scores, present: scores.masked_fill(~present, 0.0).sum(dim=-1) / present.sum(dim=-1),
        _mean_of_phrases_numpy,
    ),
    "max": PhraseJoin(
        lambda scores, present: scores.masked_fill(~present, float("-inf")).amax(dim=-1), _max_of_phrases_numpy
    ),
    "logsumexp": PhraseJoin(
        lambda scores, present: (
            scores.masked_fill(~present, float("-inf")).logsumexp(dim=-1) - present.sum(dim=-1).log()
        ),
        _logsumexp_of_phrases_numpy,
    ),
}


@dataclass(frozen=True)
class SimilarityConfig(Settings):
    """How an input vector and a label vector are compared."""

    kind: str = setting(
        "cosine",
        name="similarity",
        choices=SIMILARITIES,
        help="How two vectors are compared: the raw dot product, as in the paper, or the cosine of their angle.",
    )
    temperature: float = setting(
        0.05, at_least=1e-6, at_most=1e6, help="What the similarity is divided by before the softmax."
    )
    learn_temperature: bool = setting(False, help="Whether training adjusts the temperature.")
    phrases: str = setting(
        "mean",
        name="phrase_join",
        choices=PHRASE_JOINS,
        help="How the scores of a label's several phrases become one score.",
    )
    masks: str = setting(
        "mean",
        choices=MASK_JOINS,
        help="How several masks are compared: by the mean of their states, by their concatenation (as many masks in "
        "both prompts), or late: each mask of the text with the nearest mask of the label.",
    )

    @classmethod
    def of(cls, similarity: str | SimilarityConfig) -> SimilarityConfig:
        """A config from the name of a similarity alone, with the temperature of its row."""
        if isinstance(similarity, SimilarityConfig):
            return similarity
        row = SIMILARITIES.get(similarity)
        return cls(kind=similarity) if row is None else cls(kind=similarity, temperature=row.temperature)

    @property
    def row(self) -> SimilarityKind:
        """The row of the table of similarities."""
        return SIMILARITIES[self.kind]

    @property
    def mask_join(self) -> MaskJoin:
        """The row of the table of mask joins."""
        return MASK_JOINS[self.masks]

    @property
    def phrase_join(self) -> PhraseJoin:
        """The row of the table of phrase joins."""
        return PHRASE_JOINS[self.phrases]
