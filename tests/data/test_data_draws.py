"""What the draws promise, for whatever labels there are."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch.data import draw_fraction, draw_shots
from maskmatch.errors import MaskMatchError

SINGLE = st.lists(st.sampled_from(["a", "b", "c", 1, 2, ("x", 1)]), min_size=1, max_size=40)
SEVERAL = st.lists(
    st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3) | st.sampled_from("abcdef"),
    min_size=1,
    max_size=30,
)
SEEDS = st.integers(0, 1000)
FRACTIONS = st.floats(0.01, 1.0)


LIGHT = settings(max_examples=60, deadline=None)
PINNED = [7, 53, 69, 79, 90]


def as_list(label: Any) -> list[Any]:
    return list(dict.fromkeys(label)) if isinstance(label, list) else [label]


def counted(labels: list[Any], rows: list[int] | range) -> Counter[Any]:
    return Counter(label for row in rows for label in as_list(labels[row]))


class TestShots:
    @LIGHT
    @given(SINGLE, st.integers(1, 12), SEEDS)
    def test_each_label_gets_its_shots(self, labels: list[Any], shots: int, seed: int) -> None:
        rows = draw_shots(labels, shots, seed)
        assert rows == sorted(set(rows))
        there_are = counted(labels, range(len(labels)))
        assert counted(labels, rows) == {label: min(shots, there_are[label]) for label in there_are}

    @LIGHT
    @given(SEVERAL, st.integers(1, 8), SEEDS)
    def test_rows_with_several_labels(self, labels: list[Any], shots: int, seed: int) -> None:
        rows = draw_shots(labels, shots, seed)
        assert rows == sorted(set(rows))
        there_are, drawn = counted(labels, range(len(labels))), counted(labels, rows)
        assert all(drawn[label] >= min(shots, there_are[label]) for label in there_are)

    @LIGHT
    @given(SEVERAL, st.integers(1, 8), st.integers(0, 8), SEEDS)
    def test_a_smaller_draw_is_part_of_a_larger(self, labels: list[Any], shots: int, more: int, seed: int) -> None:
        assert set(draw_shots(labels, shots, seed)) <= set(draw_shots(labels, shots + more, seed))

    def test_the_rarest_label_comes_first(self) -> None:
        labels = [["common", "rare"], *["common"] * 20]
        assert all(draw_shots(labels, 1, seed) == [0] for seed in range(20))

    @pytest.mark.parametrize("shots", [0, -1, 1.5, "2", True, None])
    def test_shots_that_cannot_be(self, shots: Any) -> None:
        with pytest.raises(MaskMatchError, match="number of shots"):
            draw_shots(["a"], shots, 0)


class TestFractions:
    @LIGHT
    @given(SINGLE, FRACTIONS, SEEDS)
    def test_each_label_gets_its_share(self, labels: list[Any], fraction: float, seed: int) -> None:
        rows = draw_fraction(labels, fraction, seed)
        there_are, drawn = counted(labels, range(len(labels))), counted(labels, rows)
        assert rows == sorted(set(rows))
        for label, number in there_are.items():
            assert drawn[label] >= 1
            assert drawn[label] == 1 or abs(drawn[label] - fraction * number) <= 0.5 + 1e-9

    @LIGHT
    @given(SEVERAL, FRACTIONS, FRACTIONS, SEEDS)
    def test_a_smaller_draw_is_part_of_a_larger(self, labels: list[Any], one: float, other: float, seed: int) -> None:
        small, large = sorted([one, other])
        assert set(draw_fraction(labels, small, seed)) <= set(draw_fraction(labels, large, seed))

    @LIGHT
    @given(SEVERAL, SEEDS)
    def test_the_whole(self, labels: list[Any], seed: int) -> None:
        assert draw_fraction(labels, 1, seed) == list(range(len(labels)))

    def test_a_tenth(self) -> None:
        assert len(draw_fraction(["a"] * 1000 + ["b"] * 500 + ["c"] * 3, 0.1, 0)) == 151

    @pytest.mark.parametrize("fraction", [0, -0.1, 1.01, float("nan"), float("inf"), True, "0.5", None])
    def test_fractions_that_cannot_be(self, fraction: Any) -> None:
        with pytest.raises(MaskMatchError, match="fraction"):
            draw_fraction(["a"], fraction, 0)


class TestBoth:
    @LIGHT
    @given(SINGLE, SEEDS, st.integers(1, 5))
    def test_other_labels_make_no_difference(self, labels: list[Any], seed: int, shots: int) -> None:
        alone = [label for label in labels if label == "a"]
        if not alone:
            return
        for draw, size in ((draw_shots, shots), (draw_fraction, 0.3)):
            own_rows = [row for row, label in enumerate(labels) if label == "a"]
            among_others = [own_rows.index(row) for row in draw(labels, size, seed) if row in own_rows]
            assert draw(alone, size, seed) == among_others

    def test_seeds_and_labels_draw_differently(self) -> None:
        assert len({tuple(draw_shots(["a"] * 100, 5, seed)) for seed in range(20)}) == 20
        assert draw_shots(["a"] * 100, 5, 0) != draw_shots(["b"] * 100, 5, 0)

    def test_every_row_has_a_chance(self) -> None:
        drawn = Counter(row for seed in range(2000) for row in draw_shots(["a"] * 10, 1, seed))
        assert set(drawn) == set(range(10))
        assert max(drawn.values()) < 2 * min(drawn.values())

    def test_equal_numbers_are_one_label(self) -> None:
        numpy = pytest.importorskip("numpy")
        expected = draw_shots([1] * 50, 5, 0)
        for same in (1.0, True, numpy.int64(1), numpy.float32(1)):
            assert draw_shots([same] * 50, 5, 0) == expected
        assert draw_shots(numpy.array([1] * 50), 5, 0) == expected
        assert draw_shots([numpy.str_("a")] * 50, 5, 0) == draw_shots(["a"] * 50, 5, 0)

    def test_the_draw_is_the_same_in_every_process(self) -> None:
        program = "from maskmatch.data import draw_shots; print(draw_shots(['a', 'b', ('c', 1), 'a', 'b'] * 20, 3, 7))"
        outputs = {
            subprocess.run(
                [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
            ).stdout
            for seed in ("1", "2")
        }
        assert len(outputs) == 1
        # These numbers are in people's results: a change of them is a change of what a seed means.
        assert draw_shots(["a"] * 100, 5, 0) == PINNED

    @pytest.mark.parametrize("labels", [[], [[]], [[], []]])
    def test_no_labels(self, labels: list[Any]) -> None:
        for draw in (lambda: draw_shots(labels, 1, 0), lambda: draw_fraction(labels, 0.5, 0)):
            with pytest.raises(MaskMatchError, match="no labels"):
                draw()

    def test_labels_that_cannot_be_compared(self) -> None:
        for label in ({"a": 1}, [["a"]]):
            with pytest.raises(MaskMatchError, match="names or numbers"):
                draw_shots([label], 1, 0)
        with pytest.raises(MaskMatchError, match="NaN"):
            draw_shots([float("nan")], 1, 0)

    @pytest.mark.parametrize("seed", [None, "1", 1.5])
    def test_seeds_that_are_no_numbers(self, seed: Any) -> None:
        with pytest.raises(MaskMatchError, match="seed"):
            draw_shots(["a"], 1, seed)


def test_rows_without_a_label_are_drawn_like_those_of_a_label() -> None:
    labels: list[Any] = [["a"], [], ["b"], [], ["a", "b"], []]
    drawn = draw_shots(labels, shots=1, seed=0)
    assert sum(not labels[row] for row in drawn) == 1
    assert draw_fraction(labels, 1.0, seed=0) == list(range(6))
    with pytest.raises(MaskMatchError, match="no labels to draw"):
        draw_shots([[], []], shots=1, seed=0)
