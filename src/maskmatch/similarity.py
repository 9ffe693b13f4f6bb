"""How well an input vector matches a label vector."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn
from torch.nn.functional import normalize

from maskmatch.errors import MaskMatchError

SimilarityKind = Literal["dot", "cosine"]
PhraseJoin = Literal["mean", "max", "logsumexp"]

FIRST_OFFSET: dict[SimilarityKind, float] = {"cosine": 0.5, "dot": 0.0}
"""From which similarity on a label applies, before there is anything to tell it by."""

STEEPNESS = 2.0
"""How fast a label's probability rises with its lead, where nothing has been learned yet."""


@dataclass(frozen=True)
class SimilarityConfig:
    """The similarity of two vectors, turned into a score.

    Args:
        kind: ``"dot"``: the raw dot product, as in the paper; ``"cosine"``: the cosine of their angle.
        temperature: What the similarity is divided by before the softmax.
        learn_temperature: Whether training adjusts the temperature.
        phrases: How the scores of a label's several phrases become one.
    """

    kind: SimilarityKind = "cosine"
    temperature: float = 0.05
    learn_temperature: bool = False
    phrases: PhraseJoin = "mean"

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("similarity", self.kind, ("dot", "cosine")),
            ("join of phrases", self.phrases, ("mean", "max", "logsumexp")),
        ):
            if value not in choices:
                raise MaskMatchError(f"There is no {name} {value!r}; choose one of {', '.join(choices)}.")
        if not (isinstance(self.temperature, (int, float)) and 0 < self.temperature < math.inf):
            raise MaskMatchError(f"The temperature is {self.temperature!r}; it has to be a number above 0.")

    @classmethod
    def of(cls, similarity: SimilarityKind | SimilarityConfig) -> SimilarityConfig:
        """A config from a kind alone: a dot product is not tempered, a cosine has its usual temperature."""
        if isinstance(similarity, SimilarityConfig):
            return similarity
        return cls(kind=similarity, temperature=1.0 if similarity == "dot" else 0.05)


class Similarity(nn.Module):
    """Scores of texts and labels.

    Args:
        config: Which similarity.
        offset: Whether scores are moved by a learned offset, as sigmoids need: unlike a softmax, a sigmoid
            has to know from which similarity on a label applies.
    """

    def __init__(self, config: SimilarityConfig, offset: bool = False) -> None:
        super().__init__()
        self.config = config
        # The logarithm keeps a learned temperature positive.
        log_scale = torch.tensor(-math.log(config.temperature))
        if config.learn_temperature:
            self.log_scale = nn.Parameter(log_scale)
        else:
            self.register_buffer("log_scale", log_scale)
        self.offset = nn.Parameter(torch.tensor(FIRST_OFFSET[config.kind])) if offset else None

    def forward(self, inputs: torch.Tensor, labels: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        """Score every text with every label.

        Args:
            inputs: (n, masks, dim)
            labels: (K, phrases, masks, dim), the same for all texts, or (n, K, phrases, masks, dim)
            present: (K, phrases), which phrases are there: labels may have different numbers of them

        Returns:
            (n, K)
        """
        inputs, labels = self.prepare(inputs), self.prepare(labels)  # (n, dim), (…, K, phrases, dim)
        if labels.dim() == 3:
            scores = self.compare(inputs, labels.flatten(0, 1))  # (n, K * phrases)
            return self.join(scores.view(-1, *labels.shape[:2]), present)
        return self.join(self.scale(torch.einsum("nd,nkpd->nkp", inputs, labels)), present)

    def prepare(self, vectors: torch.Tensor) -> torch.Tensor:
        """Vectors as they are compared: (…, masks, dim) → (…, dim), of length 1 for cosines."""
        vectors = vectors.mean(dim=-2)
        return normalize(vectors, dim=-1) if self.config.kind == "cosine" else vectors

    def compare(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The scores of prepared texts (n, dim) and label texts (F, dim): (n, F)."""
        return self.scale(inputs @ labels.T)

    def scale(self, products: torch.Tensor) -> torch.Tensor:
        """Products of prepared vectors as scores."""
        moved = products if self.offset is None else products - self.offset
        return moved * self.log_scale.exp()

    def join(self, scores: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        """The scores of labels from those of their phrases: (n, K, phrases) → (n, K)."""
        return join_phrases(scores, present, self.config.phrases)

    @property
    def temperature(self) -> float:
        """The temperature as it is now."""
        return math.exp(-self.log_scale.item())

    @property
    def knows_offset(self) -> bool:
        """Whether training has told from which similarity on a label applies: it never leaves the offset in place."""
        return self.offset is not None and self.offset.item() != FIRST_OFFSET[self.config.kind]

    def move_offset(self, score: float) -> None:
        """Let a label apply from this score on, as scores are now."""
        assert self.offset is not None
        with torch.no_grad():
            self.offset.add_(score * self.temperature)

    def applies(self, scores: torch.Tensor) -> torch.Tensor:
        """How probable it is that a label applies, each by itself: (n, K) → (n, K)."""
        return scores.sigmoid() if self.knows_offset or scores.shape[1] < 2 else standing_out(scores)


def standing_out(scores: torch.Tensor) -> torch.Tensor:
    """How far each label stands out among the labels of its text, as a probability: (n, K) → (n, K).

    Encoders differ in how similar they find any two things, so without training no similarity tells that a label
    applies. What does tell is the lead over the other labels, in standard deviations: it has to be larger the more
    labels there are, as the best of many leads by chance. Each text is judged by itself, whatever its neighbours.
    """
    mean, spread = scores.mean(dim=1, keepdim=True), scores.std(dim=1, keepdim=True, unbiased=False)
    return lead_probability(scores, mean, spread, scores.shape[1])


def lead_probability(scores: torch.Tensor, mean: torch.Tensor, spread: torch.Tensor, labels: int) -> torch.Tensor:
    """The same from the mean (n, 1) and the standard deviation (n, 1) of the scores of all labels."""
    return (STEEPNESS * ((scores - mean) / spread.clamp_min(1e-6) - math.sqrt(math.log(labels)))).sigmoid()


def join_phrases(scores: torch.Tensor, present: torch.Tensor, join: PhraseJoin) -> torch.Tensor:
    """One score a label from the scores of its phrases: (n, K, phrases) → (n, K)."""
    if scores.shape[-1] == 1:
        return scores.squeeze(-1)
    if join == "mean":
        return scores.masked_fill(~present, 0.0).sum(dim=-1) / present.sum(dim=-1)
    scores = scores.masked_fill(~present, float("-inf"))
    if join == "max":
        return scores.amax(dim=-1)
    # Less the logarithm of their number, so that a label does not gain by having more phrases.
    return scores.logsumexp(dim=-1) - present.sum(dim=-1).log()
