"""Windows of long texts: nothing is lost, every window fits, and texts that fit are read as before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch.prompts import FieldText, Prompt, PromptTokenizer
from maskmatch.prompts.fields import mark_spans
from maskmatch.prompts.windows import MOST_WINDOWS, all_windows, mean_of_windows, split_row
from maskmatch.testing.tiny_encoders import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from maskmatch.model.encoder import Encoder

    Encoders = Callable[[str], Encoder]

PROMPT = Prompt("{text} It is about {mask}.")
WORDS = ["refund", "café", "東京", "a.b", "[MASK]", "x" * 30, "🙂", "money"]
LENGTH = 24


def pieces_of(tokenizer: PromptTokenizer, text: str) -> list[str]:
    row = {"text": FieldText(text)}
    windows, _ = split_row(row, lambda fields: tokenizer.room([PROMPT], fields), tokenizer.offsets, LENGTH)
    return [window["text"].text for window in windows]


@pytest.mark.parametrize("family", FAMILIES)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=200), st.sampled_from([" ", "\n", "  \n "]))
@settings(max_examples=25, deadline=None)
def test_nothing_is_lost_and_every_window_fits(family: str, encoder: Encoders, words: list[str], gap: str) -> None:
    tokenizer, text = PromptTokenizer(encoder(family).tokenizer, LENGTH), gap.join(words)
    prompts = tokenizer.windowed([PROMPT], [{"text": FieldText(text)}])
    windows, owners = all_windows(prompts)
    assert set(owners.tolist()) == {0}
    assert all(len(ids) <= LENGTH for ids in windows.input_ids)
    whole = tokenizer.pooled([PROMPT], [{"text": FieldText(text)}])
    if not whole.cut.any():
        assert prompts.windows is None
        assert prompts.input_ids[0].tolist() == whole.input_ids[0].tolist()
        return
    assert not prompts.cut.any()
    assert "".join("".join(pieces_of(tokenizer, text)).split()) == "".join(text.split())


@pytest.mark.parametrize("family", FAMILIES)
def test_windows_end_between_words_and_have_about_the_same_length(family: str, encoder: Encoders) -> None:
    tokenizer = PromptTokenizer(encoder(family).tokenizer, LENGTH)
    words = ["money", "refund", "card"] * 40
    pieces = pieces_of(tokenizer, " ".join(words))
    assert [word for piece in pieces for word in piece.split()] == words
    lengths = [len(piece.split()) for piece in pieces]
    assert max(lengths) <= 2 * min(lengths)


def test_each_window_has_the_other_fields(encoder: Encoders) -> None:
    tokenizer, prompt = PromptTokenizer(encoder("bert").tokenizer, LENGTH), Prompt("{text} {text_b} {mask}")
    row = {"text": FieldText("money " * 60), "text_b": FieldText("parcel station")}
    windows, _ = all_windows(tokenizer.windowed([prompt], [row]))
    other = tokenizer.words(["parcel station"])[0]
    assert len(windows) > 2
    assert all(" ".join(map(str, other)) in " ".join(map(str, ids.tolist())) for ids in windows.input_ids)


def test_marked_spans_stay_together(encoder: Encoders) -> None:
    tokenizer = PromptTokenizer(encoder("bert").tokenizer, LENGTH)
    text = "money " * 40 + "card " + "refund " * 5 + "station " + "money " * 40
    start, end = text.index("card"), text.index("station")
    marked = mark_spans(text, {"head": (start, start + 4), "tail": (end, end + 7)})
    prompts = tokenizer.windowed([PROMPT], [{"text": marked}])
    cut = tokenizer.pooled([PROMPT], [{"text": marked}])
    assert prompts.windows is None
    assert prompts.cut.tolist() == [True]
    assert prompts.input_ids[0].tolist() == cut.input_ids[0].tolist()


def test_two_long_fields_are_truncated_as_before(encoder: Encoders) -> None:
    tokenizer, prompt = PromptTokenizer(encoder("bert").tokenizer, LENGTH), Prompt("{text} {text_b} {mask}")
    row = {"text": FieldText("money " * 60), "text_b": FieldText("card " * 50)}
    assert tokenizer.windowed([prompt], [row]).windows is None
    assert tokenizer.windowed([prompt], [row]).cut.tolist() == [True]


def test_a_text_with_very_many_windows_counts_as_truncated(encoder: Encoders) -> None:
    tokenizer = PromptTokenizer(encoder("bert").tokenizer, LENGTH)
    prompts = tokenizer.windowed([PROMPT], [{"text": FieldText("money " * 20_000)}])
    assert len(all_windows(prompts)[0]) == MOST_WINDOWS
    assert prompts.cut.tolist() == [True]


@given(st.lists(st.integers(1, 100), min_size=1, max_size=6), st.data())
@settings(max_examples=30, deadline=None)
def test_selected_texts_keep_their_windows(encoder: Encoders, sizes: list[int], data: st.DataObject) -> None:
    tokenizer = PromptTokenizer(encoder("bert").tokenizer, LENGTH)
    prompts = tokenizer.windowed([PROMPT], [{"text": FieldText("money " * size)} for size in sizes])
    rows = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=5))
    windows, owners = all_windows(prompts)
    chosen, own = all_windows(prompts.select(rows))
    for place, row in enumerate(rows):
        wanted = [ids.tolist() for ids, owner in zip(windows.input_ids, owners.tolist(), strict=True) if owner == row]
        found = [ids.tolist() for ids, owner in zip(chosen.input_ids, own.tolist(), strict=True) if owner == place]
        assert found == wanted
    assert prompts.select(rows).tokens.tolist() == [int(prompts.tokens[row]) for row in rows]


def test_some_windows_are_spread_over_the_text(encoder: Encoders) -> None:
    tokenizer = PromptTokenizer(encoder("bert").tokenizer, LENGTH)
    prompts = tokenizer.windowed([PROMPT], [{"text": FieldText("money " * 200)}, {"text": FieldText("card")}])
    windows, owners = all_windows(prompts, 3)
    assert owners.tolist() == [0, 1, 0, 0]
    everything, _ = all_windows(prompts)
    assert windows.input_ids[-1].tolist() == everything.input_ids[-1].tolist()


def test_the_mean_is_that_of_each_texts_windows() -> None:
    vectors = np.array([[[1.0]], [[5.0]], [[3.0]], [[8.0]]], np.float32)
    assert mean_of_windows(vectors, np.array([0, 1, 0, 0]), 2).ravel().tolist() == [4.0, 5.0]
