"""Semantic matching by other read-outs: a method of one's own is a row with other cells."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

from maskmatch import METHODS, MaskMatcher
from toy_data import FAST, LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from pathlib import Path

    from maskmatch.config.methods import Readout


def by(readout: Readout) -> Any:
    return replace(METHODS["semantic-matching"], input_readout=readout, label_readout=readout)


def read(matcher: MaskMatcher, text: str, readout: str) -> torch.Tensor:
    """A text alone through the encoder, pooled by hand: (dim,)."""
    batch = matcher.encoder.tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        states = matcher.encoder.model(**batch).last_hidden_state[0]  # (length, dim)
    return {"mean": states.mean(0), "max": states.amax(0), "cls": states[0]}[readout]


@pytest.mark.parametrize("readout", ["mean", "max", "cls"])
def test_it_compares_text_and_bare_name_as_they_are_read(tiny: Any, readout: Any) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method=by(readout))
    labels = torch.stack([read(matcher, label, readout) for label in LABELS])  # (K, dim)
    for text, found in zip(TEXTS, matcher.predict_proba(TEXTS), strict=True):
        scores = cosine_similarity(read(matcher, text, readout)[None], labels) / 0.05
        np.testing.assert_allclose(found, scores.softmax(dim=0).numpy(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("readout", ["mean", "max", "cls"])
def test_it_is_trained_measured_and_saved(tiny: Any, tmp_path: Path, readout: Any) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), method=by(readout)).fit(TEXTS, TRUTH, **FAST)
    # An encoder of random numbers says little at its first token: that is hard to learn from twelve texts.
    assert matcher.evaluate(TEXTS, TRUTH).score >= (0.4 if readout == "cls" else 0.9)
    loaded = MaskMatcher.from_pretrained(matcher.save_pretrained(tmp_path / "model"))
    assert loaded.config.method == by(readout)
    np.testing.assert_allclose(loaded.predict_proba(TEXTS), matcher.predict_proba(TEXTS), atol=1e-6)
    loaded.add_labels(["parcel"])
    assert loaded.predict_proba(["the parcel"]).shape == (1, 4)
