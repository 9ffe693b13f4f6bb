"""Several labels in one cell: what is read, and what is asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskmatch.data import load_examples, write_table
from maskmatch.data.label_cells import read_label_cells
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from pathlib import Path

LABELS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="|"), min_size=1, max_size=6).filter(
    lambda text: text.strip() == text and not text.startswith("[")
)
ROWS = st.lists(st.lists(LABELS, min_size=1, max_size=3, unique=True), min_size=1, max_size=5)


def read(*cells: Any, several: bool = True, separator: str | None = None) -> list[Any]:
    return read_label_cells(cells, multi_label=several, separator=separator)


@given(rows=ROWS)
def test_json_lists_are_read_back(rows: list[list[str]]) -> None:
    assert read(*map(json.dumps, rows)) == rows
    assert read(*map(repr, rows)) == rows  # as pandas writes lists


@given(rows=ROWS)
def test_a_named_separator_is_used(rows: list[list[str]]) -> None:
    for several in (True, False):
        assert read(*("| ".join(row) for row in rows), several=several, separator="|") == rows


def test_a_bar_is_found_where_it_is_clear() -> None:
    assert read("late|broken", "late", "broken") == [["late", "broken"], ["late"], ["broken"]]
    assert read("late|broken", "broken | late", "wrong") == [["late", "broken"], ["broken", "late"], ["wrong"]]
    assert read("late", "broken") == [["late"], ["broken"]]
    assert read("late", None, ["a", "b"], 3) == [["late"], None, ["a", "b"], [3]]
    assert read("[]", "late|broken", '["late", "broken"]') == [[], ["late", "broken"], ["late", "broken"]]


@pytest.mark.parametrize(
    "cells", [("late|broken", "x"), ("a|b", "c|d"), ("late;broken", "late", "broken"), ("a, b", "a", "b")]
)
def test_what_is_not_clear_is_asked(cells: tuple[str, ...]) -> None:
    with pytest.raises(MaskMatchError, match="may be one label, or the labels") as caught:
        read(*cells)
    assert "--label-separator none" in str(caught.value)
    assert read(*cells, separator="none") == list(cells)
    (separator,) = {mark for mark in "|;," if mark in cells[0]}
    assert len(read(*cells, separator=separator)[0]) == 2


def test_names_with_commas_are_names() -> None:
    cells = ("Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)", "Other")
    assert read(*cells) == [[cell] for cell in cells]


def test_one_label_per_text(caplog: pytest.LogCaptureFixture) -> None:
    assert read("a", "b|c", several=False) == ["a", "b|c"]
    assert not caplog.records
    assert read("a", "b", "a|b", several=False) == ["a", "b", "a|b"]
    assert "'a|b' is read as one label" in caplog.text
    with pytest.raises(MaskMatchError, match="2 of 2 labels look like lists"):
        read('["a", "b"]', "['c']", several=False)
    assert read('["a"]', several=False, separator="none") == ['["a"]']
    assert read('["a"]', "b", "c", several=False) == ['["a"]', "b", "c"]


def test_wrong_separators(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(MaskMatchError, match="label separator is ' '"):
        read("a", separator=" ")
    assert read("a", "b", separator=";") == [["a"], ["b"]]
    assert "No label has the separator ';'" in caplog.text


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_files(ending: str, tmp_path: Path) -> None:
    rows = [{"text": "x", "label": "a|b"}, {"text": "y", "label": "a"}, {"text": "z", "label": '["b"]'}]
    path = write_table(tmp_path / f"rows.{ending}", ["text", "label"], rows)
    assert load_examples(path, multi_label=True).labels == [["a", "b"], ["a"], ["b"]]
    assert load_examples(path, label_separator="|").labels == [["a", "b"], ["a"], ["b"]]
    assert load_examples(path, label_separator="none").labels == ["a|b", "a", '["b"]']
