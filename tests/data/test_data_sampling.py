"""Properties of sampling rows per label, for arbitrary labels."""

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


def count_labels(labels: list[Any], rows: list[int] | range) -> Counter[Any]:
    return Counter(label for row in rows for label in as_list(labels[row]))


class TestShots:
    @LIGHT
    @given(SINGLE, st.integers(1, 12), SEEDS)
    def test_shots_per_label(self, labels: list[Any], shots: int, seed: int) -> None:
        rows = draw_shots(labels, shots, seed)
        assert rows == sorted(set(rows))
        available = count_labels(labels, range(len(labels)))
        assert count_labels(labels, rows) == {label: min(shots, available[label]) for label in available}

    @LIGHT
    @given(SEVERAL, st.integers(1, 8), SEEDS)
    def test_multi_label_rows(self, labels: list[Any], shots: int, seed: int) -> None:
        rows = draw_shots(labels, shots, seed)
        assert rows == sorted(set(rows))
        available, sampled = count_labels(labels, range(len(labels))), count_labels(labels, rows)
        assert all(sampled[label] >= min(shots, available[label]) for label in available)

    @LIGHT
    @given(SEVERAL, st.integers(1, 8), st.integers(0, 8), SEEDS)
    def test_smaller_sample_is_a_subset(self, labels: list[Any], shots: int, more: int, seed: int) -> None:
        assert set(draw_shots(labels, shots, seed)) <= set(draw_shots(labels, shots + more, seed))

    def test_rarest_label_comes_first(self) -> None:
        labels = [["common", "rare"], *["common"] * 20]
        assert all(draw_shots(labels, 1, seed) == [0] for seed in range(20))

    @pytest.mark.parametrize("shots", [0, -1, 1.5, "2", True, None])
    def test_invalid_shots(self, shots: Any) -> None:
        with pytest.raises(MaskMatchError, match="number of shots"):
            draw_shots(["a"], shots, 0)


class TestFractions:
    @LIGHT
    @given(SINGLE, FRACTIONS, SEEDS)
    def test_fraction_per_label(self, labels: list[Any], fraction: float, seed: int) -> None:
        rows = draw_fraction(labels, fraction, seed)
        available, sampled = count_labels(labels, range(len(labels))), count_labels(labels, rows)
        assert rows == sorted(set(rows))
        for label, number in available.items():
            assert sampled[label] >= 1
            assert sampled[label] == 1 or abs(sampled[label] - fraction * number) <= 0.5 + 1e-9

    @LIGHT
    @given(SEVERAL, FRACTIONS, FRACTIONS, SEEDS)
    def test_smaller_sample_is_a_subset(self, labels: list[Any], one: float, other: float, seed: int) -> None:
        small, large = sorted([one, other])
        assert set(draw_fraction(labels, small, seed)) <= set(draw_fraction(labels, large, seed))

    @LIGHT
    @given(SEVERAL, SEEDS)
    def test_fraction_of_one_is_everything(self, labels: list[Any], seed: int) -> None:
        assert draw_fraction(labels, 1, seed) == list(range(len(labels)))

    def test_ten_percent(self) -> None:
        assert len(draw_fraction(["a"] * 1000 + ["b"] * 500 + ["c"] * 3, 0.1, 0)) == 151

    @pytest.mark.parametrize("fraction", [0, -0.1, 1.01, float("nan"), float("inf"), True, "0.5", None])
    def test_invalid_fractions(self, fraction: Any) -> None:
        with pytest.raises(MaskMatchError, match="fraction"):
            draw_fraction(["a"], fraction, 0)


class TestShotsAndFractions:
    @LIGHT
    @given(SINGLE, SEEDS, st.integers(1, 5))
    def test_sample_of_a_label_is_independent_of_other_labels(self, labels: list[Any], seed: int, shots: int) -> None:
        alone = [label for label in labels if label == "a"]
        if not alone:
            return
        for draw, size in ((draw_shots, shots), (draw_fraction, 0.3)):
            own_rows = [row for row, label in enumerate(labels) if label == "a"]
            among_others = [own_rows.index(row) for row in draw(labels, size, seed) if row in own_rows]
            assert draw(alone, size, seed) == among_others

    def test_sample_depends_on_seed_and_label(self) -> None:
        assert len({tuple(draw_shots(["a"] * 100, 5, seed)) for seed in range(20)}) == 20
        assert draw_shots(["a"] * 100, 5, 0) != draw_shots(["b"] * 100, 5, 0)

    def test_rows_are_sampled_uniformly(self) -> None:
        sampled = Counter(row for seed in range(2000) for row in draw_shots(["a"] * 10, 1, seed))
        assert set(sampled) == set(range(10))
        assert max(sampled.values()) < 2 * min(sampled.values())

    def test_equal_numbers_are_the_same_label(self) -> None:
        numpy = pytest.importorskip("numpy")
        expected = draw_shots([1] * 50, 5, 0)
        for same in (1.0, True, numpy.int64(1), numpy.float32(1)):
            assert draw_shots([same] * 50, 5, 0) == expected
        assert draw_shots(numpy.array([1] * 50), 5, 0) == expected
        assert draw_shots([numpy.str_("a")] * 50, 5, 0) == draw_shots(["a"] * 50, 5, 0)

    def test_sample_is_the_same_in_every_process(self) -> None:
        program = "from maskmatch.data import draw_shots; print(draw_shots(['a', 'b', ('c', 1), 'a', 'b'] * 20, 3, 7))"
        outputs = {
            subprocess.run(
                [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
            ).stdout
            for seed in ("1", "2")
        }
        assert len(outputs) == 1
        # Published results depend on these numbers: changing them changes the meaning of a seed.
        assert draw_shots(["a"] * 100, 5, 0) == PINNED

    @pytest.mark.parametrize("labels", [[], [[]], [[], []]])
    def test_no_labels(self, labels: list[Any]) -> None:
        for draw in (lambda: draw_shots(labels, 1, 0), lambda: draw_fraction(labels, 0.5, 0)):
            with pytest.raises(MaskMatchError, match="no labels to sample"):
                draw()

    def test_invalid_labels(self) -> None:
        for label in ({"a": 1}, [["a"]]):
            with pytest.raises(MaskMatchError, match="names or numbers"):
                draw_shots([label], 1, 0)
        for label in (float("nan"), None):
            with pytest.raises(MaskMatchError, match="A label is missing"):
                draw_shots([label], 1, 0)

    @pytest.mark.parametrize("seed", [None, "1", 1.5])
    def test_invalid_seeds(self, seed: Any) -> None:
        with pytest.raises(MaskMatchError, match="seed"):
            draw_shots(["a"], 1, seed)


def test_rows_without_labels_are_sampled_like_a_label() -> None:
    labels: list[Any] = [["a"], [], ["b"], [], ["a", "b"], []]
    sampled = draw_shots(labels, shots=1, seed=0)
    assert sum(not labels[row] for row in sampled) == 1
    assert draw_fraction(labels, 1.0, seed=0) == list(range(6))
    with pytest.raises(MaskMatchError, match="no labels to sample"):
        draw_shots([[], []], shots=1, seed=0)
