"""Read-outs: from hidden states to vectors. What is read where is the whole difference between methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch

Readout = Literal["mask", "cls", "mean", "max"]
InputReadout = Literal["mask", "cls", "mean", "max", "pair"]
"""Texts can also be read at two masks, one for each side of a pair, which ``pair_readout.py`` makes one vector of."""


def places_of(kind: Readout, attention_mask: torch.Tensor, masks: torch.Tensor) -> torch.Tensor | None:
    """The places that are read, (n, places): those of the masks (n, masks), or the first; None if all tokens are."""
    if kind == "mask":
        return masks
    return attention_mask[:, :1] * 0 if kind == "cls" else None


def read_out(kind: Readout, states: torch.Tensor, attention_mask: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Read vectors off hidden states.

    Args:
        kind: ``"mask"``: the state at each mask; ``"cls"``: at the first token; ``"mean"`` and ``"max"``:
            over all tokens, special ones included, as sentence encoders are trained.
        states: (n, length, dim)
        attention_mask: (n, length), 0 where padded
        masks: (n, masks), the places of the masks

    Returns:
        (n, masks, dim); one "mask" for the read-outs that need none.
    """
    if kind == "mask":
        return states.gather(1, masks[..., None].expand(-1, -1, states.shape[-1]))  # (n, masks, dim)
    if kind == "cls":
        return states[:, :1]  # (n, 1, dim)
    inside = attention_mask[..., None].bool()  # (n, length, 1)
    if kind == "mean":
        total = states.masked_fill(~inside, 0.0).sum(dim=1, keepdim=True)  # (n, 1, dim)
        return total / inside.sum(dim=1, keepdim=True)
    return states.masked_fill(~inside, float("-inf")).amax(dim=1, keepdim=True)  # (n, 1, dim)
