"""Sequences in one long row: the same states and gradients as in padded batches."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch import MaskMatcher
from maskmatch.model.encoder import Encoder, TokenBatch, hidden_states
from maskmatch.model.fast.last_layer import LastLayer, at_places
from maskmatch.model.fast.packing import PackedGroup, PooledReader, can_pack
from maskmatch.testing.tiny_encoders import FAMILIES
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from transformers import PreTrainedModel

    Tiny = Callable[..., Path]

PACKED = ("bert", "roberta", "xlm-roberta")


def batch_of(lengths: list[int], first_row: int = 0) -> TokenBatch:
    """Sequences of some lengths, with a place to read in each."""
    inside = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    ids = torch.where(inside, torch.arange(inside.numel()).view(inside.shape) % 40 + 6, 1)
    places = torch.tensor([[length - 1, 0] for length in lengths])
    return TokenBatch(ids, inside.long(), places, torch.arange(first_row, first_row + len(lengths)))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_packing_and_unpacking_loses_only_padding(lengths: list[int], start: int) -> None:
    batch = batch_of(lengths)
    group = PackedGroup.of(batch, start)
    packed = group.pack(batch.input_ids)
    assert packed.tolist() == batch.input_ids[batch.attention_mask.bool()].tolist()
    row = torch.cat([torch.full((start,), -1), packed, torch.full((3,), -1)])
    assert group.stop - group.start == len(packed) == sum(lengths)
    unpacked = group.unpack(row)
    assert torch.equal(unpacked, batch.input_ids * batch.attention_mask)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shortcut", [False, True])
def test_states_and_gradients_are_those_of_padded_batches(tiny: Tiny, family: str, shortcut: bool) -> None:
    model = Encoder.load(tiny(family), family).model
    batches = [batch_of([3, 5, 5, 4]), batch_of([7, 7], 4), batch_of([12], 6)]
    places = [batch.mask_positions for batch in batches]
    reader = PooledReader(model, LastLayer.of(model) if shortcut else None)

    def gradients(states: list[torch.Tensor]) -> list[torch.Tensor]:
        model.zero_grad()
        torch.cat([each.flatten() for each in states]).square().sum().backward()  # type: ignore[no-untyped-call]
        return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]

    padded = [hidden_states(model, batch) for batch in batches]
    for found, expected, batch in zip(reader.states(batches), padded, batches, strict=True):
        inside = batch.attention_mask.bool()
        assert found.shape == expected.shape
        torch.testing.assert_close(found[inside], expected[inside], rtol=1e-4, atol=1e-5)
    expected = [at_places(states, some) for states, some in zip(padded, places, strict=True)]
    found = reader.states_at(batches, places)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(gradients(found), gradients(expected), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("training", [False, True])
def test_some_families_are_packed_and_trying_changes_nothing(tiny: Tiny, family: str, training: bool) -> None:
    model = Encoder.load(tiny(family), family).model.train(training)
    attention = model.config._attn_implementation
    assert can_pack(model) == (family in PACKED)
    assert all(module.training == training for module in model.modules())
    assert model.config._attn_implementation == attention


def test_an_encoder_that_does_not_agree_is_not_packed(tiny: Tiny) -> None:
    model = Encoder.load(tiny("bert"), "bert").model
    other = copy.deepcopy(model)

    def shifted(*args: torch.Tensor, **options: torch.Tensor) -> object:
        if "position_ids" in options:
            options["position_ids"] = options["position_ids"] + 1
        return model(*args, **options)

    other.forward = shifted
    assert can_pack(model)
    assert not can_pack(other)


def count_rows(model: PreTrainedModel) -> list[tuple[int, ...]]:
    """The shapes that the encoder's layers are given, from now on."""
    shapes: list[tuple[int, ...]] = []
    model.encoder.layer[0].register_forward_hook(lambda _, inputs, __: shapes.append(tuple(inputs[0].shape)))
    return shapes


def test_a_training_step_is_one_pass_without_padding(tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    shapes = count_rows(matcher.model.encoder)
    matcher.fit(TEXTS, TRUTH, epochs=1, batch_size=len(TEXTS))
    lengths = [len(ids) for ids in matcher.bank.tokenize(TEXTS).input_ids]
    labels = [len(ids) for ids in matcher.bank.reader.label_prompts(LABELS).input_ids]
    assert (1, sum(lengths) + sum(labels), matcher.model.encoder.config.hidden_size) in shapes


def test_with_gradient_checkpointing_batches_are_padded(tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    shapes = count_rows(matcher.model.encoder)
    matcher.model.encoder.gradient_checkpointing_enable()
    matcher.fit(TEXTS, TRUTH, epochs=1, batch_size=len(TEXTS))
    assert any(shape[0] > 2 for shape in shapes)
    assert np.isfinite(matcher.predict_proba(TEXTS)).all()
