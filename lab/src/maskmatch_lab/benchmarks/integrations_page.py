"""The figures of the page about scikit-learn, Ray and the workbench."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from maskmatch.evaluation.display import counted
from maskmatch_lab.benchmarks.markdown import origin, results_of, table

if TYPE_CHECKING:
    from collections.abc import Mapping

NOT_YET = "Not measured yet."


def figures() -> str:
    """All sections of the page."""
    return "\n\n".join(
        [
            "## scikit-learn",
            _section("sklearn", _grid_search),
            "## Ray Data",
            _section("ray", _ray),
            "## Workbench",
            _section("workbench", _workbench),
        ]
    )


def _section(name: str, blocks: Any) -> str:
    results = results_of(name)
    return NOT_YET if results is None else "\n\n".join([blocks(results), origin(results)])


def _grid_search(results: Mapping[str, Any]) -> str:
    medians = results["medians"]
    about = (
        f"A grid search of {results['settings']} settings in {results['folds']} folds on {results['texts']} texts, "
        f"beside the same trainings by hand, in turns; medians of {results['repeats']} rounds."
    )
    rows = [
        ("grid search", f"{medians['grid_search_seconds']:.0f} s"),
        ("by hand", f"{medians['by_hand_seconds']:.0f} s"),
        ("ratio", f"{results['time_ratio']:.2f}"),
        (
            "ratio to the trainings and predictions alone, without loading",
            f"{results['time_ratio_without_loading']:.2f}",
        ),
    ]
    return f"{about}\n\n{table(('measured', ''), rows)}"


def _ray(results: Mapping[str, Any]) -> str:
    equality, speed = results["equality"], results["texts_per_second"]
    about = (
        f"{results['rows']:,} rows on one machine: two actors of one thread each, beside one process of two "
        f"threads, in turns; medians of {results['rounds']} rounds. In a further run, a worker was killed after "
        f"{results['worker_killed_after_partitions']} partitions."
    )
    once = "yes" if equality["every_row_once"] else "no"
    rows = [
        ("every row answered once, though a worker was killed", once),
        ("rows with the answer of one process", f"{equality['same_answer']:,} of {equality['rows']:,}"),
        ("Ray, texts per second", f"{speed['ray']:.0f}"),
        ("one process, texts per second", f"{speed['one_process']:.0f}"),
        ("ratio", f"{results['ratio']:.2f}"),
        ("ratio after the start of Ray and of the process", f"{results['ratio_after_start']:.2f}"),
    ]
    return f"{about}\n\n{table(('measured', ''), rows)}"


def _workbench(results: Mapping[str, Any]) -> str:
    cells = results["cells"]
    speed = [cell for cell in cells if cell["part"] == "speed"]
    blocks = []
    if speed:
        kinds = list(speed[0]["milliseconds"])
        rows = [
            (
                "from the encoded texts to the first page",
                *(f"{1000 * cell['seconds_after_encoding']:.0f} ms" for cell in speed),
            ),
            *((kind, *(f"{cell['milliseconds'][kind]:.0f} ms" for cell in speed)) for kind in kinds),
        ]
        blocks += [
            "How long the server takes for what a page waits for, with 20 labels.",
            table(("wait for", *(f"{cell['texts']:,} texts" for cell in speed)), rows),
        ]
    marks: dict[tuple[str, str], list[Mapping[str, float]]] = {}
    for cell in cells:
        if cell["part"] == "marks":
            marks.setdefault((cell["dataset"], cell["way"]), []).append(cell["accuracy"])
    if marks:
        counts = sorted({int(count) for own in marks.values() for each in own for count in each})
        rows = [
            (
                name,
                way,
                counted(len(own), "draw"),
                *(_mean([each[str(count)] for each in own if str(count) in each]) for count in counts),
            )
            for (name, way), own in marks.items()
        ]
        blocks += [
            "Test accuracy after marks with the true label: texts that the queue chose, or drawn at random.",
            table(("dataset", "texts", "", *(f"{count} marks" for count in counts)), rows),
        ]
    return "\n\n".join(blocks)


def _mean(values: list[float]) -> str:
    return f"{fmean(values):.3f}" if values else ""
