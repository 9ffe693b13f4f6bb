"""Prompts as token ids, with the tokenizer of every model family."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import AddedToken, PreTrainedTokenizerFast

from maskmatch.errors import MaskMatchError
from maskmatch.prompts import FieldText, Prompt, PromptTokenizer, TokenizedPrompts
from maskmatch.prompts.fields import mark_spans
from maskmatch.testing.tiny_encoders import FAMILIES, tiny_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from maskmatch.model.encoder import Encoder

LONG = 4000
TEMPLATES = (
    "{text} It is about {mask}.",
    "{text} {mask} {text_b}.",
    '"{text}" and "{text_b}": the {{second}} is {mask}.',
    "{text} {sep} {text_b} {mask} or{mask}",
    "{mask}{text}{mask} {mask}\t{text_b} {mask}",
    "{mask} {text}",
)
SPELLINGS = ("[MASK]", "<mask>", "<s>", "</s>", "[SEP]", "[CLS]", "[PAD]", "<pad>", "[UNK]", "<unk>")
WORDS = (
    "refund",
    "card lost",
    "Übermäßig",
    "東京",
    "🙂",
    "e\u0301",
    "  ",
    "\t",
    "\n",
    " ",
    ".",
    "...",
    '"',
    "'s",
)
anything = st.lists(
    st.one_of(st.sampled_from(WORDS), st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)),
    max_size=6,
).map("".join)
hostile = st.lists(
    st.sampled_from(
        [
            *SPELLINGS,
            *(f" {word} " for word in SPELLINGS),
            "\uff3b\uff2d\uff21\uff33\uff2b\uff3d",
            "[mask]",
            "a",
            " ",
            "##",
            "▁",
            "Ġ",
        ]
    ),
    max_size=8,
).map("".join)


def rows(**fields: str) -> list[dict[str, FieldText]]:
    return [{name: FieldText(text) for name, text in fields.items()}]


def filled(template: str, tokenizer: Any, **fields: str) -> list[int]:
    """The token ids of a prompt that is filled by hand and tokenised by the tokenizer itself."""
    text = template.format(mask=tokenizer.mask_token, sep=tokenizer.sep_token, **fields)
    ids: list[int] = tokenizer(text)["input_ids"]
    return ids


@pytest.mark.parametrize("family", FAMILIES)
@given(template=st.sampled_from(TEMPLATES), text=anything, text_b=anything)
@example(template="{text} {mask} {text_b}.", text="spaces after  ", text_b="  and before")
@example(template="{mask}{text}{mask} {mask}\t{text_b} {mask}", text="", text_b=" ")
@settings(max_examples=60, deadline=None)
def test_ids_equal_those_of_the_filled_prompt(
    encoder: Callable[[str], Encoder], family: str, template: str, text: str, text_b: str
) -> None:
    assume(not any(spelling in text + text_b for spelling in SPELLINGS))
    tokenizer = encoder(family).tokenizer
    prompts = PromptTokenizer(tokenizer, LONG)(Prompt(template), rows(text=text, text_b=text_b))
    assert prompts.input_ids[0].tolist() == filled(template, tokenizer, text=text, text_b=text_b)
    assert not prompts.cut[0]


@pytest.mark.parametrize("family", FAMILIES)
@given(
    template=st.sampled_from(TEMPLATES),
    text=st.one_of(hostile, anything),
    text_b=hostile,
    max_length=st.sampled_from([32, LONG]),
)
@example(template="{text} It is about {mask}.", text="[MASK] <mask> <s> [SEP]", text_b="", max_length=LONG)
@settings(max_examples=60, deadline=None)
def test_only_the_masks_of_the_prompt_are_masks(
    encoder: Callable[[str], Encoder], *, family: str, template: str, text: str, text_b: str, max_length: int
) -> None:
    tokenizer = encoder(family).tokenizer
    prompt = Prompt(template)
    prompts = PromptTokenizer(tokenizer, max_length)(prompt, rows(text=text, text_b=text_b))
    ids = prompts.input_ids[0]
    assert np.flatnonzero(ids == tokenizer.mask_token_id).tolist() == prompts.mask_positions[0].tolist()
    assert prompts.mask_positions.shape == (1, prompt.masks)
    special = sorted(set(tokenizer.all_special_ids) - {tokenizer.unk_token_id})
    harmless = filled(template, tokenizer, text="a", text_b="b")
    assert [id_ for id_ in ids.tolist() if id_ in special] == [id_ for id_ in harmless if id_ in special]


@pytest.mark.parametrize("family", FAMILIES)
def test_special_token_in_a_text_does_not_change_other_words(encoder: Callable[[str], Encoder], family: str) -> None:
    tokenizer = encoder(family).tokenizer
    tokenize = PromptTokenizer(tokenizer, LONG)
    ids = tokenize(Prompt("{text} {mask}"), rows(text=f"card {tokenizer.mask_token} lost")).input_ids[0].tolist()
    assert ids[:2] == filled("{text} {mask}", tokenizer, text="card")[:2]
    (lost,) = tokenize.words(["lost"])
    assert any(ids[start : start + len(lost)] == lost for start in range(len(ids)))


@pytest.mark.parametrize("family", ["bert", "mpnet", "roberta", "modernbert"])
def test_special_token_in_a_text_is_tokenised_as_words(encoder: Callable[[str], Encoder], family: str) -> None:
    tokenizer = encoder(family).tokenizer
    prompts = PromptTokenizer(tokenizer, LONG)(Prompt("{text} {mask}"), rows(text="[MASK] <mask>"))
    ids = prompts.input_ids[0].tolist()
    assert tokenizer.unk_token_id not in ids
    shown = "".join(tokenizer.convert_ids_to_tokens(ids)).replace("##", "").replace("Ġ", "").lower()
    assert "[mask]<mask>" in shown


def test_mask_that_strips_white_space_on_both_sides() -> None:
    state = json.loads(tiny_tokenizer("modernbert").backend_tokenizer.to_str())
    state["added_tokens"][4] |= {"lstrip": True, "rstrip": True}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(state)),
        mask_token=AddedToken("[MASK]", lstrip=True, rstrip=True, special=True),
        **{f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep")},
    )
    template = "{text} {mask} {text_b}"
    for text_b in ("   a b", "", "  "):
        ids = PromptTokenizer(tokenizer, LONG)(Prompt(template), rows(text="a  ", text_b=text_b)).input_ids[0]
        assert ids.tolist() == filled(template, tokenizer, text="a  ", text_b=text_b)
    spaces = " " * 9
    marked = mark_spans(f"{spaces}a b c d e x y f g h", {"head": (19, 22)})
    cut = PromptTokenizer(tokenizer, 10)(Prompt("{mask} {text}"), [{"text": marked}]).input_ids[0]
    tokens = tokenizer.convert_ids_to_tokens(cut.tolist())
    assert tokens == ["[CLS]", "[MASK]", *(f"Ġ{token}" for token in "cde@xy@"), "[SEP]"]


@pytest.mark.parametrize("family", FAMILIES)
def test_other_calls_of_the_tokenizer_have_no_effect(encoder: Callable[[str], Encoder], family: str) -> None:
    tokenizer = encoder(family).tokenizer
    tokenize = PromptTokenizer(tokenizer, LONG)
    prompt, texts = Prompt("{text} It is {mask}."), [*rows(text="card " * 30), *rows(text="refund")]
    before = tokenize(prompt, texts)
    tokenizer(["a b c d e f", "g"], truncation=True, max_length=5, padding="max_length")
    after = tokenize(prompt, texts)
    assert [ids.tolist() for ids in after.input_ids] == [ids.tolist() for ids in before.input_ids]
    assert filled("{text} {mask}", tokenizer, text="a").count(tokenizer.mask_token_id) == 1, (
        "and ours have no effect on them"
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_words_are_tokenised_as_in_a_sentence(encoder: Callable[[str], Encoder], family: str) -> None:
    tokenizer = encoder(family).tokenizer
    refund, empty = PromptTokenizer(tokenizer, LONG).words(["refund", ""])
    sentence = tokenizer("my refund", add_special_tokens=False)["input_ids"]
    assert sentence[-len(refund) :] == refund
    assert len(empty) >= 1, "a label without tokens would have no vector"


def test_rows_are_independent(encoder: Callable[[str], Encoder]) -> None:
    tokenize = PromptTokenizer(encoder("roberta").tokenizer, 24)
    prompt = Prompt("{text} {mask} {sep} {text_b}")
    texts = [row for text in ("a", "", "card " * 40, "it is") for row in rows(text=text, text_b="refund")]
    together = tokenize(prompt, texts)
    for number, row in enumerate(texts):
        alone = tokenize(prompt, [row])
        assert alone.input_ids[0].tolist() == together.input_ids[number].tolist()
        assert alone.mask_positions[0].tolist() == together.mask_positions[number].tolist()
        assert alone.cut[0] == together.cut[number]
    assert together.cut.tolist() == [False, False, True, False]


def test_no_rows(encoder: Callable[[str], Encoder]) -> None:
    prompts = PromptTokenizer(encoder("bert").tokenizer, 16)(Prompt("{text} {mask} {mask}"), [])
    assert len(prompts) == 0
    assert prompts.mask_positions.shape == (0, 2)


def make_prompts(*lengths: int, masks: int, first: int = 0) -> TokenizedPrompts:
    """Prompts of the given lengths, each with its own token id."""
    ids = [np.full(length, first + number, dtype=np.int32) for number, length in enumerate(lengths)]
    positions = np.arange(len(lengths) * masks).reshape(len(lengths), masks) + first
    return TokenizedPrompts(ids, positions, np.array([length > 3 for length in lengths]))


def test_select_and_concatenate() -> None:
    first, second = make_prompts(2, 5, masks=2), make_prompts(4, 1, 3, masks=1, first=10)
    joined = first.followed_by(second)
    assert joined.lengths.tolist() == [2, 5, 4, 1, 3]
    assert joined.mask_positions.tolist() == [[0, 1], [2, 3], [10, -1], [11, -1], [12, -1]]
    assert joined.cut.tolist() == [False, True, True, False, False]
    assert second.followed_by(first).mask_positions.tolist() == [[10, -1], [11, -1], [12, -1], [0, 1], [2, 3]]
    chosen = joined.select([4, 0, 4])
    assert [ids[0] for ids in chosen.input_ids] == [12, 0, 12]
    assert chosen.mask_positions.tolist() == [[12, -1], [0, 1], [12, -1]]
    assert len(chosen) == 3


def test_unsuitable_tokenizers_raise() -> None:
    slow = SimpleNamespace(is_fast=False, mask_token_id=4)
    with pytest.raises(MaskMatchError, match="not backed by the tokenizers library"):
        PromptTokenizer(slow, 64)  # type: ignore[arg-type]
    maskless = tiny_tokenizer("bert")
    maskless.mask_token = None
    with pytest.raises(MaskMatchError, match="has no mask token"):
        PromptTokenizer(maskless, 64)
    with pytest.raises(MaskMatchError, match="max_length is 7; it must be at least 8"):
        PromptTokenizer(tiny_tokenizer("bert"), 7)
    without_separator = tiny_tokenizer("bert")
    without_separator.sep_token = None
    tokenize = PromptTokenizer(without_separator, 64)
    with pytest.raises(MaskMatchError, match=r"names {sep}, but the tokenizer BertTokenizer has no separator"):
        tokenize(Prompt("{text} {sep} {mask}"), rows(text="a"))
