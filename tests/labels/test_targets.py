"""Converting the labels of rows to target arrays."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch.data import Examples
from maskmatch.errors import MaskMatchError
from maskmatch.labels import LabelSet
from maskmatch.labels.targets import (
    by_name,
    check_trainable,
    has_several,
    labels_in,
    plain_labels,
    row_labels,
    target_array,
)


class Color(Enum):
    RED = 2
    BLUE = 1


class Level(IntEnum):
    LOW = 1


def test_lists_sets_and_arrays_are_multi_label_and_a_tuple_is_one_label() -> None:
    assert has_several([["a"], ["b", "c"], []])
    assert has_several([{"a"}, frozenset("b"), np.array(["c"])])
    assert not has_several(["a", 1, ("b", "c"), None])
    assert not has_several([])
    with pytest.raises(MaskMatchError, match="1 of 3 rows have a list of labels"):
        has_several(["a", ["b"], "c"])


def test_labels_become_plain_python_values() -> None:
    plain = plain_labels(np.array([2, 1]), multi_label=False)
    assert plain == [2, 1]
    assert all(type(id_) is int for id_ in plain)
    assert plain_labels(["a", ("b", np.int64(1)), Level.LOW, True], False) == ["a", ("b", 1), 1, True]
    assert plain_labels([["a", "b"], ("c",), {"d"}, np.array(["e"]), [], "f"], True) == [
        ["a", "b"],
        ["c"],
        ["d"],
        ["e"],
        [],
        ["f"],
    ]


@pytest.mark.parametrize(
    ("labels", "several", "message"),
    [
        (["a", None], False, "Row 1: A label is missing"),
        (["a", "b", float("nan")], False, "Row 2: A label is missing"),
        ([""], False, "Row 0: The label '' is blank"),
        (["a", ["b"]], False, "Row 1: The label ['b'] cannot be an id"),
        (["a", np.array([1, 2])], False, "Row 1: The label array([1, 2]) cannot be an id"),
        ([["a"], ["b", None]], True, "Row 1: A label is missing"),
        ([["a"], [" "]], True, "Row 1: The label ' ' is blank"),
        ([1, Color.RED], False, "Row 1: The label <Color.RED: 2> is of type Color"),
    ],
)
def test_an_invalid_label_raises_with_its_row(labels: Any, several: bool, message: str) -> None:
    with pytest.raises(MaskMatchError) as caught:
        plain_labels(labels, several)
    assert message in str(caught.value)


def test_labels_are_sorted() -> None:
    assert labels_in(["b", "a", "b"], False) == ["a", "b"]
    assert labels_in([10, 9, 10], False) == [9, 10]
    assert labels_in([["b"], [], ["c", "a"]], True) == ["a", "b", "c"]
    assert labels_in([], False) == []


@given(
    st.lists(st.one_of(st.integers(), st.text(min_size=1), st.tuples(st.integers(), st.text()), st.sampled_from(Color)))
)
@settings(max_examples=80, deadline=None)
def test_the_order_of_labels_does_not_depend_on_the_order_of_rows(rows: list[Any]) -> None:
    found = labels_in(rows, False)
    assert found == labels_in(rows[::-1], False)
    assert len(found) == len(set(rows))
    assert set(found) == set(rows)


@pytest.mark.parametrize(
    ("rows", "labels", "several", "message"),
    [
        (["a", "a"], None, False, "fewer than two labels, only 'a'"),
        ([], None, False, "fewer than two labels;"),
        ([["a"], []], None, True, "fewer than two labels, only 'a'"),
        (["a", "b", "c", "c"], ["a", "b"], False, "'c' (2 rows); add them to its labels"),
        (list("abcdefg"), ["a", "b"], False, "'c' (1 rows), 'd' (1 rows), 'e' (1 rows) and 2 more"),
        ([["a", "x"], ["b", "x"]], ["a", "b"], True, "'x' (2 rows)"),
    ],
)
def test_untrainable_data_raises(rows: list[Any], labels: list[str] | None, several: bool, message: str) -> None:
    with pytest.raises(MaskMatchError) as caught:
        check_trainable(rows, None if labels is None else LabelSet.of(labels), several)
    assert message in str(caught.value)


def test_trainable_data_is_accepted() -> None:
    check_trainable(["a", "b"], None, False)
    check_trainable(["a", "b"], LabelSet.of(["b", "c", "a"]), False)
    check_trainable([["a", "b"], []], LabelSet.of(["b", "a"]), True)


def test_targets_are_positions() -> None:
    targets = target_array(["b", "a", "b"], LabelSet.of(["a", "b", "c"]), False)
    assert targets.tolist() == [1, 0, 1]
    assert targets.dtype == np.int64
    with pytest.raises(MaskMatchError, match="There is no label 'x'"):
        target_array(["x"], LabelSet.of(["a", "b"]), False)


def test_multi_label_targets_are_a_0_1_matrix() -> None:
    targets = target_array([["c", "a"], [], ["b", "unknown"]], LabelSet.of(["a", "b", "c"]), True)
    assert targets.tolist() == [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert targets.dtype == np.float32


class TestRowLabels:
    @pytest.mark.parametrize("known", [[3, 5], ["3", "5"], {3: "refund", 5: "fee"}])
    def test_ids_match_in_another_spelling(self, known: Any) -> None:
        labels = LabelSet.of(known)
        first, second = labels
        for rows in ([3, 5], ["3", "5"], [np.int64(3), np.str_("5")]):
            assert row_labels(Examples(["a", "b"], rows), labels, False) == [first, second]
            assert row_labels(Examples(["a", "b"], [rows, []]), labels, True) == [[first, second], []]

    def test_unknown_labels_stay_unchanged(self) -> None:
        assert row_labels(Examples(["a", "b"], [7, "x"]), LabelSet.of([3, 5]), False) == [7, "x"]
        assert row_labels(Examples(["a", "b"], ["3", 3]), None, False) == ["3", 3]

    def test_a_dataset_has_names_for_numbers(self) -> None:
        examples = Examples(["a", "b"], [1, 0], label_names={0: "refund", 1: "fee"})
        assert row_labels(examples, LabelSet.of(["refund", "fee"]), False) == ["fee", "refund"]
        assert row_labels(examples, LabelSet.of(["0", "1"]), False) == ["1", "0"]


class TestByName:
    def test_numbers_become_the_names_that_the_classifier_has(self) -> None:
        known = LabelSet.of(["refund", "card lost"])
        assert by_name([1, 0], {0: "refund", 1: "card lost"}, known) == ["card lost", "refund"]
        assert by_name([[0, 1], []], {0: "refund", 1: "card lost"}, known) == [["refund", "card lost"], []]

    def test_numbers_stay_if_the_classifier_has_numbers_or_no_labels(self) -> None:
        names = {0: "refund", 1: "card lost"}
        assert by_name([1, 0], names, LabelSet.of(names)) == [1, 0]
        assert by_name([1, 0], names, None) == [1, 0]
        assert by_name([1, 0], None, LabelSet.of(["refund"])) == [1, 0]
