"""The figures of docs/results/real-world.md, from lab/results/real_world.json."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from maskmatch.evaluation.display import counted
from maskmatch_lab.benchmarks.common import mean_and_sd
from maskmatch_lab.benchmarks.markdown import origin, results_of, table
from maskmatch_lab.benchmarks.real_world import (
    DEFAULT,
    FEW,
    FEW_ROWS,
    LONG,
    LONG_TEXTS,
    MANY_ROWS,
    NAMES,
    SEEDS,
    SKEWED,
    WAYS,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOT_YET = "No results yet."


def figures() -> str:
    """All blocks of the page."""
    results = results_of("real_world")
    if results is None:
        return NOT_YET
    cells = results["cells"]
    blocks = [*_skewed(cells), *_weights(cells), *_long(cells)]
    return "\n\n".join([*blocks, origin(results)])


def _skewed(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names alone, few rows of each label, and skewed rows by the default."""
    shown = {NAMES: "names alone", FEW: FEW, DEFAULT: "skewed rows"}
    own = _complete([cell for cell in cells if cell["part"] == "skewed"], "dataset", len(shown))
    rows = _rows(own, "macro_f1", {name: {"way": way} for way, name in shown.items()}, _datasets(own))
    if not rows:
        return []
    return [
        "## Skewed labels",
        f"{MANY_ROWS} rows of one label (or as many as it has), {FEW_ROWS} of each other; macro-F1, mean and standard "
        "deviation.",
        table(("trained on", *_headings(own, _datasets(own))), rows),
        f"Among {counted(len(own) // len(shown), 'draw')} of all datasets, skewed rows ended below names alone in "
        f"{_below(own, NAMES)}, and below {FEW} in {_below(own, FEW)}.",
    ]


def _weights(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Other ways to train on skewed rows, on one draw."""
    own = [cell for cell in cells if cell["part"] in ("skewed", "weights") and cell["seed"] == SEEDS[0]]
    own = _complete([cell for cell in own if cell["way"] in WAYS], "dataset", len(WAYS))
    rows = _rows(own, "macro_f1", {way: {"way": way} for way in WAYS}, _datasets(own))
    if not rows:
        return []
    return [
        "Other ways to train on the skewed rows of one draw; the settings are in the "
        "[guide](../how-to/skewed-labels.md):",
        table(("way", *_headings(own, _datasets(own))), rows),
    ]


def _long(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    own = _complete([cell for cell in cells if cell["part"] == "long"], "regime", len(LONG) * len(LONG_TEXTS))
    columns = [{"dataset": texts, "regime": regime} for texts in LONG_TEXTS for regime in ("names", "5 shots")]
    columns = [column for column in columns if any(column.items() <= cell.items() for cell in own)]
    rows = _rows(own, "accuracy", {way: {"way": way} for way in LONG}, columns)
    if not rows:
        return []
    return [
        "## Long texts",
        "Accuracy on newsgroups20: posts as they are, and posts of one group joined to texts of 2,000 words; label "
        "names alone, and 5 texts per label. Mean and standard deviation.",
        table(("read", *_headings(own, columns)), rows),
    ]


def _complete(cells: Sequence[Mapping[str, Any]], by: str, number: int) -> list[Mapping[str, Any]]:
    """The cells of draws that have all of their cells, so that means compare the same draws."""
    groups = Counter((cell[by], cell["seed"]) for cell in cells)
    return [cell for cell in cells if groups[(cell[by], cell["seed"])] == number]


def _datasets(cells: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"dataset": name} for name in SKEWED if any(cell["dataset"] == name for cell in cells)]


def _headings(cells: Sequence[Mapping[str, Any]], columns: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of columns, with the number of draws that each is the mean of."""
    return [f"{', '.join(column.values())}, {counted(len(_seeds(cells, column)), 'draw')}" for column in columns]


def _seeds(cells: Sequence[Mapping[str, Any]], column: Mapping[str, Any]) -> set[int]:
    return {cell["seed"] for cell in cells if column.items() <= cell.items()}


def _below(cells: Sequence[Mapping[str, Any]], way: str) -> int:
    """The number of draws in which skewed rows are worse than another way."""
    scores = {(cell["dataset"], cell["seed"], cell["way"]): cell["macro_f1"] for cell in cells}
    return sum(score < scores[dataset, seed, way] for (dataset, seed, own), score in scores.items() if own == DEFAULT)


def _rows(
    cells: Sequence[Mapping[str, Any]],
    figure: str,
    ways: Mapping[str, Mapping[str, Any]],
    columns: Sequence[Mapping[str, Any]],
) -> list[tuple[str, ...]]:
    """A row per way, with the mean and standard deviation of each column."""
    rows = []
    for name, way in ways.items():
        found = [[cell[figure] for cell in cells if {**way, **column}.items() <= cell.items()] for column in columns]
        rows.append((name, *(_mean(values) for values in found)))
    return rows if columns else []


def _mean(values: list[float]) -> str:
    if not values:
        return ""
    shown = mean_and_sd(values)
    return f"{shown['mean']:.3f}" + (f" ± {shown['sd']:.3f}" if len(values) > 1 else "")
