"""Similarity: how well an input vector matches a label vector, in training; ``LabelScorer`` computes the same."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from maskmatch.config.similarity import SimilarityConfig


class Similarity(nn.Module):
    """Scores (logits) of texts and labels.

    Args:
        config: Which similarity.
        offset: Whether logits have a learned offset (bias). Sigmoids need one: unlike a softmax, a sigmoid must know
            from which similarity a label applies.

    Attributes:
        untrained: Whether the offset still has its initial value, so that it says nothing about when a label applies.
    """

    def __init__(self, config: SimilarityConfig, offset: bool = False) -> None:
        super().__init__()
        self.config = config
        self.untrained = True
        # The logarithm keeps a learned temperature positive.
        log_scale = torch.tensor(-math.log(config.temperature))
        if config.learn_temperature:
            self.log_scale = nn.Parameter(log_scale)
        else:
            self.register_buffer("log_scale", log_scale)
        self.offset = nn.Parameter(torch.tensor(config.row.offset)) if offset else None

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
        """Vectors as they are compared, with unit norm for cosines.

        (…, masks, dim) → (…, dim) by mean, (…, masks * dim) by concatenation, (…, masks, dim) for late interaction.
        """
        prepared: torch.Tensor = self.config.row.torch(self.config.mask_join.torch(vectors))
        return prepared

    def compare(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The logits of prepared texts and label texts.

        Args:
            inputs: (n, dim); for late interaction (n, masks, dim)
            labels: (F, dim), the same for all texts, or (n, F, dim); for late interaction (…, masks, dim)

        Returns:
            (n, F)
        """
        compare = _late_products if self.config.mask_join.late else _products
        return self.scale(compare(inputs, labels))

    def scale(self, products: torch.Tensor) -> torch.Tensor:
        """Dot products of prepared vectors as logits."""
        shifted = products if self.offset is None else products - self.offset
        return shifted * self.log_scale.exp()

    def join(self, scores: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        """The scores of labels from those of their phrases: (n, K, phrases) → (n, K)."""
        if scores.shape[-1] == 1:
            return scores.squeeze(-1)
        joined: torch.Tensor = self.config.phrase_join.torch(scores, present)
        return joined

    @property
    def temperature(self) -> float:
        """The current temperature."""
        return math.exp(-self.log_scale.item())

    def shift_offset(self, score: float) -> None:
        """Move the offset so that labels apply from this logit on."""
        assert self.offset is not None
        with torch.no_grad():
            self.offset.add_(score * self.temperature)


def _products(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Dot products of texts (n, dim) with label texts, (F, dim) or (n, F, dim): (n, F)."""
    if labels.dim() == 2:
        return inputs @ labels.T
    return torch.einsum("nd,nfd->nf", inputs, labels)


def _late_products(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The mean over a text's masks of the product with the nearest mask of the label.

    Args:
        inputs: (n, masks, dim)
        labels: (F, label masks, dim), or (n, F, label masks, dim)

    Returns:
        (n, F)
    """
    count = labels.shape[-2]
    # One mask of the texts at a time: all products at once would take many times the memory.
    largest = [
        _products(mask, labels.flatten(-3, -2)).view(len(mask), -1, count).max(dim=-1).values
        for mask in inputs.unbind(dim=1)
    ]
    return torch.stack(largest).mean(dim=0)
