"""Several masks in a prompt: how their states are compared, from the first guess to a saved and exported classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from maskmatch import ExportedMatcher, MaskMatcher, MaskMatchError, SimilarityConfig, export
from maskmatch.training.data import training_data
from toy_data import A_LITTLE, LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Tiny = Callable[..., Path]

THREE = {"prompt": "{text} It is about {mask*3}.", "label_prompt": "{label} is {mask}{mask} {mask}."}
UNEQUAL = {"prompt": "{text} It is about {mask} or {mask}.", "label_prompt": "{label} is {mask*3}."}


def states(matcher: MaskMatcher, text: str) -> torch.Tensor:
    """The states at the masks of a filled prompt, read alone: (masks, dim)."""
    tokenizer: Any = matcher.encoder.tokenizer
    batch = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        return matcher.encoder.model(**batch).last_hidden_state[0][batch["input_ids"][0] == tokenizer.mask_token_id]


@pytest.mark.parametrize("prompts", [THREE, UNEQUAL], ids=["equal", "unequal"])
def test_late_interaction_gives_each_mask_of_the_text_its_best_mask_of_the_label(tiny: Tiny, prompts: Any) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, masks="late", **prompts)
    assert matcher.config.similarity == SimilarityConfig(masks="late")
    filled = [template.replace("{mask*3}", "[MASK]" * 3).replace("{mask}", "[MASK]") for template in prompts.values()]
    labels = [normalize(states(matcher, filled[1].replace("{label}", label)), dim=-1) for label in LABELS]
    for text, found in zip(TEXTS[:3], matcher.predict_proba(TEXTS[:3]), strict=True):
        own = normalize(states(matcher, filled[0].replace("{text}", text)), dim=-1)
        scores = torch.stack([(own @ label.T).amax(dim=1).mean() for label in labels]) / 0.05
        np.testing.assert_allclose(found, scores.softmax(dim=0).numpy(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("masks", ["mean", "concat", "late"])
def test_training_and_prediction_compute_the_same(tiny: Tiny, masks: Any) -> None:
    labels = {"refund": ["money", "parcel"], "card lost": None, "exchange rate": None}
    matcher = MaskMatcher.from_pretrained(tiny("bert"), labels, masks=masks, **THREE)
    expected = matcher.pipeline.scores(matcher.bank.tokenize(TEXTS[:5]))
    for encoding in ("full", "sampled"):
        data = training_data(matcher.bank, TEXTS, TRUTH, label_encoding=encoding)
        with torch.no_grad():
            found = matcher.model(**data.batch(range(5)))["scores"]
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("masks", ["concat", "late"])
def test_it_is_trained_saved_and_exported(tiny: Tiny, tmp_path: Path, masks: Any) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, masks=masks, **THREE)
    before = matcher.predict_proba(TEXTS)
    matcher.fit(TEXTS, TRUTH, hold=0.1, **A_LITTLE)
    after = matcher.predict_proba(TEXTS)
    assert np.abs(after - before).max() > 1e-3
    loaded = MaskMatcher.from_pretrained(matcher.save_pretrained(tmp_path / "model"))
    assert loaded.config == matcher.config
    np.testing.assert_allclose(loaded.predict_proba(TEXTS), after, atol=1e-6)
    assert [best for ((best, _),) in loaded.top_k(TEXTS, 1)] == matcher.predict(TEXTS)
    assert export(matcher, tmp_path / "export").is_close
    np.testing.assert_allclose(
        ExportedMatcher.from_pretrained(tmp_path / "export").predict_proba(TEXTS), after, atol=2e-5
    )


def test_numbers_of_masks_that_may_differ_for_the_sake_of_anchors(tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, **UNEQUAL)
    assert matcher.fit(TEXTS, TRUTH, hold=1.0, **A_LITTLE).training_ is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({**UNEQUAL, "masks": "concat"}, "here the input prompt has 2 and the label prompt 3."),
        ({**THREE, "masks": "concat", "method": "soft-prompt"}, "here the input prompt has 3 and the label prompt 1."),
        ({**THREE, "masks": "late", "search": "approximate"}, "has one per mask; choose exact search."),
        ({"masks": "sum"}, "masks is 'sum'; choose one of mean, concat, late."),
    ],
)
def test_what_does_not_go_together_is_refused(tiny: Tiny, options: Any, message: str) -> None:
    with pytest.raises(MaskMatchError) as caught:
        MaskMatcher.from_pretrained(tiny("bert"), LABELS, **options)
    assert message in str(caught.value)
