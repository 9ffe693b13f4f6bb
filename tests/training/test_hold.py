"""Holding vectors where they were: training moves them less, and only where there is something to keep."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cosine_similarity

from maskmatch import METHODS, MaskMatcher, MaskMatchError
from maskmatch.config.methods import ANY_TEXT_METHODS
from maskmatch.training.data import current_vectors, training_data
from toy_data import LABELS, TEXTS, TRUTH

Tiny = Callable[..., Path]
SHORT = {"learning_rate": 1e-2, "batch_size": 6, "epochs": 10}


def vectors(matcher: MaskMatcher) -> torch.Tensor:
    """The vectors of all texts and labels as they are now."""
    return current_vectors(matcher.bank, matcher.bank.tokenize(TEXTS))


def moved(folder: Path, hold: float) -> float:
    """How far training moves the vectors."""
    matcher = MaskMatcher.from_pretrained(folder, LABELS)
    before = vectors(matcher)
    matcher.fit(TEXTS, TRUTH, **SHORT, hold=hold)
    return float((1 - cosine_similarity(before, vectors(matcher))).mean())


def test_the_more_is_held_the_less_moves(tiny: Tiny) -> None:
    free, held, fixed = (moved(tiny("bert"), hold) for hold in (0.0, 2.0, 200.0))
    assert fixed < held < free


def test_vectors_are_those_before_training_in_the_order_of_texts_and_labels(tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), {"refund": ["refund", "money back"], "card lost": "gone"})
    assert matcher.labels is not None
    data = training_data(matcher.bank, TEXTS[:6], TRUTH[:6], hold=1.0)
    assert data.held is not None
    phrases = [text for label in matcher.labels.labels for text in label.texts]
    assert len(data.held) == 6 + len(phrases)
    batch = data.batch([4, 1])
    anchors = batch["anchors"]
    assert torch.equal(anchors.vectors[:2], data.held[[4, 1]])
    assert torch.equal(anchors.vectors[2:], data.held[6:])
    # Before the first step nothing has moved, so that only the matching itself is left of the loss.
    model = matcher.model
    with torch.no_grad():
        held = model(**batch)["loss"]
        free = model(**{**batch, "anchors": None})["loss"]
    assert held == pytest.approx(float(free), abs=1e-5)


@pytest.mark.parametrize("method", ANY_TEXT_METHODS)
def test_only_what_the_encoder_reads_is_held(tiny: Tiny, method: str) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method=method)
    data = training_data(matcher.bank, TEXTS, TRUTH, hold=1.0)
    assert (data.held is not None) == (METHODS[method].label_source == "prompt")


def test_zero_holds_nothing_and_less_is_refused(tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    assert training_data(matcher.bank, TEXTS, TRUTH, hold=0.0).held is None
    with pytest.raises(MaskMatchError, match=r"^hold is -1; it must be a number of at least 0\."):
        matcher.fit(TEXTS, TRUTH, hold=-1)
