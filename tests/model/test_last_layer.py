"""The shortcut of prediction: states at the mask alone, the same as those of the whole encoder."""

from __future__ import annotations

import copy
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from maskmatch import MaskMatcher
from maskmatch.model.encoder import Encoder, hidden_states, pad
from maskmatch.model.fast.last_layer import LastLayer
from maskmatch.testing.tiny_encoders import FAMILIES
from toy_data import LABELS, TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Tiny = Callable[..., Path]

WITHOUT = ("modernbert", "albert")  # a residual around the attention; one layer that is used over and over


@pytest.mark.parametrize("family", FAMILIES)
def test_states_are_the_same_or_there_is_no_shortcut(tiny: Tiny, family: str) -> None:
    encoder = Encoder.load(tiny(family), family)
    shortcut = LastLayer.of(encoder.model)
    assert (shortcut is None) == (family in WITHOUT)
    matcher = MaskMatcher.from_pretrained(tiny(family), LABELS, prompt="{mask} {text} {mask}")
    prompts = matcher.bank.tokenize(TEXTS)
    batch = pad(prompts, np.arange(len(TEXTS)), encoder.pad_id)
    with torch.no_grad():
        whole = hidden_states(encoder.model, batch)
        assert whole.shape[:2] == batch.input_ids.shape  # the shortcut changes nothing unless it is asked for
        expected = torch.stack([states[places] for states, places in zip(whole, batch.mask_positions, strict=True)])
        if shortcut is not None:
            torch.testing.assert_close(shortcut.states_at(batch, batch.mask_positions), expected)
    vectors = dict(zip(*map(np.concatenate, zip(*matcher.pipeline.vectors(prompts), strict=True)), strict=True))
    for row, states in enumerate(expected.numpy()):
        np.testing.assert_allclose(vectors[row], states, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "modernbert", "albert"])
@pytest.mark.parametrize("training", [False, True])
def test_looking_for_it_leaves_the_encoder_as_it_was(tiny: Tiny, family: str, training: bool) -> None:
    model = Encoder.load(tiny(family), family).model.train(training)
    LastLayer.of(model)
    assert all(module.training == training for module in model.modules())


def test_a_classifier_that_several_threads_use(tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    expected = [matcher.predict_proba([text]) for text in TEXTS]
    wrong: list[str] = []

    def use(start: int) -> None:
        for text, probabilities in list(zip(TEXTS, expected, strict=True))[start:]:
            if not np.allclose(matcher.predict_proba([text]), probabilities, atol=1e-5):
                wrong.append(text)

    threads = [threading.Thread(target=use, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_classifier_can_be_copied_after_it_was_used(tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    expected = matcher.predict_proba(TEXTS)
    other = copy.deepcopy(matcher)
    with torch.no_grad():
        matcher.model.encoder.embeddings.word_embeddings.weight.zero_()
    np.testing.assert_allclose(other.predict_proba(TEXTS), expected, atol=1e-6)


def test_a_saved_classifier_knows_nothing_of_it(tiny: Tiny, tmp_path: Path) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    names = set(matcher.model.state_dict())
    matcher.predict(TEXTS)
    assert set(matcher.model.state_dict()) == names
    matcher.save_pretrained(tmp_path / "m")
    np.testing.assert_allclose(
        MaskMatcher.from_pretrained(tmp_path / "m").predict_proba(TEXTS), matcher.predict_proba(TEXTS), atol=1e-6
    )
