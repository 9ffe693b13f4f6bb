"""Fields of examples, marked spans, and the errors for invalid examples."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch.errors import MaskMatchError
from maskmatch.prompts import FieldText, field_texts
from maskmatch.prompts.fields import MARKS, mark_spans

TEXT = "The clay was in a jar."


def test_string_is_the_single_field_of_the_prompt() -> None:
    assert field_texts("hello", ["text"]) == {"text": FieldText("hello")}
    assert field_texts("hello", ["body"]) == {"body": FieldText("hello")}


def test_string_is_the_text_if_the_prompt_has_more_fields() -> None:
    with pytest.raises(MaskMatchError, match="Text 3: its field 'text_b' is missing; required fields: text, text_b"):
        field_texts("hello", ["text", "text_b"], row=3)


def test_fields_that_the_prompt_does_not_use_are_ignored() -> None:
    assert field_texts({"text": "a", "text_b": "b", "id": 7}, ["text_b"]) == {"text_b": FieldText("b")}


def test_span_marks_the_text_and_replaces_a_missing_mention() -> None:
    fields = field_texts(
        {"text": TEXT, "head_span": (4, 8), "tail_span": [18, 21], "tail": "JAR"}, ["text", "head", "tail"]
    )
    assert fields["text"].text == "The @ clay @ was in a # jar #."
    assert [fields["text"].text[start:end] for start, end in fields["text"].protected] == ["@ clay @", "# jar #"]
    assert fields["head"] == FieldText("clay")
    assert fields["tail"] == FieldText("JAR"), "a given mention is used unchanged"


def test_span_gives_the_mention_if_the_prompt_does_not_use_the_text() -> None:
    assert field_texts({"text": TEXT, "entity_span": (18, 21)}, ["entity"]) == {"entity": FieldText("jar")}


def test_numpy_spans() -> None:
    fields = field_texts({"text": TEXT, "entity_span": np.array([4, 8])}, ["text"])
    assert fields["text"].text == "The * clay * was in a jar."


def test_mention_may_differ_from_its_span_in_case_and_white_space() -> None:
    fields = field_texts({"text": "in New  York", "head_span": (3, 12), "head": "new york"}, ["head"])
    assert fields["head"].text == "new york"


@pytest.mark.parametrize(
    ("text", "spans", "marked", "protected"),
    [
        ("abc", {"head": (0, 3)}, "@ abc @", ["@ abc @"]),
        ("abc def", {"head": (0, 3), "tail": (4, 7)}, "@ abc @ # def #", ["@ abc @", "# def #"]),
        ("abcdef", {"head": (0, 3), "tail": (3, 6)}, "@ abc @# def #", ["@ abc @", "# def #"]),
        ("abcdef", {"tail": (0, 3), "head": (3, 6)}, "# abc #@ def @", ["# abc #", "@ def @"]),
        ("a b c", {"head": (0, 5), "tail": (2, 3)}, "@ a # b # c @", ["@ a # b # c @"]),
        ("a b c", {"head": (2, 3), "tail": (0, 5)}, "# a @ b @ c #", ["# a @ b @ c #"]),
        ("a b c", {"head": (0, 1), "tail": (0, 5)}, "# @ a @ b c #", ["# @ a @ b c #"]),
        ("a b c", {"head": (4, 5), "tail": (0, 5)}, "# a b @ c @ #", ["# a b @ c @ #"]),
        ("a b c", {"head": (2, 3), "entity": (2, 3)}, "a @ * b * @ c", ["@ * b * @"]),
        ("a b c", {"entity": (2, 3), "head": (2, 3)}, "a * @ b @ * c", ["* @ b @ *"]),
        ("a b c", {"head": (0, 3), "tail": (2, 5)}, "@ a # b @ c #", ["@ a # b @ c #"]),
    ],
)
def test_spans_are_marked(text: str, spans: dict[str, tuple[int, int]], marked: str, protected: list[str]) -> None:
    field = mark_spans(text, spans)
    assert field.text == marked
    assert [field.text[start:end] for start, end in field.protected] == protected


@st.composite
def texts_with_spans(draw: st.DrawFn) -> tuple[str, dict[str, tuple[int, int]]]:
    text = draw(st.text("abc \u00e9\U0001f642", min_size=1, max_size=20))
    names = draw(st.lists(st.sampled_from(sorted(MARKS)), min_size=1, unique=True))
    spans = {}
    for name in names:
        start = draw(st.integers(0, len(text) - 1))
        spans[name] = (start, draw(st.integers(start + 1, len(text))))
    return text, spans


@given(texts_with_spans())
@settings(max_examples=100, deadline=None)
def test_marking_only_adds_marks_and_protects_the_spans(
    case: tuple[str, dict[str, tuple[int, int]]],
) -> None:
    text, spans = case
    field = mark_spans(text, spans)
    unmarked = field.text
    for opening, closing in MARKS.values():
        unmarked = unmarked.replace(f"{opening} ", "").replace(f" {closing}", "")
    assert unmarked == text
    protected = "".join(field.text[start:end] for start, end in field.protected)
    for name, (start, end) in spans.items():
        opening, _ = MARKS[name]
        assert field.text.count(opening) == 2
        assert protected.count(opening) == 2
        inside = field.text[field.text.index(opening) + 1 : field.text.rindex(opening)]
        for mark in "@#*":
            inside = inside.replace(f"{mark} ", "").replace(f" {mark}", "")
        assert "".join(inside.split()) == "".join(text[start:end].split())
    covered = sorted(field.protected)
    assert all(first[1] <= second[0] for first, second in pairwise(covered))


@pytest.mark.parametrize(
    ("example", "fields", "words"),
    [
        (5, ["text"], ["type int", "a string or a dict of fields (text)"]),
        (None, ["text"], ["type NoneType"]),
        (["a"], ["text", "text_b"], ["type list", "text, text_b"]),
        (b"bytes", ["text"], ["type bytes"]),
        ({"text": "a"}, ["text", "text_b"], ["'text_b' is missing"]),
        ({}, ["text"], ["'text' is missing"]),
        ({"text": None}, ["text"], ["'text' is missing"]),
        ({"text": 5}, ["text"], ["'text' is of type int, not a string"]),
        ({"text": float("nan")}, ["text"], ["'text' is of type float"]),
        ({"text": TEXT, "head": 5}, ["text", "head"], ["'head' is of type int"]),
        ({"text": "half \ud83d"}, ["text"], ["'text' contains a lone surrogate"]),
        ({"text": TEXT, "head_span": (4, 99)}, ["text"], ["head_span 4 to 99", "22 characters"]),
        ({"text": TEXT, "head_span": (-3, 2)}, ["text"], ["head_span -3 to 2"]),
        ({"text": TEXT, "head_span": (8, 4)}, ["text"], ["head_span 8 to 4"]),
        ({"text": TEXT, "head_span": (4, 4)}, ["text"], ["head_span 4 to 4"]),
        ({"text": TEXT, "tail_span": 4}, ["text"], ["tail_span is 4", "two numbers"]),
        ({"text": TEXT, "tail_span": (4,)}, ["text"], ["two numbers"]),
        ({"text": TEXT, "tail_span": (4, 6, 8)}, ["text"], ["two numbers"]),
        ({"text": TEXT, "tail_span": "48"}, ["text"], ["two numbers"]),
        ({"text": TEXT, "tail_span": (4, "8")}, ["text"], ["two numbers"]),
        ({"text": TEXT, "tail_span": (4, 8.5)}, ["text"], ["two numbers"]),
        ({"text": TEXT, "tail_span": (4, float("inf"))}, ["text"], ["two numbers"]),
        ({"text": TEXT, "tail_span": (4, None)}, ["text"], ["two numbers"]),
        ({"head": "a", "head_span": (0, 1)}, ["head"], ["head_span 0 to 1", "0 characters"]),
        (
            {"text": TEXT, "head_span": (5, 9), "head": "clay"},
            ["text"],
            ["head_span marks 'lay '", "head is 'clay'", "exclusive"],
        ),
    ],
)
def test_invalid_example_raises_with_its_row(example: Any, fields: list[str], words: list[str]) -> None:
    with pytest.raises(MaskMatchError) as caught:
        field_texts(example, fields, row=41)
    assert str(caught.value).startswith("Text 41")
    for word in words:
        assert word in str(caught.value)
