"""Load label sets with texts from a folder, and the errors for invalid files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maskmatch.data import LabelledTexts, load_label_sets
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from pathlib import Path

GOOD: dict[str, Any] = {
    "kind": "intent",
    "labels": {"refund": ["Where is my money?", "Give it back."], "card lost": ["It is gone."]},
    "other_names": {"refund": ["money back", "reimbursement"]},
}


def write(folder: Path, name: str, data: Any) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return file


def error_message(folder: Path, data: Any) -> str:
    write(folder, "bad.json", data)
    with pytest.raises(MaskMatchError) as caught:
        load_label_sets(folder)
    assert "bad" in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_load_one_file(tmp_path: Path) -> None:
    write(tmp_path, "bank.json", GOOD)
    assert load_label_sets(str(tmp_path)) == [
        LabelledTexts(
            "bank",
            "intent",
            (("refund", "money back", "reimbursement"), ("card lost",)),
            (("Where is my money?", "Give it back."), ("It is gone.",)),
        )
    ]


def test_files_are_sorted_by_path(tmp_path: Path) -> None:
    for name in ("z/a.json", "b.json", "a/b/c.json"):
        write(tmp_path, name, {**GOOD, "about": "further entries are for the reader"})
    write(tmp_path, "README.md", "no set")
    assert [each.name for each in load_label_sets(tmp_path)] == ["a/b/c", "b", "z/a"]


def test_dict_texts_are_unchanged(tmp_path: Path) -> None:
    pairs = [{"text": "Rain.", "text_b": "Water."}, {"text": "Sun.", "text_b": "Light."}]
    write(tmp_path, "pairs.json", {"kind": "nli", "labels": {"yes": pairs[:1], "no": pairs[1:]}})
    assert load_label_sets(tmp_path)[0].texts == ((pairs[0],), (pairs[1],))


def test_folder_without_label_sets(tmp_path: Path) -> None:
    file = write(tmp_path, "notes.txt", "x")
    for folder in (tmp_path, tmp_path / "nowhere", file):
        with pytest.raises(MaskMatchError) as caught:
            load_label_sets(folder)
        assert str(caught.value) == f"There are no label sets (JSON files) in {folder}."


@pytest.mark.parametrize("data", ["", "{", "[" * 100_000, "3", "null", "[]", "{}", '{"kind": "topic"}'])
def test_not_a_label_set(tmp_path: Path, data: str) -> None:
    assert "label set" in error_message(tmp_path, data)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": 3}, "not a label set"),
        ({"labels": ["refund", "card lost"]}, "not a label set"),
        ({"labels": {"refund": ["x"]}, "other_names": {}}, "fewer than two labels"),
        ({"labels": {"refund": ["x"], "card lost": []}}, "no texts for the label 'card lost'"),
        ({"labels": {"refund": ["x"], "card lost": "gone"}}, "a list of texts"),
        ({"labels": {"refund": ["x"], "card lost": 3}}, "a list of texts"),
        ({"labels": {"refund": ["x"], "card lost": None}}, "a list of texts"),
        ({"labels": {"refund": ["x"], " ": ["y"]}}, "a label without a name"),
        ({"labels": {"refund": ["x"], "half \ud800": ["y"]}}, "a label without a name"),
        ({"labels": {"refund": ["x"], "card lost": ["  "]}}, "a text of the label 'card lost'"),
        ({"labels": {"refund": ["x"], "card lost": [3]}}, "a text of the label 'card lost'"),
        ({"labels": {"refund": ["x"], "card lost": [{}]}}, "a text of the label 'card lost'"),
        ({"labels": {"refund": ["x"], "card lost": [{"text": " "}]}}, "a text of the label 'card lost'"),
        ({"other_names": ["money back"]}, "other_names"),
        ({"other_names": None}, "other_names"),
        ({"other_names": {"refund": "money back"}}, "a list of texts, or of other names"),
        ({"other_names": {"refund": [3]}}, "a label without a name"),
        ({"other_names": {"refund": [""]}}, "a label without a name"),
        ({"other_names": {"refnud": ["money back"]}}, "each name is a label"),
    ],
)
def test_invalid_label_set(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    data = {**GOOD, **change}
    if "labels" in change and "refund" not in change["labels"]:
        data["other_names"] = {}
    assert words in error_message(tmp_path, data)


WORDS = st.text(max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
NEARLY = st.fixed_dictionaries(
    {"kind": WORDS | JSON, "labels": st.dictionaries(WORDS, st.lists(WORDS | JSON, max_size=3) | JSON, max_size=4)},
    optional={"other_names": st.dictionaries(WORDS, st.lists(WORDS, max_size=2) | JSON, max_size=2) | JSON},
)


@given(JSON | NEARLY)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_loads_or_raises(tmp_path: Path, data: Any) -> None:
    write(tmp_path, "some.json", data)
    try:
        (labelled,) = load_label_sets(tmp_path)
    except MaskMatchError:
        return
    assert [names[0] for names in labelled.names] == list(data["labels"])
    assert list(labelled.texts) == [tuple(texts) for texts in data["labels"].values()]
    assert len(labelled.names) >= 2
    assert all(text.strip() if isinstance(text, str) else text for texts in labelled.texts for text in texts)


class TestRows:
    def test_rows_are_grouped_by_label(self) -> None:
        found = LabelledTexts.of_rows("rows", "topic", ["a", "b", "c"], ["x", "y", "x"])
        assert found == LabelledTexts("rows", "topic", (("x",), ("y",)), (("a", "c"), ("b",)))

    def test_multi_label_row_is_a_text_of_each_label(self) -> None:
        found = LabelledTexts.of_rows("rows", "topic", ["a", "b", "c"], [["x", "y"], [], ("y",)])
        assert found == LabelledTexts("rows", "topic", (("x",), ("y",)), (("a",), ("a", "c")))

    def test_integer_labels_become_strings(self) -> None:
        assert LabelledTexts.of_rows("rows", "topic", ["a", "b"], [3, 5]).names == (("3",), ("5",))

    def test_single_label_raises(self) -> None:
        with pytest.raises(MaskMatchError, match="The label set rows has fewer than two labels"):
            LabelledTexts.of_rows("rows", "topic", ["a", "b"], ["x", "x"])

    def test_different_numbers_of_names_and_texts(self) -> None:
        with pytest.raises(ValueError, match="The label set rows has names for 2 labels, but texts for 1"):
            LabelledTexts("rows", "topic", (("x",), ("y",)), (("a",),))
