"""Read-outs: from hidden states to vectors. Methods differ in where they read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn.functional import layer_norm, linear
from torch.nn.utils import parametrize

from maskmatch.files import Lock
from maskmatch.model.encoder import hidden_states
from maskmatch.model.fast.last_layer import LastLayer
from maskmatch.model.fast.packing import PooledReader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from transformers import PreTrainedModel

    from maskmatch.config.methods import Readout
    from maskmatch.model.encoder import TokenBatch

PAIR_STEP = 2000.0
"""The scale of the pair read-out's map, relative to the square root of the dimension. At the method's learning rate a
step moves a vector by about four tenths of its norm, whatever the dimension: there are few steps to learn in."""

PAIR_DIRECTION = 0.3
"""The scale of the difference beside the distance. It has hundreds of weights and could tell all pairs apart."""


@dataclass(frozen=True)
class ReadoutRow:
    """A row of the table of read-outs.

    Attributes:
        read: Reads vectors: states (n, length, dim), attention mask (n, length), mask positions (n, masks)
            → (n, masks, dim); one "mask" if the read-out needs none.
        positions: The positions that are read, (n, positions), if the read-out does not need all tokens.
    """

    read: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
    positions: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None


def _at_masks(states: torch.Tensor, _: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    return states.gather(1, masks[..., None].expand(-1, -1, states.shape[-1]))  # (n, masks, dim)


def _mean(states: torch.Tensor, attention_mask: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    inside = attention_mask[..., None].bool()  # (n, length, 1)
    return states.masked_fill(~inside, 0.0).sum(dim=1, keepdim=True) / inside.sum(dim=1, keepdim=True)


def _max(states: torch.Tensor, attention_mask: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    inside = attention_mask[..., None].bool()  # (n, length, 1)
    return states.masked_fill(~inside, float("-inf")).amax(dim=1, keepdim=True)  # (n, 1, dim)


def _mask_mean(states: torch.Tensor, attention_mask: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """The states at the masks plus the mean over all tokens, scaled to the same norm."""
    at_masks, mean = _at_masks(states, attention_mask, masks), _mean(states, attention_mask, masks)
    ratio: torch.Tensor = at_masks.norm(dim=-1, keepdim=True) / mean.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    return torch.lerp(at_masks, mean * ratio, 0.5)


READOUTS: dict[Readout, ReadoutRow] = {
    "mask": ReadoutRow(_at_masks, lambda attention_mask, masks: masks),
    "cls": ReadoutRow(lambda states, _, __: states[:, :1], lambda attention_mask, _: attention_mask[:, :1] * 0),
    # Over all tokens, special ones included, as sentence encoders are trained.
    "mean": ReadoutRow(_mean),
    "max": ReadoutRow(_max),
    "mask-mean": ReadoutRow(_mask_mean),
}


def positions_of(kind: Readout, attention_mask: torch.Tensor, masks: torch.Tensor) -> torch.Tensor | None:
    """The positions that a read-out reads, (n, positions); None if it reads all tokens."""
    row = READOUTS[kind]
    return None if row.positions is None else row.positions(attention_mask, masks)


def read_out(kind: Readout, states: torch.Tensor, attention_mask: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Read vectors from hidden states.

    Args:
        kind: A row of READOUTS.
        states: (n, length, dim)
        attention_mask: (n, length), 0 where padded
        masks: (n, masks), the mask positions

    Returns:
        (n, masks, dim); one "mask" for read-outs that need none.
    """
    return READOUTS[kind].read(states, attention_mask, masks)


