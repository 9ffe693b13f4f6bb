"""Very long texts: they are shortened before they are tokenised, with the same result."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch.prompts import FieldText, Prompt, PromptTokenizer, TokenizedPrompts
from maskmatch.prompts import tokenizer as tokenizer_module
from maskmatch.prompts.fields import mark_spans
from maskmatch.prompts.truncation import shorten_long_text
from maskmatch.testing.tiny_encoders import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from maskmatch.model.encoder import Encoder

TEMPLATES = ("{text} It is about {mask}.", "{text}ish {mask}{text_b}.", "1 {text} {text_b}{text} {mask}")
WORDS = ["refund", "café", "Übermäßig", "東京", "x" * 120, "a.b", "[MASK]", "<mask>", "\u0301", "\x00", "🙂"]
GAPS = [" ", "  ", "\n", " \n ", "\t", "\u00a0", "\u3000", "\r\n"]


def tokenized(tokenizer: Any, template: str, rows: list[dict[str, FieldText]], long_text: int) -> TokenizedPrompts:
    """Tokenise; shorten texts of more than ``long_text`` characters beforehand."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenizer_module, "LONG_TEXT", long_text)
        return PromptTokenizer(tokenizer, 24)(Prompt(template), rows)


def assert_same(tokenizer: Any, template: str, rows: list[dict[str, FieldText]]) -> None:
    whole, shortened = (tokenized(tokenizer, template, rows, size) for size in (10**9, 0))
    assert [ids.tolist() for ids in shortened.input_ids] == [ids.tolist() for ids in whole.input_ids]
    np.testing.assert_array_equal(shortened.mask_positions, whole.mask_positions)
    np.testing.assert_array_equal(shortened.cut, whole.cut)


@pytest.mark.parametrize("family", FAMILIES)
@given(
    st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GAPS)), min_size=1, max_size=12),
    st.integers(1, 80),
    st.sampled_from(TEMPLATES),
)
@settings(max_examples=25, deadline=None)
def test_same_result_as_without_shortening(
    family: str, encoder: Callable[[str], Encoder], pieces: list[tuple[str, str]], times: int, template: str
) -> None:
    text = "".join(word + gap for word, gap in pieces) * times
    rows = [{"text": FieldText(text), "text_b": FieldText(other)} for other in ("money", text + "end")]
    assert_same(encoder(family).tokenizer, template, rows)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("before", [0, 3, 5000])
def test_marked_spans_are_kept(family: str, encoder: Callable[[str], Encoder], before: int) -> None:
    text = "money " * before + "the clay was in a jar " + "and so on " * 3000
    start = 6 * before
    value = mark_spans(text, {"head": (start + 4, start + 8), "tail": (start + 18, start + 21)})
    assert_same(encoder(family).tokenizer, "{text} It is {mask}.", [{"text": value}])


def test_shortened_text_keeps_its_last_word() -> None:
    value = shorten_long_text(FieldText("one two three " * 100_000 + "last\n"), 50, lambda text: len(text.split()))
    assert len(value.text) < 1000
    assert value.text.startswith("one two three one")
    assert value.text.endswith(" last\n")


def test_text_with_many_characters_per_token_keeps_more() -> None:
    """A word that is not in the vocabulary may be a single token of any length."""
    text = "y" * 50_000 + " " + "one two " * 50_000
    value = shorten_long_text(FieldText(text), 50, lambda part: len(part.split()))
    assert 50_000 < len(value.text) < len(text)
    assert len(value.text.split()) > 50


@pytest.mark.parametrize("text", ["y" * 100_000, "one " * 100, "", " " * 50_000, "y" * 50_000 + " end"])
def test_text_without_a_safe_position_is_unchanged(text: str) -> None:
    value = FieldText(text)
    assert shorten_long_text(value, 50, lambda part: len(part.split())) is value


def test_megabytes_are_tokenised_quickly(encoder: Callable[[str], Encoder]) -> None:
    tokenizer = PromptTokenizer(encoder("bert").tokenizer, 64)
    rows = [{"text": FieldText("Where is my refund? " * 100_000)}]
    started = time.process_time()
    prompts = tokenizer(Prompt("{text} It is about {mask}."), rows)
    assert time.process_time() - started < 0.5
    assert prompts.cut.tolist() == [True]
