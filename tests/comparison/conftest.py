"""Fixtures of the tests of comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from maskmatch.comparison import runner

if TYPE_CHECKING:
    from maskmatch.comparison import Cell


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the cells that really ran."""
    names: list[str] = []
    real = runner.run_plan

    def watched(plan: runner.Plan) -> Cell:
        names.append(plan.name)
        return real(plan)

    monkeypatch.setattr(runner, "run_plan", watched)
    return names
