"""Anchors: vectors that the model's own are pulled to, such as those of an encoder that knows what sentences mean."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch.nn.functional import cross_entropy, normalize


@dataclass(frozen=True)
class Anchors:
    """Where the vectors of some rows of a batch should lie.

    Attributes:
        vectors: (m, dim), of length 1
        rows: (m,), which rows of the batch they are for
        weight: How much the distance counts.
        contrast: How much it counts that a row lies nearer to its own anchor than to the others'.
        temperature: What cosines are divided by in that contrast.
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
        """These anchors, and others (m, dim) for the rows that follow."""
        rows = torch.arange(len(self.vectors), len(self.vectors) + len(vectors))
        return replace(
            self,
            vectors=torch.cat([self.vectors, vectors.to(self.vectors)]),
            rows=torch.cat([self.rows, rows.to(self.rows)]),
        )


def anchor_loss(vectors: torch.Tensor, anchors: Anchors) -> torch.Tensor:
    """How far vectors (rows, masks, dim) lie from their anchors."""
    own = normalize(vectors.mean(dim=1)[anchors.rows], dim=-1)  # (m, dim)
    loss = anchors.weight * (1 - (own * anchors.vectors).sum(dim=-1)).mean()
    if anchors.contrast:
        scores = own @ anchors.vectors.T / anchors.temperature  # (m, m)
        loss = loss + anchors.contrast * cross_entropy(scores, torch.arange(len(own), device=own.device))
    return loss
