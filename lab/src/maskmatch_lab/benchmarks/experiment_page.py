"""The figures of docs/results/experiment.md and its picture, from lab/results/experiment.json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskmatch_lab.benchmarks import plots
from maskmatch_lab.benchmarks.common import read_results
from maskmatch_lab.benchmarks.experiment import PARTS, TASKS
from maskmatch_lab.benchmarks.markdown import bullets, details, origin, table, with_spread

if TYPE_CHECKING:
    from collections.abc import Mapping

REFERENCE = "mask-matching"
CERTAIN = 0.05
VERDICTS = ("better", "worse", "seeds disagree", "no significant difference")
PICTURE = "pictures/experiment.svg"
REGIMES = {
    "5 shots": ("5-shots", "5-shots-bare"),
    "10 % of train": ("10-percent", "10-percent-bare"),
    "All of train": ("full",),
    "5 shots, larger encoder": ("5-shots-larger",),
}


def figures() -> str:
    """All tables of the page, with the sentences that follow from them."""
    results = read_results("experiment")
    parts = results["parts"]
    blocks = [lead(parts), f"![Scores at 5 shots]({PICTURE})", "## Wins and losses", verdict_tables(parts)]
    for heading, names in REGIMES.items():
        rows = [row for name in names if name in parts for row in parts[name]["table"]]
        tests = [row for name in names if name in parts for row in parts[name]["significance"]]
        blocks.append(f"## {heading}")
        if rows:
            blocks += [score_table(rows), details("Differences, intervals and p", test_table(tests))]
        wanted = [dataset for part in PARTS if part.name in names for dataset in part.datasets]
        missing = [dataset for dataset in wanted if all(row["dataset"] != dataset for row in rows)]
        if missing:
            blocks.append(f"Not run yet: {', '.join(missing)}.")
    blocks += ["## Tuning", tuning_figures(results["tuning"]), origin(results)]
    return "\n\n".join(blocks)


def lead(parts: Mapping[str, Any]) -> str:
    """On how many datasets mask-matching is better and worse with 5 shots, a sentence per other method."""
    tests = five_shot_tests(parts)
    sentences = []
    for method in dict.fromkeys(row["method"] for row in tests):
        named = verdicts([row for row in tests if row["method"] == method])
        better, worse = len(named["better"]), len(named["worse"])
        total = sum(map(len, named.values()))
        sentences.append(
            f"With 5 texts per label, mask-matching is better than {method} on {better} of {total} datasets and worse "
            "on "
            f"{worse}."
        )
    return bullets(sentences)


def five_shot_tests(parts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The paired tests of the default encoder with 5 shots."""
    return [row for name in REGIMES["5 shots"] if name in parts for row in parts[name]["significance"]]


def tuning_figures(tuning: dict[str, Any]) -> str:
    """What was tried, and what was chosen."""
    budget = tuning["budget"]
    tried = "; ".join(
        f"{rate:g} and {factor:g}" for rate in budget["learning_rates"] for factor in budget["epoch_factors"]
    )
    rows = [
        (
            name,
            f"{setting['learning_rate']:g}",
            f"{setting['epoch_factor']:g}",
            f"{max(row['score'] for row in tuning['tried'][name]):.3f}",
        )
        for name, setting in tuning["settings"].items()
    ]
    seeds = len(budget["seeds"])
    return "\n\n".join(
        [
            f"Every method was tuned with the same {budget['runs_a_method']} runs: learning rate and factor of the "
            "default "
            f"epochs ({tried}), evaluated on the dev rows of {' and '.join(budget['datasets'])}, "
            f"{', '.join(budget['regimes'])}, {seeds} seed{'s' * (seeds > 1)}. The setting with the best mean score "
            "is used "
            "everywhere.",
            table(("method", "learning rate", "factor of epochs", "dev score"), rows),
            " ".join(tuning["notes"]),
        ]
    )


def score_table(rows: list[dict[str, Any]]) -> str:
    """The task's own metric by dataset and method; the best of each dataset in bold."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    lines = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        found = {row["method"]: row for row in rows if row["dataset"] == dataset}
        one = next(iter(found.values()))
        best = max(row["score"]["mean"] for row in found.values())
        cells = [
            f"**{_score(found[method])}**" if found[method]["score"]["mean"] == best else _score(found[method])
            for method in methods
        ]
        lines.append((dataset, TASKS[dataset], one["metric"], one["training_texts"], len(one["seeds"]), *cells))
    return table(("dataset", "task", "metric", "train", "seeds", *methods), lines)


def verdict_tables(parts: Mapping[str, Any]) -> str:
    """On which datasets mask-matching is better or worse than each other method, a table per training size."""
    blocks = [
        f"Mask-matching against each other method. *Better* and *worse*: the paired test on accuracy has p < "
        f"{CERTAIN:g} and "
        "every seed agrees on the sign. *Seeds disagree*: p is below, but the sign depends on the training rows."
    ]
    for heading, names in REGIMES.items():
        tests = [row for name in names if name in parts for row in parts[name]["significance"]]
        if tests:
            blocks += [f"**{heading}**", verdict_table(tests)]
    return "\n\n".join(blocks)


def verdict_table(tests: list[dict[str, Any]]) -> str:
    """On which datasets mask-matching is better or worse than each other method."""
    rows = []
    for method in dict.fromkeys(row["method"] for row in tests):
        named = verdicts([row for row in tests if row["method"] == method])
        rows.append((method, *(", ".join(named[verdict]) or "none" for verdict in VERDICTS)))
    return table(("against", *VERDICTS), rows)


def verdicts(tests: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The datasets per verdict."""
    return {verdict: [row["dataset"] for row in tests if _verdict(row) == verdict] for verdict in VERDICTS}


def _verdict(row: dict[str, Any]) -> str:
    """The paired test covers test rows, and the seeds cover training rows: both have to agree."""
    if row["p"] >= CERTAIN:
        return "no significant difference"
    if not all(each * row["difference"] > 0 for each in row["by_seed"]):
        return "seeds disagree"
    return "better" if row["difference"] > 0 else "worse"


def test_table(tests: list[dict[str, Any]]) -> str:
    """The difference in accuracy to each other method, in points, with its interval and p."""
    methods = list(dict.fromkeys(row["method"] for row in tests))
    found = {(row["dataset"], row["method"]): row for row in tests}
    lines = [
        (dataset, *(_difference(found.get((dataset, method))) for method in methods))
        for dataset in dict.fromkeys(row["dataset"] for row in tests)
    ]
    caption = "Accuracy of mask-matching minus that of the other method, in points; 95 % interval over test rows; p."
    return f"{caption}\n\n{table(('dataset', *methods), lines)}"


def scores_picture() -> str:
    """The scores at 5 shots: a row for each dataset, a marker for each method."""
    parts = read_results("experiment")["parts"]
    scores: dict[str, dict[str, tuple[float, float | None]]] = {}
    for row in (row for name in REGIMES["5 shots"] if name in parts for row in parts[name]["table"]):
        scores.setdefault(row["dataset"], {})[row["method"]] = row["score"]["mean"], row["score"]["sd"]
    return plots.score_chart("Scores of five methods at 5 shots per label, by dataset", scores, "score")


def _score(row: dict[str, Any]) -> str:
    return with_spread(row["score"], 3)


def _difference(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    points = [100 * row[name] for name in ("difference", "low", "high")]
    chance = "p < 0.001" if row["p"] < 0.001 else f"p = {row['p']:.3f}"
    return f"{points[0]:+.1f} ({points[1]:+.1f} to {points[2]:+.1f}), {chance}"
