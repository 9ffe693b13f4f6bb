"""The figures of docs/speed.md and its pictures, from the results files of the parts that have been measured."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from benchmarks import common
from benchmarks.markdown import origin, table
from benchmarks.plots import Axis, dot_chart, line_chart
from benchmarks.speed.bars import many_labels, overhead, ratio
from benchmarks.speed.curves import EXACT, OURS_AUTO, SEARCHES
from benchmarks.speed.prediction import EMBEDDING, INT8, TORCH
from benchmarks.speed.training import ENCODERS, HURRIES, time_to_reach
from maskmatch.search import MOST_SEARCHED_EXACTLY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

NOT_YET = "Not measured yet."
PAUSE = timedelta(hours=1)
"""What was measured with such a pause in between was not measured in one go."""

SEEDS = 3
"""From how many draws of shots on an accuracy is told in the README."""

PARTS = {"training": "Training", "prediction": "Prediction", "curves": "Cost curves"}
OTHERS = {"overhead": overhead, "many_labels": many_labels}
"""Bars of other benchmarks that have to do with speed; their figures are on docs/benchmarks.md."""

CURVES = {
    "step_labels": ("A training step over the number of labels", "labels"),
    "prediction_labels": ("Prediction over the number of labels", "labels"),
    "step_length": ("A training step over the length of texts", "words a text"),
    "prediction_length": ("Prediction over the length of texts", "words a text"),
    "search": ("The search alone over the number of labels", "labels"),
}


def figures() -> str:
    """All tables and pictures of the page, and what has not been measured."""
    results = {part: _results(part) for part in PARTS}
    blocks = ["## What is to be reached", bars(results)]
    for part, heading in PARTS.items():
        result = results[part]
        blocks.append(f"## {heading}")
        blocks += [NOT_YET] if result is None else [*_blocks(part, result), _origin(result)]
    return "\n\n".join(blocks)


def summary() -> str:
    """The figures that a reader of the README should know, of the parts that have been measured."""
    training, prediction, curves = (_results(part) for part in PARTS)
    told = []
    if training is not None:
        table_rows = training["table"]
        for row in table_rows:
            told_of = row["peer"] == "SetFit" and row["runs"] >= SEEDS
            quickest = time_to_reach(table_rows, row["dataset"], row) if told_of else None
            if quickest is not None:
                setfit = row["way"].replace(", ", " with ")
                told.append(
                    f"the accuracy of {setfit} on {row['dataset']} ({row['accuracy']:.3f} in {row['seconds']:.0f} s) "
                    f"is reached in 1/{row['seconds'] / quickest['seconds']:.0f} of that time {_how(quickest)}"
                )
    if prediction is not None:
        speeds = {point["way"]: 1 / point["seconds"] for point in prediction["points"] if "seconds" in point}
        if {EMBEDDING, TORCH, INT8} <= speeds.keys():
            times = [f"{speeds[way] / speeds[EMBEDDING]:.1f}" for way in (TORCH, INT8)]
            told.append(
                f"{times[0]} times as many texts a second are classified as sentence-transformers embeds, and "
                f"{times[1]} times as many by an export in 8 bits"
            )
    if curves is not None:
        times_as_long = ratio(curves["prediction_labels"]["points"], 1_000_000, 10)
        if times_as_long is not None:
            told.append(f"with a million labels, a text takes {times_as_long:.2f} times as long as with ten")
    return f"With the same encoder on two cores: {'; '.join(told)}." if told else ""


def _how(row: Mapping[str, Any]) -> str:
    """By which settings a run of maskmatch was made."""
    if row["way"] in HURRIES:
        return "by few large steps at a higher rate without dropout"
    return "with the usual settings" if row["share"] == 1 else f"in {row['share']:g} of the usual epochs"


def pictures(folder: Path) -> dict[Path, str]:
    """The pictures of the parts that have been measured, by the file they go to."""
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
    return {folder / f"speed-{name}.svg": picture for name, picture in found.items()}


def _results(part: str) -> dict[str, Any] | None:
    if not (common.RESULTS / f"speed_{part}.json").is_file():
        return None
    return common.read_results(f"speed_{part}")


def bars(results: Mapping[str, Mapping[str, Any] | None]) -> str:
    """What is to be reached, and what was."""
    rows = []
    for part, result in results.items():
        if result is None:
            rows.append((f"({PARTS[part].lower()})", "", NOT_YET, ""))
            continue
        rows += map(_bar_row, result["bars"])
    for name, bars_of in OTHERS.items():
        if (common.RESULTS / f"{name}.json").is_file():
            rows += map(_bar_row, bars_of(common.read_results(name)))
        else:
            rows.append((f"({name.replace('_', ' ')})", "", NOT_YET, ""))
    return table(("figure", "to reach", "measured", "reached"), rows)


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
        rows = [row for row in result["table"] if row["dataset"] == dataset]
        blocks += [
            f"### {dataset}, {rows[0]['labels']} labels, {result['shots']} shots",
            f"![Accuracy over seconds of training on {dataset}](speed-training-{dataset}.svg)",
            table(
                ("way", "epochs", "runs", "steps", "seconds", "accuracy", "peak memory"),
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
    return [*blocks, *sittings(result["cells"])]


def sittings(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which ways were measured at another time than the others, where a run was stopped and gone on with later."""
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
    told = "; ".join(f"from {time:%Y-%m-%d %H:%M} on {', '.join(ways)}" for time, ways in found)
    return [f"Not all of it was measured in one go: {told} (UTC)."]


