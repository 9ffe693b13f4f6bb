"""A shortcut: after the last attention, states are computed only at the positions that are read.

After its last attention an encoder treats every token by itself, and most of a layer's work is there. So the state at
the mask stays the same if all other tokens are left out from there on.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from maskmatch.model.encoder import TokenBatch, hidden_states, not_training

if TYPE_CHECKING:
    from collections.abc import Iterator

    from transformers import PreTrainedModel

CLOSE = 1e-4
"""The largest difference between two ways of computing the same states, relative to the largest state."""


class LastLayer:
    """Computes hidden states at some positions only. Make it with :meth:`of`, which verifies that they are the same.

    Args:
        encoder: The encoder.
        attention: The attention of its last layer, with the residual connection and norm.
    """

    def __init__(self, encoder: PreTrainedModel, attention: nn.Module) -> None:
        self._encoder = encoder
        self._wanted = threading.local()  # a classifier may be used by several threads
        self._hook = attention.register_forward_hook(self._select)

    @classmethod
    def of(cls, encoder: PreTrainedModel) -> LastLayer | None:
        """The shortcut of an encoder; None if its layers have another form."""
        attention = _last_attention(encoder)
        if attention is None:
            return None
        shortcut = cls(encoder, attention)
        try:
            with not_training(encoder):
                agrees = shortcut._agrees()
        except (RuntimeError, IndexError, TypeError):  # shapes that do not fit, or a device that computes nothing
            agrees = False
        if agrees:
            return shortcut
        shortcut._hook.remove()
        return None

    def __getstate__(self) -> dict[str, Any]:
        """The state of a copy, without the positions that a thread asked for just now."""
        return {name: value for name, value in self.__dict__.items() if name != "_wanted"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _wanted=threading.local())

    def states_at(self, batch: TokenBatch, places: torch.Tensor) -> torch.Tensor:
        """The last layer's states at some positions of each row: (rows, positions) → (rows, positions, dim)."""
        with self.only_at(places):
            return hidden_states(self._encoder, batch)

    @contextmanager
    def only_at(self, places: torch.Tensor) -> Iterator[None]:
        """Within it, the encoder returns states at some positions of each row only."""
        self._wanted.places = places
        try:
            yield
        finally:
            self._wanted.places = None

    def _select(self, _: nn.Module, __: tuple[Any, ...], output: Any) -> Any:
        places = getattr(self._wanted, "places", None)
        if places is None:
            return None  # leaves the output as it is
        states, *rest = output if isinstance(output, tuple) else (output,)
        chosen = at_places(states, places)
        return (chosen, *rest) if isinstance(output, tuple) else chosen

    @torch.no_grad()
    def _agrees(self) -> bool:
        """Whether the shortcut gives the states of the whole encoder, on some tokens with padding."""
        device = next(self._encoder.parameters()).device
        ids = torch.arange(12, device=device).view(2, 6) % int(self._encoder.config.vocab_size)
        inside = torch.tensor([[1] * 6, [1] * 4 + [0] * 2], device=device)
        places = torch.tensor([[5, 0], [1, 3]], device=device)
        batch = TokenBatch(ids, inside, places, places[:, 0])
        whole = hidden_states(self._encoder, batch)  # (2, 6, dim)
        expected = at_places(whole, places)
        found = self.states_at(batch, places)
        return found.shape == expected.shape and bool((found - expected).abs().max() <= CLOSE * expected.abs().max())


def at_places(states: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """The states at some positions of each row: (rows, length, dim), (rows, positions) → (rows, positions, dim)."""
    return states.gather(1, places[..., None].expand(-1, -1, states.shape[-1]))


def _last_attention(encoder: PreTrainedModel) -> nn.Module | None:
    """The attention of the encoder's last layer; None if the encoder has another form."""
    count = getattr(encoder.config, "num_hidden_layers", None)
    for module in encoder.modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            attention = getattr(module[-1], "attention", None)
            return attention if isinstance(attention, nn.Module) else None
    return None
