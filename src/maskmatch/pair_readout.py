"""The read-out of sentence pairs: the states at two masks, one for each side, with their difference and product.

    u, v → (u + v) / 2 + a learned map of [u, v, |u - v|, u * v] → one vector

If there is a third mask before them, for the pair as a whole, its state takes the place of (u + v) / 2. The map begins
at zero, so that without training a pair is matched as any other text. What is learned is how much, and where, the two
sides by themselves, their difference and their product say which label it is.

The two sides may stand in one prompt, where the encoder sees both at once, or in a prompt each, where it reads them as
the sentences that it was pretrained on.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import layer_norm, linear

PARTS = 4


class PairReadout(nn.Module):
    """Makes one vector of the states at two masks, or three.

    Args:
        dimension: The size of a state.
    """

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dimension, PARTS * dimension))
        # A step moves every weight by about the rate, and a vector by the sum over all of them: what is not pretrained
        # learns at a high rate, so without this a few steps would leave nothing of the states.
        self.scale = dimension**-0.5

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """States at the masks of the sides, behind that of the pair if it has one (n, 2 or 3, dim) → (n, 1, dim)."""
        *whole, first, second = states.unbind(dim=1)  # (n, dim)
        size = (len(self.weight),)
        # Encoders differ in how large their states are, and a few numbers of a state are often far above the rest.
        parts = [first, second, (first - second).abs(), first * second]
        features = torch.cat([layer_norm(part, size) for part in parts], dim=-1)  # (n, 4 * dim)
        learned: torch.Tensor = linear(features, self.weight)[:, None]
        matched = whole[0][:, None] if whole else states.mean(dim=1, keepdim=True)
        vectors: torch.Tensor = matched + self.scale * learned
        return vectors
