"""Packing: encode the texts and labels of a training step at once, without padding.

Outside its attention an encoder treats every token by itself, so the tokens of all sequences can be packed into one
long row: one large matrix product per layer instead of one per batch, and none of it for padding. Only the attention
separates the sequences again, into the batches of similar length that they came in.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from maskmatch.model.encoder import TokenBatch, first_position, hidden_states_of_all, not_training
from maskmatch.model.fast.last_layer import CLOSE, at_places

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from transformers import PreTrainedModel

    from maskmatch.model.fast.last_layer import LastLayer

ATTENTION = "maskmatch_packed"
"""The name under which the attention of packed sequences is registered with transformers."""

FAMILIES = ("bert", "camembert", "electra", "roberta", "xlm-roberta")
"""Encoders with full attention within a sequence, and with absolute position ids."""


@dataclass(frozen=True)
class PackedGroup:
    """The tokens of one batch in the packed row, and their positions in the batch.

    Attributes:
        start: The position of its first token in the packed row.
        stop: The position after its last token.
        rows: The number of sequences.
        length: The length of the longest sequence.
        inside: (rows, length), False where padded; None without padding.
        places: (tokens,), each token's position in the flattened batch; None without padding.
    """

    start: int
    stop: int
    rows: int
    length: int
    inside: torch.Tensor | None
    places: torch.Tensor | None

    @classmethod
    def of(cls, batch: TokenBatch, start: int) -> PackedGroup:
        """The group of a batch that starts at a position of the packed row."""
        rows, length = batch.input_ids.shape
        inside = batch.attention_mask.bool()
        tokens = int(inside.sum())
        if tokens == inside.numel():
            return cls(start, start + tokens, rows, length, None, None)
        return cls(start, start + tokens, rows, length, inside, inside.flatten().nonzero().squeeze(1))

    def unpack(self, row: torch.Tensor) -> torch.Tensor:
        """Its part of the packed row as a padded batch: (T, …) → (rows, length, …)."""
        part = row[self.start : self.stop]
        if self.places is not None:
            part = part.new_zeros(self.rows * self.length, *part.shape[1:]).index_copy(0, self.places, part)
        return part.view(self.rows, self.length, *part.shape[1:])

    def pack(self, batch: torch.Tensor) -> torch.Tensor:
        """A padded batch as its part of the packed row: (rows, length, …) → (tokens, …)."""
        flat = batch.flatten(0, 1)
        return flat if self.places is None else flat.index_select(0, self.places)


class PooledReader:
    """Computes the states of several batches at once, all of them or only those at some positions.

    Args:
        encoder: The encoder.
        last_layer: Its shortcut after the last attention, if it has one.
    """

    def __init__(self, encoder: PreTrainedModel, last_layer: LastLayer | None) -> None:
        self._encoder = encoder
        self._last_layer = last_layer
        self._packs = can_pack(encoder)

    def states(self, batches: Sequence[TokenBatch]) -> list[torch.Tensor]:
        """The last layer's states of each batch: (rows, length, dim)."""
        if not self._is_packing:
            return hidden_states_of_all(self._encoder, batches)
        groups = _groups(batches)
        states = packed_states(self._encoder, batches, groups)  # (T, dim)
        return [group.unpack(states) for group in groups]

    def states_at(self, batches: Sequence[TokenBatch], places: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The states at some positions of each row of each batch: (rows, positions) → (rows, positions, dim)."""
        if not self._is_packing or self._last_layer is None:
            return [at_places(states, wanted) for states, wanted in zip(self.states(batches), places, strict=True)]
        groups = _groups(batches)
        wanted = torch.cat([_in_row(*each).flatten() for each in zip(batches, groups, places, strict=True)])  # (N,)
        with self._last_layer.only_at(wanted[None]):
            states = packed_states(self._encoder, batches, groups)  # (N, dim)
        parts = torch.split(states, [each.numel() for each in places])
        return [part.view(*each.shape, -1) for part, each in zip(parts, places, strict=True)]

    @property
    def _is_packing(self) -> bool:
        # Gradient checkpointing would recompute states with another attention.
        return self._packs and not self._encoder.is_gradient_checkpointing


def packed_states(
    encoder: PreTrainedModel, batches: Sequence[TokenBatch], groups: Sequence[PackedGroup]
) -> torch.Tensor:
    """The last layer's states of all tokens except padding, batch by batch: (T, dim)."""
    ids = torch.cat([group.pack(batch.input_ids) for batch, group in zip(batches, groups, strict=True)])  # (T,)
    places = [torch.arange(group.length, device=ids.device).expand(group.rows, -1) for group in groups]
    positions = torch.cat([group.pack(place) for group, place in zip(groups, places, strict=True)])  # (T,)
    with _packed_attention(encoder):
        output = encoder(
            input_ids=ids[None], position_ids=positions[None] + first_position(encoder), packed_groups=groups
        )
    states: torch.Tensor = output.last_hidden_state[0]
    return states


def can_pack(encoder: PreTrainedModel) -> bool:
    """Whether an encoder gives the same states for packed sequences. It is tried out."""
    config = encoder.config
    if config.model_type not in FAMILIES or getattr(config, "is_decoder", False):
        return False
    try:
        with not_training(encoder):
            return _agrees(encoder)
    except (RuntimeError, IndexError, TypeError, KeyError):  # an encoder with another form than its family's
        return False


@torch.no_grad()
def _agrees(encoder: PreTrainedModel) -> bool:
    """Whether packed and padded states are the same, on some tokens with and without padding."""
    device = next(encoder.parameters()).device
    ids = torch.arange(5, 29, device=device) % int(encoder.config.vocab_size)
    padding = torch.tensor([[1] * 6, [1] * 4 + [0] * 2], device=device)
    batches = [
        TokenBatch(some.view(2, 6), inside, some.view(2, 6)[:, :1], some[:2])
        for some, inside in ((ids[:12], padding), (ids[12:], torch.ones_like(padding)))
    ]
    groups = _groups(batches)
    found = packed_states(encoder, batches, groups)
    expected = [
        group.pack(states) for group, states in zip(groups, hidden_states_of_all(encoder, batches), strict=True)
    ]
    whole = torch.cat(expected)
    return bool((found - whole).abs().max() <= CLOSE * whole.abs().max())


def _groups(batches: Sequence[TokenBatch]) -> list[PackedGroup]:
    groups: list[PackedGroup] = []
    for batch in batches:
        groups.append(PackedGroup.of(batch, groups[-1].stop if groups else 0))
    return groups


def _in_row(batch: TokenBatch, group: PackedGroup, places: torch.Tensor) -> torch.Tensor:
    """Positions in a batch's sequences as positions in the packed row: (rows, positions)."""
    lengths = batch.attention_mask.sum(dim=1)
    return places + (group.start + lengths.cumsum(0) - lengths)[:, None]


@contextmanager
def _packed_attention(encoder: PreTrainedModel) -> Iterator[None]:
    config: Any = encoder.config
    usual = config._attn_implementation
    config._attn_implementation = ATTENTION
    try:
        yield
    finally:
        config._attn_implementation = usual


def _attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    packed_groups: Sequence[PackedGroup],
    dropout: float = 0.0,
    scaling: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """The attention of each sequence to itself: (1, heads, T, size) → (1, T, heads, size)."""
    row = torch.stack([query[0], key[0], value[0]]).transpose(0, 2)  # (T, heads, 3, size)
    found = []
    for group in packed_groups:
        queries, keys, values = group.unpack(row).permute(3, 0, 2, 1, 4)  # each (rows, heads, length, size)
        mask = None if group.inside is None else group.inside[:, None, None, :]
        attended = scaled_dot_product_attention(queries, keys, values, attn_mask=mask, dropout_p=dropout, scale=scaling)
        found.append(group.pack(attended.transpose(1, 2)))  # (tokens, heads, size)
    return torch.cat(found)[None], None


AttentionInterface.register(ATTENTION, _attend)
