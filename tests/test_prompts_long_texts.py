"""Very long texts: they are cut before they are tokenised, and nobody can tell by the result."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch.prompts import FieldText, Prompt, PromptTokenizer, TokenizedPrompts, tokens
from maskmatch.prompts.fields import mark_spans
from maskmatch.prompts.long_texts import without_far_end
from tiny_models import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from maskmatch.encoder import Encoder

TEMPLATES = ("{text} It is about {mask}.", "{text}ish {mask}{text_b}.", "1 {text} {text_b}{text} {mask}")
WORDS = ["refund", "café", "Übermäßig", "東京", "x" * 120, "a.b", "[MASK]", "<mask>", "\u0301", "\x00", "🙂"]
GAPS = [" ", "  ", "\n", " \n ", "\t", "\u00a0", "\u3000", "\r\n"]


def tokenized(tokenizer: Any, template: str, rows: list[dict[str, FieldText]], long_text: int) -> TokenizedPrompts:
    """Tokenises with texts cut beforehand if they are longer than so many characters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "LONG_TEXT", long_text)
        return PromptTokenizer(tokenizer, 24)(Prompt(template), rows)


def assert_same(tokenizer: Any, template: str, rows: list[dict[str, FieldText]]) -> None:
    whole, cut = (tokenized(tokenizer, template, rows, size) for size in (10**9, 0))
    assert [ids.tolist() for ids in cut.input_ids] == [ids.tolist() for ids in whole.input_ids]
    np.testing.assert_array_equal(cut.mask_positions, whole.mask_positions)
    np.testing.assert_array_equal(cut.cut, whole.cut)


@pytest.mark.parametrize("family", FAMILIES)
@given(
    st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GAPS)), min_size=1, max_size=12),
    st.integers(1, 400),
    st.sampled_from(TEMPLATES),
)
@settings(max_examples=40, deadline=None)
def test_the_result_is_the_same(
    family: str, encoder: Callable[[str], Encoder], pieces: list[tuple[str, str]], times: int, template: str
) -> None:
    text = "".join(word + gap for word, gap in pieces) * times
    rows = [{"text": FieldText(text), "text_b": FieldText(other)} for other in ("money", text + "end")]
    assert_same(encoder(family).tokenizer, template, rows)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("before", [0, 3, 5000])
def test_marked_spans_stay(family: str, encoder: Callable[[str], Encoder], before: int) -> None:
    text = "money " * before + "the clay was in a jar " + "and so on " * 3000
    start = 6 * before
    value = mark_spans(text, {"head": (start + 4, start + 8), "tail": (start + 18, start + 21)})
    assert_same(encoder(family).tokenizer, "{text} It is {mask}.", [{"text": value}])


def test_it_is_much_shorter_and_keeps_its_end() -> None:
    value = without_far_end(FieldText("one two three " * 100_000 + "last\n"), 50, lambda text: len(text.split()))
    assert len(value.text) < 1000
    assert value.text.startswith("one two three one")
    assert value.text.endswith(" last\n")


def test_a_text_of_few_tokens_is_looked_at_further_along() -> None:
    """A word that no vocabulary holds may be one token, however long it is."""
    text = "y" * 50_000 + " " + "one two " * 50_000
    value = without_far_end(FieldText(text), 50, lambda part: len(part.split()))
    assert 50_000 < len(value.text) < len(text)
    assert len(value.text.split()) > 50


@pytest.mark.parametrize("text", ["y" * 100_000, "one " * 100, "", " " * 50_000, "y" * 50_000 + " end"])
def test_where_there_is_no_safe_place_nothing_is_cut(text: str) -> None:
    value = FieldText(text)
    assert without_far_end(value, 50, lambda part: len(part.split())) is value


def test_megabytes_take_no_seconds(encoder: Callable[[str], Encoder]) -> None:
    tokenizer = PromptTokenizer(encoder("bert").tokenizer, 64)
    rows = [{"text": FieldText("Where is my refund? " * 100_000)}]
    started = time.process_time()
    found = tokenizer(Prompt("{text} It is about {mask}."), rows)
    assert time.process_time() - started < 0.5
    assert found.cut.tolist() == [True]
