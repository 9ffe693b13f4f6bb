"""The read-out of sentence pairs: the states at two masks, one for each side, with their difference and product.

    u, v → [u, v, |u - v|, u * v] → a learned map → one vector

The map begins as the mean of u and v, so that without training a pair is matched as any other text. What is learned is
how much, and where, the difference and the product of the two sides say which label it is.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import layer_norm, linear

SIDES = 2


class PairReadout(nn.Module):
    """Makes one vector of the states at two masks.

    Args:
        dimension: The size of a state.
    """

    def __init__(self, dimension: int) -> None:
        super().__init__()
        half, nothing = torch.eye(dimension) / SIDES, torch.zeros(dimension, 2 * dimension)
        self.weight = nn.Parameter(torch.cat([half, half, nothing], dim=1))  # (dim, 4 * dim)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """States at two masks (n, 2, dim) → vectors (n, 1, dim)."""
        first, second = states.unbind(dim=1)  # (n, dim)
        size = (len(self.weight),)
        # Encoders differ in how large their states are, and a few numbers of a state are often far above the rest.
        apart, common = layer_norm((first - second).abs(), size), layer_norm(first * second, size)
        features = torch.cat([first, second, apart, common], dim=-1)  # (n, 4 * dim)
        return linear(features, self.weight)[:, None]
