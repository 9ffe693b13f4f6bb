"""The read-out of sentence pairs: the states at two masks, one for each side, with their difference and product.

    u, v → (u + v) / 2 + a learned map of [û, v̂, |û - v̂|, û * v̂, |û - v̂|², 1] → one vector

û and v̂ are u and v, normed. If there is a third mask before them, for the pair as a whole, its state takes the
place of (u + v) / 2. The map begins at zero, so that without training a pair is matched as any other text. What is
learned is how much, and where, the two sides by themselves, their difference and their product say which label it is.
Their distance follows from the others, but hundreds of weights would have to agree on it; as a number of its own it is
learned from few pairs. The constant is what a distance is large or small against.

The two sides may stand in one prompt, where the encoder sees both at once, or in a prompt each, where it reads them as
the sentences that it was pretrained on.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import layer_norm, linear

PARTS = 4
"""How many features have the size of a state; the distance and the constant are two more numbers."""


class PairReadout(nn.Module):
    """Makes one vector of the states at two masks, or three.

    Args:
        dimension: The size of a state.
    """

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dimension, PARTS * dimension + 2))
        # A step moves every weight by about the rate, and a vector by the sum over all of them: what is not pretrained
        # learns at a high rate, so without this a few steps would leave nothing of the states.
        self.scale = dimension**-0.5

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """States at the masks of the sides, behind that of the pair if it has one (n, 2 or 3, dim) → (n, 1, dim)."""
        *whole, first, second = states.unbind(dim=1)  # (n, dim)
        # Encoders differ in how large their states are. The sides are brought to one size before they are compared, not
        # after: how far apart they are, and how much alike, is what a pair is about.
        size = len(self.weight)
        first, second = (layer_norm(side, (size,)) for side in (first, second))
        difference = first - second
        features = torch.cat([first, second, difference.abs(), first * second], dim=-1)  # (n, 4 * dim)
        of_features = self.weight[:, : PARTS * size]
        of_distance, of_constant = self.weight[:, PARTS * size :].unbind(dim=1)  # (dim,)
        # The distance is as large as all features together: in one product with them, 8 bits would not hold both.
        distance = difference.square().sum(dim=-1, keepdim=True)  # (n, 1)
        learned = linear(features, of_features) + distance * of_distance + size * of_constant  # (n, dim)
        matched = whole[0] if whole else states.mean(dim=1)
        vectors: torch.Tensor = (matched + self.scale * learned)[:, None]
        return vectors