def _reached(rows: Sequence[Mapping[str, Any]], dataset: str) -> list[str]:
    """In how much of its time the accuracy of each SetFit run was reached."""
    sentences = []
    for row in rows:
        if row["peer"] != "SetFit":
            continue
        told = []
        for way in (way for way in ENCODERS if any(ours["way"] == way for ours in rows)):
            quickest = time_to_reach(rows, dataset, row, way)
            told.append(
                f"{way} does not reach it"
                if quickest is None
                else f"{way} reaches {_mean_over(quickest, row):.4f} with the same shots in "
                f"{quickest['seconds']:.1f} s, 1/{row['seconds'] / quickest['seconds']:.1f} of the time"
            )
        sentences.append(f"{row['way']}: {row['accuracy']:.4f} in {row['seconds']:.0f} s; {'; '.join(told)}.")
    return ["\n".join(f"- {sentence}" for sentence in sentences)] if sentences else []


def _mean_over(row: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """The accuracy of a way over the turns that another one has had as well."""
    shared = row["accuracies"][: len(other["accuracies"])]
    return float(sum(shared) / len(shared))


def _prediction(result: Mapping[str, Any]) -> list[str]:
    points = result["points"]
    base = next((point.get("seconds") for point in points if point["way"] == EMBEDDING), None)
    rows = []
    for point in points:
        accuracy = result["accuracy"].get(point["way"])
        told = "" if accuracy is None else f"{accuracy:.4f}"
        if "ended" in point:
            rows.append((point["way"], "", point["ended"], "", told))
        else:
            times = "" if base is None else f"{base / point['seconds']:.2f}"
            rows.append((point["way"], point["units"], f"{1 / point['seconds']:,.1f}", times, told))
    first = [(name, found["how"], f"{found['seconds']:.2f}") for name, found in result["first_answer"].items()]
    return [
        f"![Texts a second]({_file('prediction')})",
        table(
            ("way", "texts", "texts a second", "times sentence-transformers' encode", "accuracy of names alone"), rows
        ),
        f"{result['dataset']} with its {result['labels']} labels. The seconds from the start of a process to its first "
        "answer:",
        table(("what", "how", "seconds"), first),
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
    recalls = [point for point in points if "recall" in point]
    built = [
        f"{point['size']:,} labels in {point['index']['seconds']:.0f} s, with a recall of "
        f"{point['index']['recall']:.1%} on label names and points midway between two of them"
        for point in points
        if "index" in point and point["way"] == OURS_AUTO
    ]
    told = "; ".join(f"{point['size']:,}: {point['recall']:.2%}" for point in recalls)
    peak = result["peak"]
    blocks += [
        "### Recall and the share of the machine",
        f"How often `{OURS_AUTO}` names the label of `{EXACT}`, by the number of labels: {told}.",
        *([f"The time that it takes to build an index is not part of the curve: {'; '.join(built)}."] if built else []),
        f"A training step with {peak['labels']} labels does {peak['operations_a_step'] / 1e9:.1f} billion operations, "
        f"{peak['training_gigaflops']:.1f} billion a second; large matrix products reach {peak['peak_gigaflops']:.1f} "
        f"billion a second on this machine in the same run, so that is {peak['share']:.0%}.",
    ]
    return blocks


def crossing(points: Sequence[Mapping[str, Any]]) -> str:
    """From how many labels on an index takes less time, and what building it takes."""
    exact, index = (
        {point["size"]: point for point in points if point["way"] == way and "seconds" in point} for way in SEARCHES
    )
    both = sorted(exact.keys() & index.keys())
    if not both:
        return NOT_YET
    saved = {size: exact[size]["seconds"] - index[size]["seconds"] for size in both}
    cheaper = [size for size in both if all(saved[other] > 0 for other in both if other >= size)]
    told = f"from {min(cheaper):,} labels on" if cheaper else f"nowhere up to {both[-1]:,} labels"
    amounts = "; ".join(
        f"{seconds(saved[size])} a text at {size:,} labels (built in {index[size]['index']['seconds']:.1f} s)"
        for size in cheaper
    )
    return (
        f"By the search alone an index is the cheaper one {told}{f': it saves {amounts}' if amounts else ''}. "
        f'"auto" searches exactly up to {MOST_SEARCHED_EXACTLY:,} label texts.'
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
    told: dict[str, str] = {}
    for point in points:
        if "ended" in point and point["way"] not in told:
            told[point["way"]] = f"- {point['way']} ends before {point['size']:,} {across}: {point['ended']}."
    return "\n".join(told.values())


def training_picture(rows: Sequence[Mapping[str, Any]], dataset: str) -> str:
    """Accuracy over the seconds of training."""
    series: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["dataset"] == dataset:
            series.setdefault(row["way"], []).append((max(row["seconds"], 1e-3), row["accuracy"]))
    accuracy = Axis("accuracy", lambda value: f"{value:.2f}", logarithmic=False)
    return line_chart(f"Accuracy over seconds of training on {dataset}", series, _seconds("time of training"), accuracy)


def prediction_picture(points: Sequence[Mapping[str, Any]]) -> str:
    """Texts a second of each way."""
    values = {point["way"]: 1 / point["seconds"] for point in points if "seconds" in point}
    axis = Axis("texts a second", lambda value: f"{value:,.3g}" if value < 1000 else f"{value:,.0f}")
    return dot_chart("Texts a second", values, axis)


def curve_picture(heading: str, across: str, points: Sequence[Mapping[str, Any]]) -> str:
    """Seconds of a step or a text over a size."""
    what = "a step" if "step" in heading else "a text"
    return line_chart(heading, _series(points, "seconds"), _count(across), _seconds(f"time of {what}"))


def memory_picture(heading: str, across: str, points: Sequence[Mapping[str, Any]]) -> str:
    """Peak memory over a size."""
    return line_chart(
        f"{heading}: memory", _series(points, "megabytes"), _count(across), Axis("peak memory", megabytes)
    )


def _series(points: Sequence[Mapping[str, Any]], field: str) -> dict[str, list[tuple[float, float]]]:
    series: dict[str, list[tuple[float, float]]] = {}
    for point in points:
        if field in point:
            series.setdefault(point["way"], []).append((point["size"], point[field]))
    return series


def _count(name: str) -> Axis:
    return Axis(name, lambda value: f"{value:,.0f}")


def _seconds(name: str) -> Axis:
    return Axis(name, seconds)


def seconds(value: float) -> str:
    """A time as it is read most easily.

    Example:
        >>> seconds(0.00012), seconds(0.25), seconds(12), seconds(1500)
        ('0.12 ms', '250 ms', '12 s', '1,500 s')
    """
    if value >= 1:
        return f"{value:.3g} s" if value < 100 else f"{value:,.0f} s"
    return f"{1000 * value:.3g} ms"


def megabytes(value: float) -> str:
    """A size of memory as it is read most easily.

    Example:
        >>> megabytes(512), megabytes(2048)
        ('512 MB', '2.0 GB')
    """
    return f"{value:.0f} MB" if value < 1000 else f"{value / 1024:.1f} GB"


def _file(name: str) -> str:
    return f"speed-{name.replace('_', '-')}.svg"
