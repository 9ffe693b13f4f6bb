"""Which columns `guess_columns` finds, and where it rather asks."""

from __future__ import annotations

from typing import Any

import pytest

from maskmatch.data import Columns, guess_columns
from maskmatch.errors import MaskMatchError


def refusal(columns: list[str], fields: list[str], **options: object) -> str:
    with pytest.raises(MaskMatchError) as caught:
        guess_columns(columns, fields, **options)  # type: ignore[arg-type]
    return str(caught.value)


PAIR = ["text", "text_b"]
RELATION = ["text", "head", "tail"]


@pytest.mark.parametrize(
    ("columns", "fields", "found", "label"),
    [
        (["text", "label"], ["text"], ["text"], "label"),
        (["label", "idx", "sentence"], ["text"], ["sentence"], "label"),
        (["Utterance", "INTENT"], ["text"], ["Utterance"], "INTENT"),
        (["Text", "Label", "sentence"], ["text"], ["Text"], "Label"),
        (["text", "sentence", "label", "label_text", "topic"], ["text"], ["text"], "label"),
        (["id", "text", "labels"], ["text"], ["text"], "labels"),
        (["premise", "hypothesis", "label"], PAIR, ["premise", "hypothesis"], "label"),
        (["question1", "question2", "is_duplicate", "id"], PAIR, ["question1", "question2"], "is_duplicate"),
        (["Tweet", "Target", "Stance"], PAIR, ["Tweet", "Target"], "Stance"),
        (["text", "topic", "stance"], PAIR, ["text", "topic"], "stance"),
        (["sentence", "subj", "obj", "relation"], RELATION, ["sentence", "subj", "obj"], "relation"),
        (["sentence", "mention", "type"], ["text", "entity"], ["sentence", "mention"], "type"),
        (
            ["word", "sentence1", "sentence2", "label"],
            ["text", "text_b", "entity"],
            ["sentence1", "sentence2", "word"],
            "label",
        ),
        (["subject", "body", "queue", "label"], ["subject", "body"], ["subject", "body"], "label"),
    ],
)
def test_names_that_are_obvious(columns: list[str], fields: list[str], found: list[str], label: str) -> None:
    assert guess_columns(columns, fields) == Columns(dict(zip(fields, found, strict=True)), label)


@pytest.mark.parametrize(
    ("columns", "fields", "found", "label"),
    [
        (["complaint", "label"], ["text"], ["complaint"], "label"),
        (["id", "complaint", "label"], ["text"], ["complaint"], "label"),
        (["text", "queue"], ["text"], ["text"], "queue"),
        (["sentence1", "label"], ["text"], ["sentence1"], "label"),
        (["text", "label"], ["ticket"], ["text"], "label"),
    ],
)
def test_the_only_column_left_over(columns: list[str], fields: list[str], found: list[str], label: str) -> None:
    assert guess_columns(columns, fields) == Columns(dict(zip(fields, found, strict=True)), label)


@pytest.mark.parametrize(
    ("columns", "fields", "option"),
    [
        (["sentence", "question", "label"], ["text"], "--text-field"),
        (["TEXT", "Text", "label"], ["text"], "--text-field"),
        (["text", "intent", "category"], ["text"], "--label-field"),
        (["text", "sentence2", "hypothesis", "label"], PAIR, "--field text_b=COLUMN"),
        (["foo", "bar"], ["text"], "--text-field"),
        (["foo", "bar", "label"], ["text"], "--text-field"),
        (["id", "label"], ["text"], "--text-field"),
        (["sentence1", "sentence2", "label"], ["text"], "--text-field"),
        (["text", "topic"], PAIR, "--label-field"),
        (["text", "id"], ["text"], "--label-field"),
        (["text", "label"], RELATION, "--field head=COLUMN"),
        (["text", "text_b", "label"], ["text", "entity"], "--field entity=COLUMN"),
    ],
)
def test_what_is_not_obvious_is_asked_for(columns: list[str], fields: list[str], option: str) -> None:
    message = refusal(columns, fields)
    assert option in message
    for column in columns:
        assert repr(column) in message


