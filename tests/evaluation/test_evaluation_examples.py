from __future__ import annotations

import doctest

import pytest

from maskmatch.evaluation import display, metrics, report, task_metrics


@pytest.mark.parametrize("module", [display, metrics, report, task_metrics])
def test_the_examples_in_docstrings_run(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0
