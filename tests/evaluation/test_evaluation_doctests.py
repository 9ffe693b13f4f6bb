"""The doctests of the evaluation package."""

from __future__ import annotations

import doctest

import pytest

from maskmatch.evaluation import calibration, display, evaluate, metrics, scores


@pytest.mark.parametrize("module", [calibration, display, evaluate, metrics, scores])
def test_doctests(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0
