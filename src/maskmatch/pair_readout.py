"""The read-out of sentence pairs: the states at two masks, one for each side, with their difference and distance.

    u, v → m + |m| * a learned map of [û - v̂, mean of (û - v̂)², 1] → one vector, where m = (u + v) / 2

û and v̂ are u and v, normed. If there is a third mask before them, for the pair as a whole, m is its state. The map
begins at zero, so that without training it adds nothing. What is learned is what it says about the
label how far apart the two sides are (in inference and paraphrase, nearly all that a few pairs can teach), and which
way from one to the other. The distance says how large the product of the sides is as well, as they have one size. The
product and the difference of every single feature, read besides, were learned by heart rather than learned from.

The two sides may stand in one prompt, where the encoder sees both at once, or in a prompt each, where it reads them as
the sentences that it was pretrained on.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import layer_norm, linear

STEP = 2000.0
"""How far the map goes for what its weights are, relative to the root of a state's size. At the method's learning rate
a step then moves a vector by some four tenths of its length, whatever that size: it has few steps to learn in."""

DIRECTION = 0.3
"""How large the whole difference is beside the distance. It has hundreds of weights and can tell all pairs apart."""


class PairReadout(nn.Module):
    """Makes one vector of the states at two masks, or three.

    Args:
        dimension: The size of a state.
    """

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dimension, dimension + 2))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """States at the masks of the sides, behind that of the pair if it has one (n, 2 or 3, dim) → (n, 1, dim)."""
        *whole, first, second = states.unbind(dim=1)  # (n, dim)
        # Encoders differ in how large their states are. The sides are brought to one size before they are compared, not
        # after: how far apart they are is what a pair is about.
        size = len(self.weight)
        first, second = (layer_norm(side, (size,)) for side in (first, second))
        difference = first - second  # (n, dim)
        distance = difference.square().mean(dim=-1, keepdim=True)  # (n, 1)
        of_distance, of_constant = self.weight[:, size:].unbind(dim=1)  # (dim,)
        # All weights take steps of one size, so the direction must not grow with the number of its features. The
        # distance is as large as all of them: in one product with them, 8 bits would not hold both.
        learned = linear(difference * (DIRECTION / size), self.weight[:, :size]) + distance * of_distance + of_constant
        matched = whole[0] if whole else states.mean(dim=1)
        length = matched.norm(dim=-1, keepdim=True)
        vectors: torch.Tensor = (matched + STEP * size**-0.5 * length * learned)[:, None]
        return vectors
