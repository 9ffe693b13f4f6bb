"""Means, and paired tests: checked by hand, and by what has to hold for all answers."""

from __future__ import annotations

import doctest
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch import MaskMatchError
from maskmatch_lab.comparison import paired_bootstrap, provenance, regimes, splits, spread, statistics, text

answers = st.integers(1, 4).flatmap(
    lambda seeds: st.integers(1, 12).flatmap(
        lambda items: st.tuples(
            *[st.lists(st.lists(st.booleans(), min_size=items, max_size=items), min_size=seeds, max_size=seeds)] * 2
        )
    )
)


@pytest.mark.parametrize("module", [provenance, regimes, splits, statistics, text])
def test_the_examples_in_docstrings_run(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.failed == 0
    assert result.attempted > 0


def test_a_mean_and_its_spread() -> None:
    assert spread([1.0, 2.0, 3.0, 4.0]).mean == 2.5
    assert spread([1.0, 2.0, 3.0, 4.0]).sd == pytest.approx((5 / 3) ** 0.5)
    assert spread([0.5]).sd is None
    assert str(spread([0.5])) == "0.500"
    with pytest.raises(MaskMatchError, match="no values"):
        spread([])


def test_checked_by_hand() -> None:
    # Two items, one seed: the first method has both right, the second one of them. The differences are 1 and 0; a
    # draw of two items has the mean 0, 0.5 or 1 with chances 1/4, 1/2, 1/4. As far from 0.5 as that lies from 0
    # are the means 0 and 1: half of the draws.
    result = paired_bootstrap([[1, 1]], [[1, 0]], resamples=100_000)
    assert result.difference == 0.5
    assert result.p == pytest.approx(0.5, abs=0.01)
    assert (result.low, result.high) == (0.0, 1.0)
    assert result.items == 2


def test_all_draws_of_a_small_case() -> None:
    """The resampled p is the one that listing all draws of items gives."""
    first, second = np.array([[1, 1, 0, 1], [1, 0, 0, 1]]), np.array([[0, 1, 0, 0], [1, 0, 1, 0]])
    differences = first.mean(axis=0) - second.mean(axis=0)
    observed = differences.mean()
    means = np.array([differences[list(draw)].mean() for draw in product(range(4), repeat=4)])
    exact = np.mean(np.abs(means - observed) >= abs(observed) - 1e-12)
    result = paired_bootstrap(first, second, resamples=200_000)
    assert result.difference == pytest.approx(observed)
    assert result.p == pytest.approx(exact, abs=0.005)


@given(answers)
@settings(max_examples=200, deadline=None)
def test_turned_round_it_says_the_same(both: tuple[list[list[bool]], list[list[bool]]]) -> None:
    one, other = paired_bootstrap(*both, resamples=200), paired_bootstrap(*reversed(both), resamples=200)
    assert one.difference == pytest.approx(-other.difference)
    assert one.p == other.p
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
    assert one.low <= one.high
    assert 0 < one.p <= 1


def test_two_that_mirror_each_other_have_an_interval_around_zero() -> None:
    result = paired_bootstrap([[1, 1, 0, 0, 1]], [[0, 1, 1, 0, 1]], resamples=200)
    assert (result.difference, result.p) == (0, 1)
    assert result.low == -result.high < 0


@given(answers)
@settings(max_examples=25, deadline=None)
def test_a_method_does_not_differ_from_itself(both: tuple[list[list[bool]], list[list[bool]]]) -> None:
    result = paired_bootstrap(both[0], both[0], resamples=200)
    assert (result.difference, result.low, result.high, result.p) == (0, 0, 0, 1)


def test_a_clear_lead_is_no_chance_and_a_narrow_one_may_be() -> None:
    rng = np.random.default_rng(0)
    good, bad = rng.random((3, 500)) < 0.9, rng.random((3, 500)) < 0.6
    assert paired_bootstrap(good, bad).p < 0.001
    narrow = good.copy()
    narrow[0, :1] = ~narrow[0, :1]
    assert paired_bootstrap(good, narrow).p > 0.2
    assert paired_bootstrap(good, bad) == paired_bootstrap(good, bad)
    assert paired_bootstrap(good, bad, seed=1).difference == paired_bootstrap(good, bad).difference


def test_seeds_of_one_item_do_not_count_as_items() -> None:
    """The same answers under more seeds are no more evidence."""
    first, second = np.array([[1, 1, 1, 0, 1, 1, 0, 1]]), np.array([[0, 1, 1, 0, 1, 0, 1, 0]])
    once, often = paired_bootstrap(first, second), paired_bootstrap(np.repeat(first, 5, 0), np.repeat(second, 5, 0))
    assert often.p == pytest.approx(once.p)
    # One method may have been run once and the other with several seeds.
    assert paired_bootstrap(first, np.repeat(second, 3, 0)).p == pytest.approx(once.p)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(MaskMatchError, match="3 items and the second on 2"):
        paired_bootstrap([[1, 0, 1]], [[1, 0]])
    with pytest.raises(MaskMatchError, match="shape"):
        paired_bootstrap([1, 0], [[1, 0]])
    with pytest.raises(MaskMatchError, match="must be 1"):
        paired_bootstrap([[0.5, 1]], [[1, 0]])
    with pytest.raises(MaskMatchError, match="resamples"):
        paired_bootstrap([[1]], [[1]], resamples=3)
