"""Texts and label names that the encoder cannot read: users are warned."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from maskmatch import MaskMatcher
from maskmatch.prompts import FieldText, Prompt, PromptTokenizer
from toy_data import LABELS, TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from maskmatch.model.encoder import Encoder

FOREIGN = "어디에 내 돈이 있나요"
PROMPT = Prompt("{text} It is about {mask}.")


@given(st.lists(st.sampled_from(["money", "어디에"]), min_size=1, max_size=9))
def test_texts_of_which_at_least_half_is_unknown(encoder: Callable[[str], Encoder], words: list[str]) -> None:
    prompts = PromptTokenizer(encoder("bert").tokenizer, 64)(PROMPT, [{"text": FieldText(" ".join(words))}])
    unknown = words.count("어디에")
    assert prompts.is_unknown.tolist() == [unknown > 0 and 2 * unknown >= len(words)]


def test_a_byte_level_tokenizer_knows_every_character(encoder: Callable[[str], Encoder]) -> None:
    prompts = PromptTokenizer(encoder("roberta").tokenizer, 64)(PROMPT, [{"text": FieldText(FOREIGN)}])
    assert prompts.is_unknown.tolist() == [False]


def test_users_are_warned_of_texts(matcher: MaskMatcher, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "maskmatch"):
        matcher.predict([TEXTS[0], FOREIGN])
    assert "In 1 of 2 texts most words are unknown" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, "maskmatch"):
        matcher.predict(TEXTS)
    assert not caplog.records


def test_users_are_warned_of_label_names(tiny: Callable[[str], Path], caplog: pytest.LogCaptureFixture) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), [*LABELS, FOREIGN], verbose=False)
    with caplog.at_level(logging.WARNING, "maskmatch"):
        matcher.predict(TEXTS[:1])
    assert f"the label texts {FOREIGN!r} are unknown" in caplog.text
    assert LABELS[0] not in caplog.text
