"""Truncation: it shortens field texts, never the prompt's own words or masks."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch.errors import MaskMatchError
from maskmatch.prompts import FieldText, Prompt, PromptTokenizer
from maskmatch.prompts.fields import mark_spans
from maskmatch.prompts.truncation import allocate_tokens, truncation_order
from maskmatch.testing.tiny_encoders import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from maskmatch.model.encoder import Encoder

LONG = 4000
# Every field has its own letters and prompts consist of digits, so the origin of a token is visible.
LETTERS = {"text": "abcd", "text_b": "efgh", "head": "xyz"}
TEMPLATES = (
    "{text} 1 2 {mask} 3.",
    "1 {text} 2 {text_b} 3 {mask} 4",
    "{mask} 1 {text} {sep} {head} 2 {text_b} 3 {mask}",
    "{text} {mask} {text_b}.",
)


def origin(token: str) -> str:
    """The origin of a token: the name of a field, "prompt", or "space" if it is unknown."""
    for name, letters in LETTERS.items():
        if any(letter in token for letter in letters) and not token.startswith(("[", "<")):
            return name
    return "space" if token in ("▁", "Ġ") else "prompt"


def origins(tokens: list[str]) -> list[str]:
    """The origins of tokens; a space that is a token has the origin of the next token."""
    found: list[str] = []
    for token in reversed(tokens):
        found.append(found[-1] if origin(token) == "space" and found else origin(token))
    return found[::-1]


def texts_of(numbers: dict[str, int]) -> dict[str, str]:
    return {
        name: " ".join(LETTERS[name][index % len(LETTERS[name])] for index in range(number))
        for name, number in numbers.items()
    }


def is_subsequence(short: list[str], long: list[str]) -> bool:
    rest = iter(long)
    return all(token in rest for token in short)


@pytest.mark.parametrize("family", FAMILIES)
@given(
    template=st.sampled_from(TEMPLATES),
    numbers=st.fixed_dictionaries(dict.fromkeys(LETTERS, st.integers(0, 30))),
    max_length=st.integers(20, 60),
)
@settings(max_examples=50, deadline=None)
def test_only_fields_are_truncated_and_the_longest_first(
    encoder: Callable[[str], Encoder], family: str, template: str, numbers: dict[str, int], max_length: int
) -> None:
    tokenizer = encoder(family).tokenizer
    prompt = Prompt(template)
    numbers = {name: numbers[name] for name in prompt.fields}
    row = {name: FieldText(text) for name, text in texts_of(numbers).items()}
    whole = PromptTokenizer(tokenizer, LONG)(prompt, [row])
    short = PromptTokenizer(tokenizer, max_length)(prompt, [row])
    before = tokenizer.convert_ids_to_tokens(whole.input_ids[0].tolist())
    after = tokenizer.convert_ids_to_tokens(short.input_ids[0].tolist())

    assert len(after) == min(len(before), max_length), "the maximum length is used completely"
    assert short.cut[0] == (len(before) > max_length)
    assert is_subsequence(after, before)
    own = [token for token in before if origin(token) == "prompt"]
    assert [token for token in after if origin(token) == "prompt"] == own
    masks = np.flatnonzero(short.input_ids[0] == tokenizer.mask_token_id)
    assert short.mask_positions[0].tolist() == masks.tolist()
    assert len(masks) == prompt.masks

    had = {name: origins(before).count(name) for name in numbers}
    kept = {name: origins(after).count(name) for name in numbers}
    for name in numbers:
        if kept[name] < had[name]:  # not exact, because a token may start with a space of the prompt
            assert kept[name] >= max(kept.values()) - 3
    for name in numbers:  # the start of a text is kept
        words = [token for token in before if origin(token) == name]
        left = [token for token in after if origin(token) == name]
        assert left == words[: len(left)]


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_room_is_allocated_exactly(encoder: Callable[[str], Encoder], family: str) -> None:
    tokenizer = encoder(family).tokenizer
    row = {name: FieldText(text) for name, text in texts_of({"text": 30, "text_b": 3, "head": 12}).items()}
    short = PromptTokenizer(tokenizer, 24)(Prompt("{text} {text_b} {head} {mask}"), [row])
    tokens = tokenizer.convert_ids_to_tokens(short.input_ids[0].tolist())
    assert len(tokens) == 24
    counts = [sum(origin(token) == name for token in tokens) for name in ("text", "text_b", "head")]
    assert counts == allocate_tokens([30, 3, 12], 24 - 3)
    assert counts == [9, 3, 9]


def test_repeated_field_is_truncated_twice(encoder: Callable[[str], Encoder]) -> None:
    tokenizer = encoder("bert").tokenizer
    row = {"text": FieldText("a b c d " * 10)}
    short = PromptTokenizer(tokenizer, 16)(Prompt("{text} 1 {text} {mask}"), [row])
    tokens = tokenizer.convert_ids_to_tokens(short.input_ids[0].tolist())
    assert tokens == ["[CLS]", *"abcdab", "1", *"abcdab", "[MASK]", "[SEP]"]


def test_token_that_overlaps_the_prompt_is_kept(encoder: Callable[[str], Encoder]) -> None:
    tokenizer = encoder("bert").tokenizer
    row = {"text": FieldText("a b c d " * 10 + "ref")}
    short = PromptTokenizer(tokenizer, 8)(Prompt("{text}und {mask}"), [row])
    tokens = tokenizer.convert_ids_to_tokens(short.input_ids[0].tolist())
    assert tokens == ["[CLS]", *"abcd", "refund", "[MASK]", "[SEP]"]


@pytest.mark.parametrize("family", FAMILIES)
@given(
    before=st.integers(0, 40),
    between=st.integers(0, 20),
    after=st.integers(0, 40),
    head=st.integers(1, 4),
    tail=st.integers(1, 4),
    room=st.integers(2, 30),
)
@settings(max_examples=40, deadline=None)
def test_marked_spans_are_kept_if_they_fit(
    encoder: Callable[[str], Encoder],
    *,
    family: str,
    before: int,
    between: int,
    after: int,
    head: int,
    tail: int,
    room: int,
) -> None:
    tokenizer = encoder(family).tokenizer
    prompt = Prompt("{text} 1 2 {mask} 3.")

    def text(*numbers: int) -> FieldText:
        pieces = [
            " ".join(letter * number)
            for letter, number in zip("axbyc", numbers, strict=True)
            # the marked words are x and y, the words around them a, b and c
        ]
        joined = "".join(f"{piece} " for piece in pieces)
        begin = len(pieces[0]) + 1
        start = begin + len(pieces[1]) + 1 + len(pieces[2]) + 1
        return mark_spans(joined, {"head": (begin, begin + len(pieces[1])), "tail": (start, start + len(pieces[3]))})

    def tokens(field: FieldText, max_length: int) -> list[str]:
        ids = PromptTokenizer(tokenizer, max_length)(prompt, [{"text": field}]).input_ids[0]
        strings: list[str] = tokenizer.convert_ids_to_tokens(ids.tolist())
        return strings

    marked = text(before, head, between, tail, after)
    bare = len(tokens(text(0, head, 0, tail, 0), LONG))  # the length of the prompt with the marked spans alone
    whole = tokens(marked, LONG)
    short = tokens(marked, max(8, bare + room))

    def marked_tokens(tokens: list[str]) -> list[str]:
        return [token for token in tokens if any(mark in token for mark in "xy@#") and "MASK" not in token]

    assert marked_tokens(short) == marked_tokens(whole)
    assert len(short) == min(len(whole), max(8, bare + room))


def test_text_after_the_spans_is_dropped_before_text_before_them(encoder: Callable[[str], Encoder]) -> None:
    tokenizer = encoder("bert").tokenizer
    field = mark_spans("a b c d x e f g h", {"entity": (8, 9)})
    prompt = Prompt("{text} {mask}")

    def truncated_to(max_length: int) -> str:
        ids = PromptTokenizer(tokenizer, max_length)(prompt, [{"text": field}]).input_ids[0].tolist()
        return "".join(tokenizer.convert_ids_to_tokens(ids)[1:-2])

    assert truncated_to(14) == "abcd*x*efgh"
    assert truncated_to(12) == "abcd*x*ef"
    assert truncated_to(10) == "abcd*x*"
    assert truncated_to(8) == "cd*x*"


@pytest.mark.parametrize("family", FAMILIES)
def test_prompt_without_room_for_a_text_raises(encoder: Callable[[str], Encoder], family: str) -> None:
    tokenize = PromptTokenizer(encoder(family).tokenizer, 10)
    template = "{text} 1 2 3 4 5 6 7 8 9 {mask} 1 2 3 4."
    with pytest.raises(MaskMatchError) as caught:
        tokenize(Prompt(template), [{"text": FieldText("a b c")}])
    assert template in str(caught.value)
    assert "of the 10 allowed" in str(caught.value)
    assert "shorten the prompt or raise max_length" in str(caught.value)


lengths = st.lists(st.integers(0, 50), min_size=1, max_size=6)


@given(lengths, st.integers(0, 200))
@settings(max_examples=200, deadline=None)
def test_longest_fields_are_truncated_first(wanted: list[int], room: int) -> None:
    allocated = allocate_tokens(wanted, room)
    assert sum(allocated) == min(sum(wanted), room)
    assert all(0 <= kept <= length for kept, length in zip(allocated, wanted, strict=True))
    for kept, length in zip(allocated, wanted, strict=True):
        if kept < length:  # a truncated field keeps as many tokens as any other, except one that cannot be divided
            assert kept >= max(allocated) - 1
    by_length = sorted(zip(wanted, allocated, strict=True))
    assert all(first[1] <= second[1] + 1 for first, second in pairwise(by_length))


@given(st.lists(st.booleans(), max_size=30))
@settings(max_examples=100, deadline=None)
def test_order_contains_every_token_once_and_protected_ones_last(protected: list[bool]) -> None:
    order = truncation_order(protected)
    assert sorted(order) == list(range(len(protected)))
    flags = [protected[position] for position in order]
    assert flags == sorted(flags)


def test_order_without_spans_is_from_the_end() -> None:
    assert truncation_order([False] * 4) == [3, 2, 1, 0]


def test_order_with_spans_is_after_before_between() -> None:
    protected = [False, False, True, False, False, True, False]
    assert truncation_order(protected) == [6, 0, 1, 4, 3, 5, 2]
