"""The figures of docs/results/speed.md and its pictures, from the results files of the parts that were measured."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from maskmatch.prediction.search import MAX_EXACT
from maskmatch_lab.benchmarks.markdown import origin, results_of, table
from maskmatch_lab.benchmarks.speed.bars import many_labels, overhead, ratio
from maskmatch_lab.benchmarks.speed.curves import EXACT, OURS_AUTO, SEARCHES
from maskmatch_lab.benchmarks.speed.pictures import (
    curve_picture,
    megabytes,
    memory_picture,
    prediction_picture,
    seconds,
    training_picture,
)
from maskmatch_lab.benchmarks.speed.prediction import EMBEDDING, INT8, TORCH
from maskmatch_lab.benchmarks.speed.training import ENCODERS, HURRIES, time_to_reach

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

NOT_YET = "Not measured yet."
PAUSE = timedelta(hours=1)
"""Measurements with a longer pause between them count as two sessions."""

SEEDS = 3
"""An accuracy needs this many seeds to be in the overview."""

PARTS = {"training": "Training", "prediction": "Prediction", "curves": "Cost curves"}
OTHERS = {"overhead": overhead, "many_labels": many_labels}
"""Targets of other benchmarks about speed; their figures are on docs/results/benchmarks.md."""

FIRST_ANSWER = "maskmatch predict EXPORT"
CURVES = {
    "step_labels": ("A training step over the number of labels", "labels"),
    "prediction_labels": ("Prediction over the number of labels", "labels"),
    "step_length": ("A training step over the length of texts", "words per text"),
    "prediction_length": ("Prediction over the length of texts", "words per text"),
    "search": ("The search alone over the number of labels", "labels"),
}


def figures() -> str:
    """All tables and pictures of the page; parts without results are named."""
    results = {part: _results(part) for part in PARTS}
    summary = summary_rows()
    blocks = [table(("figure", "measured"), summary)] if summary else []
    for part, heading in PARTS.items():
        result = results[part]
        blocks.append(f"## {heading}")
        blocks += [NOT_YET] if result is None else [*_blocks(part, result), _origin(result)]
    blocks += ["## Targets", "What this project wants to reach, as ratios within one run.", bars(results)]
    return "\n\n".join(blocks)


def summary_rows() -> list[tuple[str, str]]:
    """The main figures of the parts that have been measured: what, and value."""
    training, prediction, curves = (_results(part) for part in PARTS)
    rows = []
    if training is not None:
        table_rows = training["table"]
        for row in table_rows:
            enough = row["peer"] == "SetFit" and row["runs"] >= SEEDS
            quickest = time_to_reach(table_rows, row["dataset"], row) if enough else None
            if quickest is not None:
                rows.append(
                    (
                        f"training time to reach the accuracy of {row['way'].replace(', ', ' with ')} on "
                        f"{row['dataset']} "
                        f"({row['accuracy']:.3f} in {row['seconds']:.0f} s)",
                        f"1/{row['seconds'] / quickest['seconds']:.0f} of its time ({_how(quickest)})",
                    )
                )
    if prediction is not None:
        speeds = {point["way"]: 1 / point["seconds"] for point in prediction["points"] if "seconds" in point}
        for way, name in ((TORCH, "classifying with torch"), (INT8, "classifying with an int8 export")):
            if {EMBEDDING, way} <= speeds.keys():
                rows.append(
                    (
                        f"{name}, texts per second relative to embedding with sentence-transformers",
                        f"{speeds[way] / speeds[EMBEDDING]:.1f} times",
                    )
                )
        export = prediction["first_answer"].get(FIRST_ANSWER)
        if export is not None:
            rows.append(("start of the process to the first answer, with an export", f"{export['seconds']:.1f} s"))
    if curves is not None:
        times = ratio(curves["prediction_labels"]["points"], 1_000_000, 10)
        if times is not None:
            rows.append(("time per text with 1,000,000 labels relative to 10 labels", f"{times:.2f} times"))
    return rows


def _how(row: Mapping[str, Any]) -> str:
    """The settings of a maskmatch run."""
    if row["way"] in HURRIES:
        return "few large steps, higher learning rate, no dropout"
    return "default settings" if row["share"] == 1 else f"{row['share']:g} of the default epochs"


def pictures(folder: Path) -> dict[Path, str]:
    """The pictures of the parts that have been measured, by the file they go to.

    Args:
        folder: The folder of the page.
    """
    found: dict[str, str] = {}
    training, prediction, curves = (_results(part) for part in PARTS)
    if training is not None:
        for dataset in dict.fromkeys(row["dataset"] for row in training["table"]):
            found[f"training-{dataset}"] = training_picture(training["table"], dataset)
    if prediction is not None:
        found["prediction"] = prediction_picture(prediction["points"])
    if curves is not None:
        for name, (heading, across) in CURVES.items():
            if name not in curves:
                continue
            found[name.replace("_", "-")] = curve_picture(heading, across, curves[name]["points"])
            memory = curves.get(f"{name}_memory")
            if memory is not None:
                found[f"{name.replace('_', '-')}-memory"] = memory_picture(heading, across, memory["points"])
    return {folder / _file(name): picture for name, picture in found.items()}


def _results(part: str) -> dict[str, Any] | None:
    return results_of(f"speed_{part}")


def bars(results: Mapping[str, Mapping[str, Any] | None]) -> str:
    """Targets, measured values, and whether the target is met."""
    rows = []
    for part, result in results.items():
        if result is None:
            rows.append((f"({PARTS[part].lower()})", "", NOT_YET, ""))
            continue
        rows += map(_bar_row, result["bars"])
    for name, bars_of in OTHERS.items():
        other = results_of(name)
        if other is None:
            rows.append((f"({name.replace('_', ' ')})", "", NOT_YET, ""))
        else:
            rows += map(_bar_row, bars_of(other))
    return table(("figure", "target", "measured", "met"), rows)


def _bar_row(bar: Mapping[str, Any]) -> tuple[str, str, str, str]:
    value = bar.get("note") or ("not measured" if bar["value"] is None else f"{bar['value']:.3g}")
    met = {True: "yes", False: "**no**", None: ""}[bar["met"]]
    return bar["what"], f"{bar['sense']} {bar['bar']:.3g}", value, met


def _blocks(part: str, result: Mapping[str, Any]) -> list[str]:
    return {"training": _training, "prediction": _prediction, "curves": _curves}[part](result)


def _origin(result: Mapping[str, Any]) -> str:
    peers = {name: value for found in result["peers"].values() for name, value in found.items()}
    return origin({**result, "versions": {**result["versions"], **peers}})


def _training(result: Mapping[str, Any]) -> list[str]:
    blocks = []
    for dataset in dict.fromkeys(row["dataset"] for row in result["table"]):
        rows = sorted((row for row in result["table"] if row["dataset"] == dataset), key=lambda row: row["seconds"])
        blocks += [
            f"### {dataset}, {rows[0]['labels']} labels, {result['shots']} texts per label",
            f"![Accuracy over seconds of training on {dataset}]({_file('training-' + dataset)})",
            table(
                ("library", "factor of epochs", "runs", "steps", "seconds", "accuracy", "peak memory"),
                [
                    (
                        row["way"],
                        "" if row["share"] is None else f"{row['share']:g}",
                        row["runs"],
                        row["steps"] or "",
                        f"{row['seconds']:.1f}",
                        f"{row['accuracy']:.4f}"
                        + ("" if row["accuracy_sd"] is None else f" ± {row['accuracy_sd']:.4f}"),
                        megabytes(row["peak_megabytes"]),
                    )
                    for row in rows
                ],
            ),
            *_reached(rows, dataset),
        ]
    return [*blocks, *sessions(result["cells"])]


def sessions(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which measurements were taken in which session, if a run was interrupted."""
    times = sorted((datetime.fromisoformat(cell["measured"]), cell["way"]) for cell in cells)
    found: list[tuple[datetime, dict[str, None]]] = []
    last: datetime | None = None
    for time, way in times:
        if last is None or time - last > PAUSE:
            found.append((time, {}))
        found[-1][1][way] = None
        last = time
    if len(found) < 2:
        return []
    rows = [(f"{time:%Y-%m-%d %H:%M}", ", ".join(ways)) for time, ways in found]
    return [f"Measured in {len(found)} sessions:", table(("session started (UTC)", "measured"), rows)]


