"""The figures of docs/studies.md, from the results files of the studies that were run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from benchmarks.common import RESULTS
from benchmarks.markdown import origin, table
from maskmatch.studies import STUDIES

if TYPE_CHECKING:
    from maskmatch.studies import Study

NOT_RUN = "Not run yet: there are no results to tell."


def figures() -> str:
    """A section for each study: its question, its command, and what was found, if it was run."""
    return "\n\n".join(section(study) for study in STUDIES.values())


def section(study: Study) -> str:
    """What a study asks, how it is run, and what it found."""
    path = RESULTS / "studies" / study.name / "results.json"
    results: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    cost = (
        f"{study.cells} cells, about {study.minutes} minutes on two cores"
        if results is None
        else f"{len(results['cells'])} cells, {minutes(results):.0f} minutes of training and prediction in all"
    )
    datasets = study.datasets if results is None else [each["name"] for each in results["datasets"]]
    blocks = [
        f"### {study.name}",
        f"**{study.question}**",
        f"`maskmatch study {study.name} --data FOLDER -o OUT`, on {', '.join(datasets)}: {cost}. What was left "
        f"out: {' '.join(study.cut)}",
    ]
    if results is None:
        return "\n\n".join([*blocks, NOT_RUN])
    return "\n\n".join([*blocks, *_pictures(study), *_found(results)])


def minutes(results: dict[str, Any]) -> float:
    """How long training and prediction, with the reading of labels, took over all cells."""
    figures = [cell["figures"] for cell in results["cells"]]
    speeds = [(each["rows"], each["texts_per_second"]) for each in figures]
    taken = sum(each["training_seconds"] for each in figures) + sum(rows / speed for rows, speed in speeds if speed)
    return float(taken / 60)


def _pictures(study: Study) -> list[str]:
    """The pictures that a run has left beside its results."""
    folder = RESULTS / "studies" / study.name
    return [
        f"![{study.question}](../benchmarks/results/studies/{study.name}/{path.name})"
        for path in sorted(folder.glob("picture-*.svg"), key=lambda path: (len(path.name), path.name))
    ]


def _found(results: dict[str, Any]) -> list[str]:
    """The conclusion, a table of accuracies, and where they come from."""
    answer, said = ("\n".join(f"- {each}" for each in results.get(name, ())) for name in ("answer", "conclusion"))
    rows = [
        (row["dataset"], row["regime"], row["method"], len(row["seeds"]), f"{row['rows']:,}", _spread(row["accuracy"]))
        for row in results["table"]
    ]
    header = ("dataset", "regime", "variant", "seeds", "texts", "accuracy")
    details = [
        f"<details><summary>{heading}</summary>\n\n{content}\n\n</details>"
        for heading, content in (("In detail", said), ("All accuracies", table(header, rows)))
    ]
    return [answer, *details, *([" ".join(results["notes"])] if results["notes"] else []), origin(results)]


def _spread(figure: dict[str, float | None]) -> str:
    return f"{figure['mean']:.4f}" if figure["sd"] is None else f"{figure['mean']:.4f} ± {figure['sd']:.4f}"
