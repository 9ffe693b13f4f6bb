"""One page per study in docs/results/studies, from the results files of the studies that were run."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from maskmatch_lab.benchmarks.markdown import bullets, details, origin, table, with_spread
from maskmatch_lab.benchmarks.study_leads import LEAD_PICTURES, lead
from maskmatch_lab.paths import RESULTS
from maskmatch_lab.studies import STUDIES

if TYPE_CHECKING:
    from pathlib import Path

    from maskmatch_lab.studies import Study

NOT_RUN = "Not run yet."
WRITTEN = "<!-- written by `make docs` from lab/results -->"


def pages(folder: Path) -> dict[Path, str]:
    """The page of each study, with its pictures, by the file it goes to."""
    found: dict[Path, str] = {}
    for study in STUDIES.values():
        found[folder / f"{study.name}.md"] = page(study)
        for number, source in enumerate(_pictures(study), start=1):
            found[folder / _picture_name(study, number)] = source.read_text(encoding="utf-8")
    return found


def index() -> str:
    """A table of all studies: question, first sentence of the answer."""
    rows = []
    for study in STUDIES.values():
        results = read(study)
        question = study.question if results is None else results["question"]
        answer = NOT_RUN if results is None else lead(results)[0]
        rows.append((f"[{study.name}](studies/{study.name}.md)", question, answer))
    return table(("study", "question", "short answer"), rows)


def read(study: Study) -> dict[str, Any] | None:
    """The results of a study; None if it was not run."""
    path = RESULTS / "studies" / study.name / "results.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def page(study: Study) -> str:
    """The page of a study: question, short answer, one picture, then the details."""
    results = read(study)
    command = f"```bash\nmaskmatch study {study.name} --data FOLDER -o OUT\n```"
    if results is None:
        cost = f"It runs {study.cells} cells, about {study.minutes} minutes on two cores."
        return "\n\n".join([WRITTEN, f"# Study: {study.name}", f"**{study.question}**", NOT_RUN, cost, command]) + "\n"
    blocks = [
        WRITTEN,
        f"# Study: {study.name}",
        f"**{results['question']}**",
        " ".join(lead(results)),
        *_picture(study, LEAD_PICTURES.get(study.name, 1), results["question"]),
        "## Findings",
        bullets(results.get("answer", [])),
        "A difference counts if p < 0.05 and every seed agrees on its sign; [how differences are "
        "tested](../../explanation/statistics.md).",
        "## Accuracies",
        *accuracy_tables(results["table"]),
        "## All tests",
        bullets(results["conclusion"]),
        *_more_pictures(study),
        "## How it was run",
        command,
        f"{len(results['cells'])} cells, {minutes(results):.0f} minutes of training and prediction in total.",
        datasets_table(results["datasets"]),
        "What was left out:",
        bullets(results["cut"]),
        *(["Notes:", bullets(results["notes"])] if results["notes"] else []),
        origin(results),
    ]
    return "\n\n".join(blocks) + "\n"


def minutes(results: dict[str, Any]) -> float:
    """The time of training and prediction over all cells, encoding of labels included."""
    figures = [cell["figures"] for cell in results["cells"]]
    speeds = [(each["rows"], each["texts_per_second"]) for each in figures]
    taken = sum(each["training_seconds"] for each in figures) + sum(rows / speed for rows, speed in speeds if speed)
    return float(taken / 60)


def accuracy_tables(rows: list[dict[str, Any]]) -> list[str]:
    """A table per training size: variants down, datasets across."""
    blocks = ["Accuracy on test rows, mean ± sd over seeds."]
    for regime in dict.fromkeys(row["regime"] for row in rows):
        own = [row for row in rows if row["regime"] == regime]
        datasets = list(dict.fromkeys(row["dataset"] for row in own))
        cells = {(row["method"], row["dataset"]): row for row in own}
        lines = [
            (
                variant,
                *(
                    with_spread(cells[variant, dataset]["accuracy"], 3) if (variant, dataset) in cells else ""
                    for dataset in datasets
                ),
            )
            for variant in dict.fromkeys(row["method"] for row in own)
        ]
        seeds = sorted({len(row["seeds"]) for row in own})
        told = " or ".join(map(str, seeds))
        blocks += [f"### {regime[:1].upper()}{regime[1:]}", f"Seeds: {told}.", table(("variant", *datasets), lines)]
    return blocks


def datasets_table(datasets: list[dict[str, Any]]) -> str:
    """The datasets of a study with their sizes."""
    rows = [(each["name"], each["task"], each["labels"], f"{each['measured']:,}") for each in datasets]
    return table(("dataset", "task", "labels", "test rows"), rows)


def _pictures(study: Study) -> list[Path]:
    """The pictures that a run has left beside its results, in their order."""
    folder = RESULTS / "studies" / study.name
    return sorted(folder.glob("*.svg"), key=lambda path: [int(part) for part in re.findall(r"\d+", path.name)])


def _picture_name(study: Study, number: int) -> str:
    return f"pictures/{study.name}-{number}.svg"


def _title(path: Path) -> str:
    """What a picture shows, for readers who cannot see it."""
    found = re.search(r'aria-label="([^"]*)"', path.read_text(encoding="utf-8"))
    return found[1] if found else path.stem


def _picture(study: Study, number: int, otherwise: str) -> list[str]:
    paths = _pictures(study)
    if not paths:
        return []
    number = min(number, len(paths))
    return [f"![{_title(paths[number - 1]) or otherwise}]({_picture_name(study, number)})"]


def _more_pictures(study: Study) -> list[str]:
    """All pictures but the one at the top, closed until they are asked for."""
    paths = _pictures(study)
    leading = min(LEAD_PICTURES.get(study.name, 1), len(paths))
    others = [
        f"![{_title(path)}]({_picture_name(study, number)})"
        for number, path in enumerate(paths, start=1)
        if number != leading
    ]
    return ["## More pictures", details(f"{len(others)} pictures", "\n\n".join(others))] if others else []
