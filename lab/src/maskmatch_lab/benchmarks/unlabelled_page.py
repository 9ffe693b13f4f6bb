"""The figures on the page about unlabelled texts."""

from __future__ import annotations

from typing import Any

from maskmatch_lab.benchmarks.markdown import origin, points, results_of, table

FEW, MOST = 1000, 4000
SHOWN = "mean-matching"
"""The method of the main figure: the better one without training."""


def figures() -> str:
    """Per dataset: names alone, adapted, and what the classifier itself decides; sets where it fails first."""
    result = results_of("unlabelled")
    if result is None:
        return ""
    blocks = []
    for method in dict.fromkeys(row["method"] for row in result["summary"]):
        rows = [row for row in result["summary"] if row["method"] == method]
        rows.sort(key=lambda row: _gain(row, MOST))
        blocks += [f"## {method}", table(_header(), [_row(row) for row in rows] + [_mean(rows)])]
    about = (
        "Accuracy on at most 1,000 test texts. 100 and 1,000 texts are drawn three times (mean, standard deviation), "
        "4,000 once. The last column is what a user gets: adapted if the texts speak for it, else names alone. Sets "
        "are in the order of their gain, the worst first."
    )
    return "\n\n".join([about, *blocks, origin(result)])


def summary_rows() -> list[tuple[str, str]]:
    """The main figure, for the README."""
    result = results_of("unlabelled")
    if result is None:
        return []
    rows = [row for row in result["summary"] if row["method"] == SHOWN]
    alone = sum(row["names alone"] for row in rows) / len(rows)
    decided = sum(row[f"as decided with {FEW}"]["mean"] for row in rows) / len(rows)
    what = f"zero-shot accuracy adapted to {FEW:,} unlabelled texts, mean of {len(rows)} datasets, {SHOWN}"
    return [(what, f"**{decided:.1%}** (the same with names alone: {alone:.1%})")]


def _header() -> tuple[str, ...]:
    return "dataset", "names alone", "100 texts", "1,000 texts", "4,000 texts", "gain", "as decided"


def _gain(row: dict[str, Any], count: int) -> float:
    return float(row[f"adapted to {count}"]["mean"] - row["names alone"])


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    few, more = (
        f"{row[f'adapted to {count}']['mean']:.3f} ± {row[f'adapted to {count}']['sd']:.3f}" for count in (100, 1000)
    )
    most, decided = row[f"adapted to {MOST}"]["mean"], row[f"as decided with {MOST}"]["mean"]
    return (
        row["dataset"],
        f"{row['names alone']:.3f}",
        few,
        more,
        f"{most:.3f}",
        points(_gain(row, MOST)),
        f"**{decided:.3f}**",
    )


def _mean(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    alone = mean([row["names alone"] for row in rows])
    adapted = [mean([row[f"adapted to {count}"]["mean"] for row in rows]) for count in (100, 1000, MOST)]
    decided = mean([row[f"as decided with {MOST}"]["mean"] for row in rows])
    figures = [f"{value:.3f}" for value in (alone, *adapted)]
    return "mean", *figures, points(adapted[-1] - alone), f"**{decided:.3f}**"
