"""Read-outs against cases worked by hand, and against padding."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from maskmatch.config.methods import Readout
from maskmatch.model.encoder import Encoder, hidden_states, pad
from maskmatch.model.readout import read_out
from maskmatch.prompts import FieldText, Prompt, PromptTokenizer
from maskmatch.testing.tiny_encoders import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Callable

STATES = torch.tensor(
    [
        [[1.0, -2.0], [3.0, -4.0], [5.0, -9.0], [99.0, 99.0]],
        [[2.0, -1.0], [4.0, -3.0], [0.0, -5.0], [6.0, -7.0]],
    ]
)
ATTENTION = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]])
MASKS = torch.tensor([[1, 2], [3, 0]])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("mask", [[[3.0, -4.0], [5.0, -9.0]], [[6.0, -7.0], [2.0, -1.0]]]),
        ("cls", [[[1.0, -2.0]], [[2.0, -1.0]]]),
        ("mean", [[[3.0, -5.0]], [[3.0, -4.0]]]),
        ("max", [[[5.0, -2.0]], [[6.0, -1.0]]]),
    ],
)
def test_each_read_out_against_a_case_worked_by_hand(kind: Readout, expected: list[list[list[float]]]) -> None:
    assert read_out(kind, STATES, ATTENTION, MASKS).tolist() == expected


def test_mask_and_mean_in_equal_parts() -> None:
    masks, mean = (read_out(kind, STATES, ATTENTION, MASKS) for kind in ("mask", "mean"))  # type: ignore[arg-type]
    expected = (normalize(masks, dim=-1) + normalize(mean, dim=-1)) / 2 * masks.norm(dim=-1, keepdim=True)
    torch.testing.assert_close(read_out("mask-mean", STATES, ATTENTION, MASKS), expected)


@pytest.mark.parametrize("kind", ["cls", "mean", "max"])
def test_read_outs_that_need_no_mask_take_prompts_without_one(kind: Readout) -> None:
    without = torch.zeros(2, 0, dtype=torch.long)
    assert torch.equal(read_out(kind, STATES, ATTENTION, without), read_out(kind, STATES, ATTENTION, MASKS))


def test_a_padded_state_that_is_no_number_does_no_harm() -> None:
    states = STATES.clone()
    states[0, 3] = float("nan")
    for kind in get_args(Readout):
        assert torch.equal(read_out(kind, states, ATTENTION, MASKS), read_out(kind, STATES, ATTENTION, MASKS))


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_never_leaks(encoder: Callable[[str], Encoder], family: str) -> None:
    found = encoder(family)
    texts = ["refund", "Where is my card? " * 3, "", "It is about the exchange rate; this is money. " * 2]
    rows = [{"text": FieldText(text)} for text in texts]
    prompts = PromptTokenizer(found.tokenizer, found.limit)(Prompt("{text} It is {mask} or {mask}."), rows)
    assert len(set(prompts.lengths.tolist())) > 2
    pad_id = int(found.tokenizer.pad_token_id)  # type: ignore[arg-type]

    def vectors(kind: Readout, numbers: list[int]) -> torch.Tensor:
        batch = pad(prompts, np.array(numbers), pad_id)
        with torch.inference_mode():
            states = hidden_states(found.model, batch)
        return read_out(kind, states, batch.attention_mask, batch.mask_positions)

    for kind in get_args(Readout):
        together = vectors(kind, [0, 1, 2, 3])
        alone = torch.cat([vectors(kind, [number]) for number in range(4)])
        assert together.shape == (4, 2 if kind.startswith("mask") else 1, 16)
        assert (together - alone).abs().max() < 1e-5
        assert (together[0] - together[3]).abs().max() > 1e-3, "different texts, different vectors"
