"""Anchors: how far vectors lie from where they should be."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from maskmatch.model.anchors import Anchors, anchor_loss


def vectors(rows: int, masks: int = 1, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, masks, 8, generator=torch.Generator().manual_seed(seed))


def anchors_of(own: torch.Tensor, rows: list[int], **options: float) -> Anchors:
    """Anchors just where these rows lie."""
    places = torch.tensor(rows)
    return Anchors(normalize(own.mean(dim=1)[places], dim=-1), places, **options)


def test_the_distance_is_that_of_the_cosine() -> None:
    own = vectors(3)
    there = anchors_of(own, [0, 1, 2])
    assert anchor_loss(own, there).item() == pytest.approx(0, abs=1e-6)
    assert anchor_loss(-own, there).item() == pytest.approx(2, abs=1e-6)
    right_angle = Anchors(torch.tensor([[1.0, 0.0]]), torch.tensor([0]))
    assert anchor_loss(torch.tensor([[[0.0, 3.0]]]), right_angle).item() == pytest.approx(1)


@given(st.floats(0.01, 100), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_the_length_of_a_vector_does_not_count(factor: float, seed: int) -> None:
    own, aims = vectors(4, seed=seed), anchors_of(vectors(4, seed=seed + 1), [0, 1, 2, 3], contrast=1.0)
    assert anchor_loss(factor * own, aims).item() == pytest.approx(anchor_loss(own, aims).item(), rel=1e-3)


def test_only_rows_with_an_anchor_count() -> None:
    own = vectors(4).requires_grad_()
    aims = anchors_of(vectors(4, seed=1), [3, 1], contrast=1.0)
    anchor_loss(own, aims).backward()
    assert own.grad is not None
    assert own.grad.flatten(1).any(dim=1).tolist() == [False, True, False, True]


def test_a_row_is_compared_with_its_own_anchor_whatever_their_order() -> None:
    own = vectors(4)
    assert anchor_loss(own, anchors_of(own, [2, 0, 3])).item() == pytest.approx(0, abs=1e-6)
    crossed = Anchors(anchors_of(own, [0, 2]).vectors, torch.tensor([2, 0]))
    assert anchor_loss(own, crossed).item() > 0.1


def test_several_masks_are_averaged() -> None:
    own = vectors(2, masks=3)
    assert anchor_loss(own, anchors_of(own, [0, 1])).item() == pytest.approx(0, abs=1e-6)
    assert anchor_loss(own.flip(1), anchors_of(own, [0, 1])).item() == pytest.approx(0, abs=1e-6)
    assert anchor_loss(own[:, :1], anchors_of(own, [0, 1])).item() > 0.01


def test_the_weights_of_distance_and_contrast() -> None:
    own, aims = vectors(3), vectors(3, seed=1)
    distance = anchor_loss(own, anchors_of(aims, [0, 1, 2])).item()
    contrast = anchor_loss(own, anchors_of(aims, [0, 1, 2], weight=0.0, contrast=1.0)).item()
    both = anchor_loss(own, anchors_of(aims, [0, 1, 2], weight=2.0, contrast=3.0)).item()
    assert both == pytest.approx(2 * distance + 3 * contrast, rel=1e-5)


def test_contrast_asks_which_anchor_is_nearest() -> None:
    own = vectors(3)
    its_own = anchors_of(own, [0, 1, 2], weight=0.0, contrast=1.0)
    anothers = Anchors(its_own.vectors[[1, 2, 0]], its_own.rows, weight=0.0, contrast=1.0)
    assert anchor_loss(own, its_own).item() < 0.01
    assert anchor_loss(own, anothers).item() > 1
    same = Anchors(its_own.vectors[[0, 0, 0]], its_own.rows, weight=0.0, contrast=1.0)
    assert anchor_loss(own, same).item() == pytest.approx(math.log(3))  # nothing can tell them apart


def test_anchors_go_where_the_model_is() -> None:
    aims = anchors_of(vectors(2), [0, 1], weight=0.5, contrast=0.25).to(torch.device("meta"))
    assert (aims.vectors.device.type, aims.rows.device.type) == ("meta", "meta")
    assert (aims.weight, aims.contrast) == (0.5, 0.25)
