"""The figures of docs/results/real-world.md, from lab/results/real_world.json."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from maskmatch.evaluation.display import counted
from maskmatch_lab.benchmarks.markdown import origin, results_of, table
from maskmatch_lab.benchmarks.real_world import FEW_ROWS, LONG, MANY_ROWS, SKEWED, WAYS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOT_YET = "No results yet."


def figures() -> str:
    """All blocks of the page."""
    results = results_of("real_world")
    if results is None:
        return NOT_YET
    blocks = [block for block in (_skewed(results["cells"]), _long(results["cells"])) if block]
    return "\n\n".join([*blocks, origin(results)])


def _mean(cells: Sequence[Mapping[str, Any]], figure: str, **key: Any) -> str:
    found = [cell[figure] for cell in cells if key.items() <= cell.items()]
    return f"{fmean(found):.3f}" if found else ""


def _draws(cells: Sequence[Mapping[str, Any]]) -> str:
    return counted(len({cell["seed"] for cell in cells}), "draw")


def _skewed(cells: Sequence[Mapping[str, Any]]) -> str:
    own = [cell for cell in cells if cell["part"] == "skewed"]
    few = f"{FEW_ROWS} rows of each label"
    shown = {"names": "names alone", few: few, **{way: f"skewed rows: {way}" for way in WAYS}}
    columns = [{"dataset": name} for name in SKEWED]
    rows = _rows(own, "macro_f1", {name: {"way": way} for way, name in shown.items()}, columns)
    if not rows:
        return ""
    return "\n\n".join(
        [
            "## Skewed labels",
            f"{MANY_ROWS} rows of one label (or as many as it has), {FEW_ROWS} of each other; macro-F1, mean of "
            f"{_draws(own)}.",
            table(("trained on", *(name for name in SKEWED if any(cell["dataset"] == name for cell in own))), rows),
        ]
    )


def _long(cells: Sequence[Mapping[str, Any]]) -> str:
    own = [cell for cell in cells if cell["part"] == "long"]
    columns = [
        {"dataset": texts, "regime": regime} for texts in ("posts", "joined posts") for regime in ("names", "5 shots")
    ]
    rows = _rows(own, "accuracy", {way: {"way": way} for way in LONG}, columns)
    if not rows:
        return ""
    heads = [", ".join(column.values()) for column in columns if any(column.items() <= cell.items() for cell in own)]
    return "\n\n".join(
        [
            "## Long texts",
            "Accuracy on newsgroups20: posts as they are, and posts of one group joined to texts of 2,000 words; label "
            f"names alone, and 5 texts per label. Mean of {_draws(own)}.",
            table(("read", *heads), rows),
        ]
    )


def _rows(
    cells: Sequence[Mapping[str, Any]],
    figure: str,
    ways: Mapping[str, Mapping[str, Any]],
    columns: Sequence[Mapping[str, Any]],
) -> list[tuple[str, ...]]:
    """The rows and columns that have results."""
    measured = [column for column in columns if any(column.items() <= cell.items() for cell in cells)]
    rows = [(name, *(_mean(cells, figure, **way, **column) for column in measured)) for name, way in ways.items()]
    return [row for row in rows if any(row[1:])]
