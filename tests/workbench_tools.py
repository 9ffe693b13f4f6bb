"""What the tests of the workbench share: rows, and marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from maskmatch.workbench.records import Mark
from toy_data import TEXTS, TRUTH

if TYPE_CHECKING:
    from maskmatch.workbench.project import Project

ROWS = [{"id": number, "text": f"{TEXTS[number % len(TEXTS)]} {number}"} for number in range(120)]

BOTH = pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)

WHO = "ada"


def keys_of(project: Project) -> dict[str, int]:
    return {name: key for key, name in project.labels.names.items()}


def mark_all(project: Project, rows: range, reason: str = "chosen") -> None:
    keys = keys_of(project)
    marks = [Mark(row, WHO, (keys[TRUTH[row % len(TRUTH)]],), reason) for row in rows]
    project.store.mark(marks, "marked", who=WHO)