def _reached(rows: Sequence[Mapping[str, Any]], dataset: str) -> list[str]:
    """How long maskmatch takes to reach the accuracy of each SetFit run."""
    lines = []
    for row in rows:
        if row["peer"] != "SetFit":
            continue
        for way in (way for way in ENCODERS if any(ours["way"] == way for ours in rows)):
            quickest = time_to_reach(rows, dataset, row, way)
            theirs = (row["way"], f"{row['accuracy']:.4f}", f"{row['seconds']:.0f} s", way)
            lines.append(
                (*theirs, "not reached", "", "")
                if quickest is None
                else (
                    *theirs,
                    f"{_mean_over(quickest, row):.4f}",
                    f"{quickest['seconds']:.1f} s",
                    f"1/{row['seconds'] / quickest['seconds']:.1f}",
                )
            )
    header = (
        "SetFit run",
        "accuracy",
        "time",
        "maskmatch run",
        "accuracy on the same shots",
        "time",
        "share of the time",
    )
    return [f"The shortest run of maskmatch that reaches SetFit on {dataset}:", table(header, lines)] if lines else []


def _mean_over(row: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """The accuracy of a run over the draws of shots that another one was measured with as well."""
    shared = row["accuracies"][: len(other["accuracies"])]
    return float(sum(shared) / len(shared))


def _prediction(result: Mapping[str, Any]) -> list[str]:
    points = result["points"]
    base = next((point.get("seconds") for point in points if point["way"] == EMBEDDING), None)
    rows = []
    for point in points:
        accuracy = result["accuracy"].get(point["way"])
        shown = "" if accuracy is None else f"{accuracy:.4f}"
        if "ended" in point:
            rows.append((point["way"], "", point["ended"], "", shown))
        else:
            times = "" if base is None else f"{base / point['seconds']:.2f}"
            rows.append((point["way"], point["units"], f"{1 / point['seconds']:,.1f}", times, shown))
    first = [(name, found["how"], f"{found['seconds']:.2f}") for name, found in result["first_answer"].items()]
    return [
        f"![Texts per second]({_file('prediction')})",
        table(
            ("library", "texts", "texts per second", "relative to sentence-transformers", "zero-shot accuracy"),
            rows,
        ),
        f"Dataset: {result['dataset']}, {result['labels']} labels.",
        "### Time to the first answer",
        "Seconds from the start of a process to its first answer.",
        table(("library", "how", "seconds"), first),
    ]


def _curves(result: Mapping[str, Any]) -> list[str]:
    blocks = []
    for name, (heading, across) in CURVES.items():
        if name not in result:
            blocks += [f"### {heading}", NOT_YET]
            continue
        blocks += [f"### {heading}", f"![{heading}]({_file(name)})"]
        blocks.append(_curve_table(across, result[name]["points"], "seconds", seconds))
        ends = _ends(result[name]["points"], across)
        blocks += [ends] if ends else []
        memory = result.get(f"{name}_memory")
        if name == "search":
            blocks.append(crossing(result[name]["points"]))
        elif memory is None:
            blocks.append("Memory: not measured yet.")
        else:
            blocks += [f"![{heading}: memory]({_file(name + '_memory')})"]
            blocks.append(_curve_table(across, memory["points"], "megabytes", megabytes))
    points = result["prediction_labels"]["points"]
    recalls = [(f"{point['size']:,}", f"{point['recall']:.2%}") for point in points if "recall" in point]
    built = [
        (f"{point['size']:,}", f"{point['index']['seconds']:.0f}", f"{point['index']['recall']:.1%}")
        for point in points
        if "index" in point and point["way"] == OURS_AUTO
    ]
    peak = result["peak"]
    blocks += ["### Recall of the search", f"How often `{OURS_AUTO}` returns the label of `{EXACT}` (recall@1)."]
    blocks.append(table(("labels", "recall@1"), recalls))
    if built:
        blocks += [
            "Building an index is not part of the curves. Its recall is measured on label names and on points midway "
            "between two of them.",
            table(("labels", "seconds to build the index", "recall of the index"), built),
        ]
    return [
        *blocks,
        "### Share of the machine's arithmetic",
        table(
            ("figure", "value"),
            [
                (
                    f"operations of a training step with {peak['labels']} labels",
                    f"{peak['operations_a_step'] / 1e9:.1f} billion",
                ),
                ("operations per second in training", f"{peak['training_gigaflops']:.1f} billion"),
                ("operations per second of large matrix products", f"{peak['peak_gigaflops']:.1f} billion"),
                ("share", f"{peak['share']:.0%}"),
            ],
        ),
    ]


def crossing(points: Sequence[Mapping[str, Any]]) -> str:
    """From how many labels an index is faster than exact search, and what building it takes."""
    exact, index = (
        {point["size"]: point for point in points if point["way"] == way and "seconds" in point} for way in SEARCHES
    )
    both = sorted(exact.keys() & index.keys())
    if not both:
        return NOT_YET
    saved = {size: exact[size]["seconds"] - index[size]["seconds"] for size in both}
    cheaper = [size for size in both if all(saved[other] > 0 for other in both if other >= size)]
    where = f"from {min(cheaper):,} labels" if cheaper else f"nowhere up to {both[-1]:,} labels"
    amounts = "; ".join(
        f"{seconds(saved[size])} per text at {size:,} labels (built in {index[size]['index']['seconds']:.1f} s)"
        for size in cheaper
    )
    return (
        f"The search alone is faster with an index {where}{f': it saves {amounts}' if amounts else ''}. "
        f'`search="auto"` searches exactly up to {MAX_EXACT:,} label texts.'
    )


def _curve_table(across: str, points: Sequence[Mapping[str, Any]], field: str, label: Any) -> str:
    ways = list(dict.fromkeys(point["way"] for point in points))
    found = {(point["way"], point["size"]): point for point in points}
    sizes = sorted({point["size"] for point in points})
    return table(
        (across, *ways),
        [
            (
                f"{size:,}",
                *(label(found[way, size][field]) if field in found.get((way, size), {}) else "" for way in ways),
            )
            for size in sizes
        ],
    )


def _ends(points: Sequence[Mapping[str, Any]], across: str) -> str:
    """Where curves end, and why."""
    ends: dict[str, str] = {}
    for point in points:
        if "ended" in point and point["way"] not in ends:
            ends[point["way"]] = f"- {point['way']} ends before {point['size']:,} {across}: {point['ended']}."
    return "\n".join(ends.values())


def _file(name: str) -> str:
    return f"pictures/speed-{name.replace('_', '-')}.svg"
