"""How well an input vector matches a label vector, as training learns it; ``kept_labels.py`` computes the same."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn.functional import normalize

from maskmatch.similarity_config import FIRST_OFFSET, SimilarityConfig

if TYPE_CHECKING:
    from maskmatch.choices import PhraseJoin


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
        flat = labels.flatten(-4, -3)  # (K * phrases, masks, dim), or (n, K * phrases, masks, dim)
        scores = self.compare(self.prepare(inputs), self.prepare(flat))  # (n, K * phrases)
        return self.join(scores.view(-1, *labels.shape[-4:-2]), present)

    def prepare(self, vectors: torch.Tensor) -> torch.Tensor:
        """Vectors as they are compared, of length 1 for cosines.

        (…, masks, dim) → (…, dim) by mean, (…, masks * dim) by concatenation, (…, masks, dim) for late interaction.
        """
        join = self.config.masks
        if join != "late":
            vectors = vectors.mean(dim=-2) if join == "mean" else vectors.flatten(-2)
        return normalize(vectors, dim=-1) if self.config.kind == "cosine" else vectors

    def compare(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The scores of prepared texts and label texts.

        Args:
            inputs: (n, dim); for late interaction (n, masks, dim)
            labels: (F, dim), the same for all texts, or (n, F, dim); for late interaction (…, masks, dim)

        Returns:
            (n, F)
        """
        if self.config.masks == "late":
            return self.scale(_best_products(inputs, labels))
        return self.scale(_products(inputs, labels))

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


def _products(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Dot products of texts (n, dim) with label texts, (F, dim) or (n, F, dim): (n, F)."""
    if labels.dim() == 2:
        return inputs @ labels.T
    return torch.einsum("nd,nfd->nf", inputs, labels)


def _best_products(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The products of masks of texts with the label's mask that suits each best, on average.

    Args:
        inputs: (n, masks, dim)
        labels: (F, label masks, dim), or (n, F, label masks, dim)

    Returns:
        (n, F)
    """
    count = labels.shape[-2]
    # A mask of the texts at a time: all products at once would be as many times larger. Of each, the largest is kept.
    best = [
        _products(mask, labels.flatten(-3, -2)).view(len(mask), -1, count).max(dim=-1).values
        for mask in inputs.unbind(dim=1)
    ]
    return torch.stack(best).mean(dim=0)


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
