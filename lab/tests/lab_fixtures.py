"""What tests of the lab share; the tiny encoders and the toy data are those of the product's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from maskmatch_lab.comparison import Cell
    from maskmatch_lab.comparison.runner import Plan


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the cells of comparisons that really ran."""
    from maskmatch_lab.comparison import runner

    names: list[str] = []
    real = runner.run_plan

    def watched(plan: Plan) -> Cell:
        names.append(plan.name)
        return real(plan)

    monkeypatch.setattr(runner, "run_plan", watched)
    return names
