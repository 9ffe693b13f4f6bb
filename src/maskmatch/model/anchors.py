"""Anchors: vectors that the model's own vectors are pulled to, such as those of a frozen sentence encoder."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch.nn.functional import cross_entropy, normalize


@dataclass(frozen=True)
class Anchors:
    """Target vectors for some rows of a batch.

    Attributes:
        vectors: (m, dim), with unit norm
        rows: (m,), the rows of the batch that they belong to
        weight: The weight of the distance in the loss.
        contrast: The weight of a contrastive loss: a row should be nearer to its own anchor than to the others.
        temperature: The temperature of the contrastive loss.
    """

    vectors: torch.Tensor
    rows: torch.Tensor
    weight: float = 1.0
    contrast: float = 0.0
    temperature: float = 0.05

    def to(self, device: torch.device) -> Anchors:
        """The same anchors on a device."""
        return replace(self, vectors=self.vectors.to(device), rows=self.rows.to(device))

    def followed_by(self, vectors: torch.Tensor) -> Anchors:
        """These anchors, and more anchors (m, dim) for the rows that follow."""
        rows = torch.arange(len(self.vectors), len(self.vectors) + len(vectors))
        return replace(
            self,
            vectors=torch.cat([self.vectors, vectors.to(self.vectors)]),
            rows=torch.cat([self.rows, rows.to(self.rows)]),
        )


def anchor_loss(vectors: torch.Tensor, anchors: Anchors) -> torch.Tensor:
    """The loss of the distance between vectors (rows, masks, dim) and their anchors."""
    own = normalize(vectors.mean(dim=1)[anchors.rows], dim=-1)  # (m, dim)
    loss = anchors.weight * (1 - (own * anchors.vectors).sum(dim=-1)).mean()
    if anchors.contrast:
        scores = own @ anchors.vectors.T / anchors.temperature  # (m, m)
        loss = loss + anchors.contrast * cross_entropy(scores, torch.arange(len(own), device=own.device))
    return loss
