"""The figures of docs/experiment.md and its picture, from benchmarks/results/experiment.json."""

from __future__ import annotations

from typing import Any

from benchmarks import plots
from benchmarks.common import read_results
from benchmarks.experiment import PARTS, TASKS
from benchmarks.markdown import origin, table
from maskmatch.evaluation.svg import text_at

REFERENCE = "mask-matching"
CERTAIN = 0.05
REGIMES = {
    "5 shots": ("5-shots", "5-shots-bare"),
    "A tenth of train": ("10-percent", "10-percent-bare"),
    "All of train": ("full",),
    "5 shots with a larger encoder": ("5-shots-larger",),
}
COLOURS = plots.COLOURS[:5]


def figures() -> str:
    """All tables of the page, with the sentences that follow from them."""
    results = read_results("experiment")
    parts = results["parts"]
    blocks = ["![Scores at 5 shots](experiment.svg)", tuning_figures(results["tuning"])]
    for heading, names in REGIMES.items():
        rows = [row for name in names if name in parts for row in parts[name]["table"]]
        tests = [row for name in names if name in parts for row in parts[name]["significance"]]
        blocks.append(f"### {heading}")
        if rows:
            blocks += [score_table(rows), verdict(tests), test_table(tests)]
        wanted = [dataset for part in PARTS if part.name in names for dataset in part.datasets]
        missing = [dataset for dataset in wanted if all(row["dataset"] != dataset for row in rows)]
        if missing:
            blocks.append(f"Not run yet: {', '.join(missing)}.")
    blocks.append(origin(results))
    return "\n\n".join(blocks)


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
            f"Every method tried the same {budget['runs_a_method']} runs: learning rate and share of the usual epochs "
            f"({tried}) on the dev rows of {' and '.join(budget['datasets'])}, {', '.join(budget['regimes'])}, {seeds} "
            f"seed{'s' * (seeds > 1)}. What did best on average was then used everywhere.",
            table(("method", "learning rate", "epochs", "dev score"), rows),
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


def verdict(tests: list[dict[str, Any]]) -> str:
    """Where mask-matching wins, loses, or cannot be told apart, in words."""
    sentences = []
    for method in dict.fromkeys(row["method"] for row in tests):
        rows = [row for row in tests if row["method"] == method]
        words = ("better", "**worse**", "not with every training draw", "not told apart")
        named = {word: [row["dataset"] for row in rows if _word(row) == word] for word in words}
        told = [f"{word} on {', '.join(names)}" for word, names in named.items() if names]
        sentences.append(f"Against {method}: {'; '.join(told)}.")
    about = f"Mask-matching by the paired test on accuracy (p below {CERTAIN:g}), if every seed agrees:"
    return f"{about}\n\n" + "\n".join(f"- {sentence}" for sentence in sentences)


def _word(row: dict[str, Any]) -> str:
    """What a paired test says, which is about test rows, and seeds, which are about training rows."""
    if row["p"] >= CERTAIN:
        return "not told apart"
    if not all(each * row["difference"] > 0 for each in row["by_seed"]):
        return "not with every training draw"
    return "better" if row["difference"] > 0 else "**worse**"


def test_table(tests: list[dict[str, Any]]) -> str:
    """The difference in accuracy to each other method, in points, with its interval and p."""
    methods = list(dict.fromkeys(row["method"] for row in tests))
    found = {(row["dataset"], row["method"]): row for row in tests}
    lines = [
        (dataset, *(_difference(found.get((dataset, method))) for method in methods))
        for dataset in dict.fromkeys(row["dataset"] for row in tests)
    ]
    caption = (
        "Accuracy of mask-matching less that of the other, in points, with the 95 % interval over test rows, and p."
    )
    return f"{caption}\n\n{table(('dataset', *methods), lines)}"


def scores_picture() -> str:
    """The scores at 5 shots: a line for each dataset, a mark for each method."""
    parts = read_results("experiment")["parts"]
    rows = [row for name in REGIMES["5 shots"] if name in parts for row in parts[name]["table"]]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    left, top, width, line = 150.0, 44.0, 560.0, 30.0
    bottom = top + line * len(datasets)
    drawn = []
    for tick in range(0, 11, 2):
        x = left + width * tick / 10
        drawn.append(f'<path class="grid" d="M{x:.1f} {top}V{bottom:.1f}"/>')
        drawn.append(text_at(x, bottom + 18, f"{tick / 10:.1f}", "quiet", anchor="middle"))
    for place, dataset in enumerate(datasets):
        y = top + line * (place + 0.5)
        drawn.append(text_at(left - 12, y + 4, dataset, "name", anchor="end"))
        drawn.append(f'<path class="grid" d="M{left} {y:.1f}h{width}"/>')
        for row in sorted(
            (row for row in rows if row["dataset"] == dataset), key=lambda row: row["method"] == REFERENCE
        ):
            number = methods.index(row["method"])
            tooltip = f"{dataset}, {row['method']}: {row['metric']} {_score(row)}"
            drawn.append(plots.mark(number, left + width * row["score"]["mean"], y, tooltip))
    x = left
    for number, method in enumerate(methods):
        drawn.append(plots.mark(number, x + 6, 20, method))
        drawn.append(text_at(x + 17, 24, method, "name"))
        x += 17 + 7.2 * len(method) + 18
    styles = "".join(f".m{number}{{fill:{colour};stroke:{colour}}}" for number, colour in enumerate(COLOURS))
    wide, high = max(left + width + 24, x), bottom + 32
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high:.0f}" role="img" '
        'aria-label="Scores of five methods at 5 shots a label, by dataset"><style>'
        "text{font:13px system-ui,sans-serif;fill:#1d2226}.quiet{fill:#5f6870}.grid{stroke:#dfe3e1;fill:none}"
        f"{styles}</style>"
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(drawn)}</svg>\n'
    )


def _score(row: dict[str, Any]) -> str:
    figure = row["score"]
    return f"{figure['mean']:.3f}" if figure["sd"] is None else f"{figure['mean']:.3f} ± {figure['sd']:.3f}"


def _difference(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    points = [100 * row[name] for name in ("difference", "low", "high")]
    chance = "p < 0.001" if row["p"] < 0.001 else f"p = {row['p']:.3f}"
    return f"{points[0]:+.1f} ({points[1]:+.1f} to {points[2]:+.1f}), {chance}"
