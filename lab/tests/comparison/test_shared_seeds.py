"""Methods that were run with other numbers of seeds: what was trained is compared seed by seed."""

from __future__ import annotations

import pytest

from maskmatch_lab.comparison import Comparison
from study_tools import cell


def compared(training_texts: int) -> Comparison:
    """One method with three seeds, another with the first of them alone."""
    right = {0: [True] * 90 + [False] * 10, 1: [True] * 10 + [False] * 90, 2: [True] * 10 + [False] * 90}
    cells = [cell("data", "often", "5 shots", own, seed, training_texts=training_texts) for seed, own in right.items()]
    cells.append(cell("data", "once", "5 shots", right[0], 0, training_texts=training_texts))
    return Comparison(cells, "often", resamples=200)


def test_what_was_trained_once_is_compared_with_its_own_seed() -> None:
    found = compared(training_texts=10)
    difference = found.difference("once", "often", "5 shots")
    assert difference is not None
    assert difference.difference == 0
    assert found.difference_by_seed("once", "often", "5 shots") == (0.0,)
    assert found.significance[0].result.difference == 0


def test_a_result_that_does_not_depend_on_the_seed_counts_for_all_seeds() -> None:
    found = compared(training_texts=0)
    difference = found.difference("once", "often", "5 shots")
    assert difference is not None
    assert difference.difference == pytest.approx(0.9 - (0.9 + 0.1 + 0.1) / 3)
    assert found.difference_by_seed("once", "often", "5 shots") == pytest.approx((0.0, 0.8, 0.8))
