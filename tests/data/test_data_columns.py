"""`guess_columns`: the columns it finds, and the errors for ambiguous tables."""

from __future__ import annotations

from typing import Any

import pytest

from maskmatch.data import Columns, guess_columns
from maskmatch.errors import MaskMatchError


def error_message(columns: list[str], fields: list[str], **options: object) -> str:
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
def test_obvious_names(columns: list[str], fields: list[str], found: list[str], label: str) -> None:
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
def test_last_column_left(columns: list[str], fields: list[str], found: list[str], label: str) -> None:
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
def test_ambiguous_columns_raise(columns: list[str], fields: list[str], option: str) -> None:
    message = error_message(columns, fields)
    assert option in message
    for column in columns:
        assert repr(column) in message


class TestNamedColumns:
    def test_named_columns_take_precedence(self) -> None:
        columns = ["text", "sentence", "label", "topic"]
        assert guess_columns(columns, ["text"], named={"text": "sentence"}, label="topic") == Columns(
            {"text": "sentence"}, "topic"
        )

    def test_naming_one_column_resolves_the_other(self) -> None:
        columns = ["sentence", "question", "label"]
        found = guess_columns(columns, PAIR, named={"text": "sentence"})
        assert found.fields == {"text": "sentence", "text_b": "question"}

    @pytest.mark.parametrize(
        ("options", "meant"), [({"named": {"text": "txt"}}, "'Text'"), ({"label": "lable"}, "'label'")]
    )
    def test_missing_column(self, options: dict[str, object], meant: str) -> None:
        message = error_message(["Text", "label"], ["text"], **options)
        assert f"(did you mean {meant}?)" in message
        assert "'Text', 'label'" in message

    def test_a_column_of_another_field_is_not_suggested(self) -> None:
        assert "did you mean" not in error_message(["Text", "label"], ["text"], label="txt")
        assert "did you mean" not in error_message(["text", "intent"], ["text"], named={"text": "intents"})

    def test_no_suggestion_without_a_similar_column(self) -> None:
        assert "did you mean" not in error_message(["text", "label"], ["text"], label="zzz")

    def test_same_column_for_two_fields(self) -> None:
        assert "'text'" in error_message(["text", "label"], ["text"], named={"text": "text"}, label="text")
        assert "'a'" in error_message(["a", "label"], PAIR, named={"text": "a", "text_b": "a"})

    def test_field_of_another_task(self) -> None:
        assert "no field 'text_b'" in error_message(["text", "b", "label"], ["text"], named={"text_b": "b"})

    def test_long_column_lists_are_shortened(self) -> None:
        assert "and 80 more" in error_message([f"column{number}" for number in range(100)], ["text"])


@pytest.mark.parametrize(
    ("columns", "fields", "options", "ignored"),
    [
        (["text", "text_b", "label"], ["text"], {}, ["'text_b'"]),
        (["text", "Head", "tail", "label"], ["text"], {}, ["'Head'", "'tail'"]),
        (["text", "text_b", "label"], PAIR, {}, []),
        (["text", "a", "text_b", "label"], PAIR, {"named": {"text_b": "a"}}, []),
        (["text", "text_b", "label"], ["text"], {"want_label": False}, []),
        (["text", "source", "label"], ["text"], {}, []),
    ],
)
def test_ignored_field_of_another_task_warns(
    columns: list[str], fields: list[str], options: dict[str, Any], ignored: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    guess_columns(columns, fields, **options)
    assert len(caplog.records) == bool(ignored)
    for word in ignored:
        assert word in caplog.text


class TestWithoutLabels:
    def test_label_column_is_ignored(self) -> None:
        assert guess_columns(["text"], ["text"], want_label=False) == Columns({"text": "text"}, None)
        assert guess_columns(["text", "label"], ["text"], want_label=False) == Columns({"text": "text"}, None)

    def test_label_column_is_not_read_as_text(self) -> None:
        found = guess_columns(["complaint", "category", "class"], ["text"], want_label=False)
        assert found == Columns({"text": "complaint"}, None)

    def test_single_column_is_the_text(self) -> None:
        assert guess_columns(["topic"], ["text"], want_label=False).fields == {"text": "topic"}

    def test_named_label_column_may_be_missing(self) -> None:
        assert guess_columns(["text"], ["text"], label="queue", want_label=False).label is None


class TestSpans:
    def test_span_columns_are_found(self) -> None:
        columns = ["text", "head", "tail", "relation", "head_span", "TAIL_SPAN", "entity_span"]
        assert guess_columns(columns, RELATION).fields == {
            "text": "text",
            "head": "head",
            "tail": "tail",
            "head_span": "head_span",
            "tail_span": "TAIL_SPAN",
        }

    def test_span_columns_can_be_named_and_are_not_texts(self) -> None:
        columns = ["text", "place", "word", "label"]
        found = guess_columns(columns, ["text", "entity"], named={"entity_span": "place"})
        assert found.fields["entity_span"] == "place"
        assert "--text-field" in error_message(["text_b_span", "label"], ["text"])

    def test_field_with_a_span_needs_no_column(self) -> None:
        found = guess_columns(["text", "entity_span", "label"], ["text", "entity"])
        assert found.fields == {"text": "text", "entity_span": "entity_span"}


@pytest.mark.parametrize(
    ("columns", "options", "warning"),
    [
        (["id", "text", "amount"], {}, "'amount' is read as the label, because no other column is left"),
        (
            ["id", "complaint", "comment"],
            {"want_label": False},
            "'comment' is read as the text, and 'complaint'",
        ),
        (
            ["title", "body", "date"],
            {"want_label": False},
            "'body' is read as the text, and 'title', 'date' are not read",
        ),
        (["id", "text", "amount"], {"want_label": False}, ""),
        (["what", "kind"], {"named": {"text": "what"}}, ""),
        (["id", "comment", "label"], {"want_label": False}, ""),
        (["complaint", "comment", "label"], {"named": {"text": "complaint"}}, ""),
    ],
)
def test_a_guess_between_columns_warns(
    columns: list[str], options: dict[str, Any], warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    guess_columns(columns, ["text"], **options)
    assert warning in caplog.text
    assert bool(caplog.records) == bool(warning)