class PairReadout(nn.Module):
    """One vector from the states at two masks, one for each side of a pair, with their difference and distance.

        u, v → m + |m| * map([û - v̂, mean of (û - v̂)², 1]), where m = (u + v) / 2

    û and v̂ are u and v, normalised. With a third mask in front, for the pair as a whole, m is its state. The learned
    map starts at zero, so untrained it adds nothing. It learns what the distance and the direction between the sides
    say about the label: in inference and paraphrase that is nearly all that a few pairs can teach. Products and
    differences of single features over-fitted.

    The two sides may be in one prompt, where the encoder sees both, or in one prompt each, where it reads them as the
    single sentences of its pretraining.

    Args:
        dimension: The size of a state.
    """

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dimension, dimension + 2))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """The states at the masks of the sides, after that of the pair if any: (n, 2 or 3, dim) → (n, 1, dim)."""
        *whole, first, second = states.unbind(dim=1)  # (n, dim)
        # Encoders differ in the norm of their states. The sides are normalised before they are compared, not after: the
        # distance between them must survive.
        size = len(self.weight)
        first, second = (layer_norm(side, (size,)) for side in (first, second))
        difference = first - second  # (n, dim)
        distance = difference.square().mean(dim=-1, keepdim=True)  # (n, 1)
        of_distance, of_constant = self.weight[:, size:].unbind(dim=1)  # (dim,)
        # All weights take steps of one size, so the direction must not grow with the number of features. The distance
        # is as large as all of them together: in one product with them, 8 bits could not represent both.
        learned = (
            linear(difference * (PAIR_DIRECTION / size), self.weight[:, :size]) + distance * of_distance + of_constant
        )
        matched = whole[0] if whole else states.mean(dim=1)
        length = matched.norm(dim=-1, keepdim=True)
        vectors: torch.Tensor = (matched + PAIR_STEP * size**-0.5 * length * learned)[:, None]
        return vectors


SHORTCUTS = "_maskmatch_shortcuts"
"""Where an encoder caches its shortcuts: finding them changes the encoder for a moment, so it happens once."""

_preparing = Lock()


class StateReader:
    """Reads states of an encoder.

    Args:
        encoder: The encoder.
    """

    def __init__(self, encoder: PreTrainedModel) -> None:
        self._encoder = encoder
        self._last_layer: LastLayer | None = None
        self._pooled: PooledReader | None = None

    def prepare(self) -> None:
        """Find the shortcuts of the encoder, before anything is read: no thread may read while they are tried out."""
        if self._pooled is not None:
            return
        with _preparing:
            known = vars(self._encoder)
            if SHORTCUTS not in known:
                last_layer = LastLayer.of(self._encoder)
                known[SHORTCUTS] = last_layer, PooledReader(self._encoder, last_layer)
            self._last_layer, self._pooled = known[SHORTCUTS]

    def read(self, kind: Readout, batch: TokenBatch) -> torch.Tensor:
        """The states of a batch that a read-out reads: (rows, masks, dim)."""
        self.prepare()
        positions = positions_of(kind, batch.attention_mask, batch.mask_positions)
        if self._last_layer is not None and positions is not None:
            return self._last_layer.states_at(batch, positions)
        return read_out(kind, hidden_states(self._encoder, batch), batch.attention_mask, batch.mask_positions)

    def read_together(self, readings: Sequence[tuple[Readout, Sequence[TokenBatch]]]) -> list[torch.Tensor]:
        """The states that are read of each batch, for each kind of read-out: (rows, masks, dim)."""
        batches = [batch for _, some in readings for batch in some]
        kinds = [kind for kind, some in readings for _ in some]
        positions = [
            positions_of(kind, batch.attention_mask, batch.mask_positions)
            for kind, batch in zip(kinds, batches, strict=True)
        ]
        known = [each for each in positions if each is not None]
        self.prepare()
        assert self._pooled is not None
        with parametrize.cached():  # where an adapter is learned, its product is computed once for all batches
            if len(known) == len(positions):
                return self._pooled.states_at(batches, known)
            states = self._pooled.states(batches)  # each (rows, length, dim)
        return [
            read_out(kind, each, batch.attention_mask, batch.mask_positions)
            for kind, each, batch in zip(kinds, states, batches, strict=True)
        ]