class TestNamedColumns:
    def test_they_come_first(self) -> None:
        columns = ["text", "sentence", "label", "topic"]
        assert guess_columns(columns, ["text"], named={"text": "sentence"}, label="topic") == Columns(
            {"text": "sentence"}, "topic"
        )

    def test_naming_one_makes_the_other_obvious(self) -> None:
        columns = ["sentence", "question", "label"]
        found = guess_columns(columns, PAIR, named={"text": "sentence"})
        assert found.fields == {"text": "sentence", "text_b": "question"}

    @pytest.mark.parametrize("options", [{"named": {"text": "txt"}}, {"label": "txt"}])
    def test_a_column_that_is_not_there(self, options: dict[str, object]) -> None:
        message = refusal(["Text", "label"], ["text"], **options)
        assert "no column 'txt' (did you mean 'Text'?)" in message
        assert "'Text', 'label'" in message

    def test_a_column_like_no_other(self) -> None:
        assert "did you mean" not in refusal(["text", "label"], ["text"], label="zzz")

    def test_one_column_for_two_fields(self) -> None:
        assert "'text'" in refusal(["text", "label"], ["text"], named={"text": "text"}, label="text")
        assert "'a'" in refusal(["a", "label"], PAIR, named={"text": "a", "text_b": "a"})

    def test_a_field_that_the_task_lacks(self) -> None:
        assert "no field 'text_b'" in refusal(["text", "b", "label"], ["text"], named={"text_b": "b"})

    def test_many_columns_are_not_all_listed(self) -> None:
        assert "and 80 more" in refusal([f"column{number}" for number in range(100)], ["text"])


@pytest.mark.parametrize(
    ("columns", "fields", "options", "told"),
    [
        (["text", "text_b", "label"], ["text"], {}, ["'text_b'"]),
        (["text", "Head", "tail", "label"], ["text"], {}, ["'Head'", "'tail'"]),
        (["text", "text_b", "label"], PAIR, {}, []),
        (["text", "a", "text_b", "label"], PAIR, {"named": {"text_b": "a"}}, []),
        (["text", "text_b", "label"], ["text"], {"want_label": False}, []),
        (["text", "source", "label"], ["text"], {}, []),
    ],
)
def test_a_field_of_another_task_that_is_not_read_is_told(
    columns: list[str], fields: list[str], options: dict[str, Any], told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    guess_columns(columns, fields, **options)
    assert len(caplog.records) == bool(told)
    for word in told:
        assert word in caplog.text


class TestWithoutLabels:
    def test_no_label_is_looked_for(self) -> None:
        assert guess_columns(["text"], ["text"], want_label=False) == Columns({"text": "text"}, None)
        assert guess_columns(["text", "label"], ["text"], want_label=False) == Columns({"text": "text"}, None)

    def test_a_label_is_not_taken_for_a_text(self) -> None:
        found = guess_columns(["complaint", "category", "class"], ["text"], want_label=False)
        assert found == Columns({"text": "complaint"}, None)

    def test_any_single_column_is_the_text(self) -> None:
        assert guess_columns(["topic"], ["text"], want_label=False).fields == {"text": "topic"}

    def test_a_named_label_may_be_missing(self) -> None:
        assert guess_columns(["text"], ["text"], label="queue", want_label=False).label is None


class TestSpans:
    def test_they_ride_along(self) -> None:
        columns = ["text", "head", "tail", "relation", "head_span", "TAIL_SPAN", "entity_span"]
        assert guess_columns(columns, RELATION).fields == {
            "text": "text",
            "head": "head",
            "tail": "tail",
            "head_span": "head_span",
            "tail_span": "TAIL_SPAN",
        }

    def test_they_can_be_named_and_are_no_texts(self) -> None:
        columns = ["text", "place", "word", "label"]
        found = guess_columns(columns, ["text", "entity"], named={"entity_span": "place"})
        assert found.fields["entity_span"] == "place"
        assert "--text-field" in refusal(["text_b_span", "label"], ["text"])

    def test_a_marked_field_needs_no_column(self) -> None:
        found = guess_columns(["text", "entity_span", "label"], ["text", "entity"])
        assert found.fields == {"text": "text", "entity_span": "entity_span"}
