"""Prompt templates: their parts, and the errors for invalid ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch.errors import MaskMatchError
from maskmatch.prompts import FIELDS, Prompt


def shape(prompt: Prompt) -> list[tuple[str, str]]:
    """The parts of a prompt, with adjacent words joined."""
    joined: list[tuple[str, str]] = []
    for part in prompt.parts:
        if part.kind == "words" and joined and joined[-1][0] == "words":
            joined[-1] = ("words", joined[-1][1] + part.text)
        else:
            joined.append((part.kind, part.text))
    return joined


def test_template_is_split_into_parts() -> None:
    prompt = Prompt("{text} It is {mask}, or {mask}. {sep}{text_b}")
    assert shape(prompt) == [
        ("field", "text"),
        ("words", " It is "),
        ("mask", ""),
        ("words", ", or "),
        ("mask", ""),
        ("words", ". "),
        ("sep", ""),
        ("field", "text_b"),
    ]
    assert prompt.fields == ("text", "text_b")
    assert prompt.masks == 2


def test_escaped_braces_are_literal_braces() -> None:
    prompt = Prompt("{{text}} {text} }}{mask}{{")
    assert shape(prompt) == [
        ("words", "{text} "),
        ("field", "text"),
        ("words", " }"),
        ("mask", ""),
        ("words", "{"),
    ]


def test_repeated_field_is_listed_once() -> None:
    assert Prompt("{text_b} {text} {text_b} {mask}").fields == ("text_b", "text")


def test_short_form_of_consecutive_masks() -> None:
    assert Prompt("{text} {mask*3}.").parts == Prompt("{text} {mask}{mask}{mask}.").parts
    assert Prompt("{mask*12} {text} {mask}").masks == 13


def test_prompts_are_equal_if_their_templates_are() -> None:
    prompt = Prompt("{text} {mask}")
    assert str(prompt) == "{text} {mask}"
    assert prompt == Prompt("{text} {mask}", ("text",))
    assert prompt != Prompt("{text}  {mask}")
    assert hash(prompt) == hash(Prompt("{text} {mask}"))


def test_prompt_without_a_mask_if_none_is_required() -> None:
    assert Prompt("{text} {sep} {text_b}", masked=False).masks == 0


def test_custom_fields() -> None:
    assert Prompt("{subject}: {body} {mask}", ("subject", "body")).fields == ("subject", "body")


@pytest.mark.parametrize(
    ("template", "options", "words"),
    [
        ("{txt} is {mask}", {}, ["{txt}", "{text}", "{mask}"]),
        ("{text} {head} {mask}", {"fields": ("text",)}, ["{head}", "{text}"]),
        ("{text} is it", {}, ["no mask", "{mask}"]),
        ("It is {mask}", {}, ["has no field", "{text}"]),
        ("{{text}} is {mask}", {}, ["has no field"]),
        ("{text is {mask}", {}, ["unbalanced braces"]),
        ("{text} is {mask", {}, ["unbalanced braces", "{{ or }}"]),
        ("text} is {mask}", {}, ["unbalanced braces"]),
        ("{text} {mask} {", {}, ["unbalanced braces"]),
        ("{text} {mask} }", {}, ["unbalanced braces"]),
        ("{text!r} {mask}", {}, ["{text!r}", "plain field name"]),
        ("{text:>10} {mask}", {}, ["{text:>10}", "plain field name"]),
        ("{text!s:>10} {mask}", {}, ["{text!s:>10}"]),
        ("{text:{mask}}", {}, ["plain field name"]),
        ("{text[0]} {mask}", {}, ["{text[0]}"]),
        ("{text.upper} {mask}", {}, ["{text.upper}"]),
        ("{0} {mask}", {}, ["{0}"]),
        ("{} {mask}", {}, ["{}"]),
        ("{ text } {mask}", {}, ["{ text }"]),
        ("{text} {mask!r}", {}, ["{mask!r}"]),
        ("{text} {mask*0}", {}, ["{mask*0}", "{mask*4}"]),
        ("{text} {mask*2!r}", {}, ["{mask*2!r}"]),
        ("{text} {mask*100}", {}, ["{mask*100}"]),
        ("{text*2} {mask}", {}, ["{text*2}"]),
        ("", {}, ["A prompt is a string such as", "''"]),
        (" \n", {}, ["A prompt is a string such as"]),
        (None, {}, ["A prompt is a string such as", "None"]),
        (7, {}, ["A prompt is a string such as", "7"]),
        (
            "it is {mask}",
            {"fields": ("label",), "required": ("label",)},
            ["must use {label}", '"{label} is {mask}."'],
        ),
        ("{text} is {mask}", {"required": ("label",)}, ["must use {label}"]),
        ("{text} is {mask}", {"fields": ("label",), "required": ("label",)}, ["{text}", "{label}"]),
    ],
)
def test_invalid_template_raises(template: Any, options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(MaskMatchError) as caught:
        Prompt(template, **options)
    for word in words:
        assert word in str(caught.value)


PIECES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6).map(lambda words: ("words", words)),
    st.sampled_from(FIELDS).map(lambda name: ("field", name)),
    st.just(("mask", "")),
    st.just(("sep", "")),
)


@given(st.lists(PIECES, max_size=8))
@settings(max_examples=60, deadline=None)
def test_any_valid_template_is_parsed(pieces: list[tuple[str, str]]) -> None:
    pieces = [*pieces, ("field", "text"), ("mask", "")]
    written = "".join(
        text.replace("{", "{{").replace("}", "}}") if kind == "words" else f"{{{text or kind}}}"
        for kind, text in pieces
    )
    prompt = Prompt(written)
    assert "".join(text or f"<{kind}>" for kind, text in shape(prompt)) == "".join(
        text if kind in ("words", "field") else f"<{kind}>" for kind, text in pieces
    )
    assert prompt.masks == sum(kind == "mask" for kind, _ in pieces)
    assert set(prompt.fields) == {text for kind, text in pieces if kind == "field"}


@given(st.text("{}mask tex!:.[]0", max_size=20))
@settings(max_examples=150, deadline=None)
def test_any_string_is_parsed_or_raises_one_sentence(template: str) -> None:
    try:
        prompt = Prompt(template)
    except MaskMatchError as error:
        message = str(error)
        prompt = None
    if prompt is None:
        assert message.endswith((".", '"'))
    else:
        assert prompt.masks >= 1
        assert set(prompt.fields) <= set(FIELDS)


def test_half_a_character() -> None:
    with pytest.raises(MaskMatchError, match="half of a character"):
        Prompt("{text} \ud800 {mask}")
