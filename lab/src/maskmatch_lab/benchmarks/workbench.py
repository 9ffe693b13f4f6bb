"""The workbench: how long its pages wait for predictions, and how many marks its queue saves.

Speed: a project of 5,000 and one of 100,000 texts. Marks: texts are marked with their true labels, 20 at a time; the
queue chooses them, and the classifier is trained after each round; beside it, texts drawn at random.

    python -m maskmatch_lab.benchmarks.workbench --data FOLDER [--only marks]
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch import MaskMatcher
from maskmatch.labels import LabelSet
from maskmatch.workbench import edits
from maskmatch.workbench.browse import Filter, find, shown
from maskmatch.workbench.project import Project
from maskmatch.workbench.queue import suggest
from maskmatch.workbench.records import Mark
from maskmatch_lab.benchmarks.common import finished_cells, label_names, load_split, parser, write_results

if TYPE_CHECKING:
    from collections.abc import Iterator

    from maskmatch.data import Examples

DATASETS = {"agnews": "topic", "banking77": "intent"}
SEEDS = (10, 11, 12)
PER_ROUND, ROUNDS, POOL_ROWS, TEST_ROWS = 20, 5, 3_000, 1_000
QUEUE_ROUNDS = 3
"""After 60 % of the marks: the bar is that the queue is then as good as random marks are at the end."""

FEW, MANY = 5_000, 100_000
REPEATS = 7
WHO = "simulated"
TRAINING: dict[str, Any] = {"calibrate": False}


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--only", choices=("speed", "marks"), help="one part only")
    options = arguments.parse_args()
    cells = finished_cells("workbench")
    if options.only in (None, "speed"):
        for count in (FEW, MANY):
            key = {"part": "speed", "texts": count}
            if not any(key.items() <= cell.items() for cell in cells):
                _keep(cells, {**key, **_speed(options.data, count)})
    if options.only in (None, "marks"):
        for seed in SEEDS:
            for name in DATASETS:
                for way in ("random", "queue"):
                    key = {"part": "marks", "dataset": name, "way": way, "seed": seed}
                    if not any(key.items() <= cell.items() for cell in cells):
                        _keep(cells, {**key, **_marks(options.data, name, way, seed)})


def _keep(cells: list[dict[str, Any]], cell: dict[str, Any]) -> None:
    cells.append(cell)
    print(cell, flush=True)
    write_results("workbench", {"per_round": PER_ROUND, "rounds": ROUNDS, "cells": cells})


# -- speed ---------------------------------------------------------------------------------------------------


def _speed(data: Path, count: int) -> dict[str, Any]:
    """Seconds that a page waits, in the process of the server."""
    train = load_split(data, "agnews", "train")
    texts = [str(text) for text in train.texts]
    rows = [{"text": f"{texts[number % len(texts)]} {number // len(texts) or ''}".strip()} for number in range(count)]
    names = label_names(load_split(data, "banking77", "train"))[:20]  # more labels than agnews has
    with _project("topic") as project:
        started = time.perf_counter()
        project.start_labels(LabelSet.of(names))
        project.import_rows(rows)
        imported = time.perf_counter()
        project.engine.wait(36_000)
        encoded = time.perf_counter()
        labels = project.labels
        shown(project, find(project, Filter())[:50])
        ready = time.perf_counter()
        first = labels.labels[0]
        waits = {
            "rename": lambda number: project.engine.preview(
                labels, edits.change(labels, first.key, name=f"{first.name} {number}").labels, {}
            ),
            "filter by label": lambda number: _page(project, Filter(label=labels.labels[number].key)),
            "filter by probability": lambda number: _page(project, Filter(least=0.1 * number, order="uncertain")),
            "search": lambda number: _page(
                project, Filter(words=("oil", "game", "win", "price", "war", "new", "us")[number])
            ),
            "next page": lambda number: shown(project, find(project, Filter())[50 * number : 50 * number + 50]),
        }
        return {
            "seconds_to_import": round(imported - started, 2),
            "seconds_to_encode": round(encoded - imported, 2),
            "seconds_after_encoding": round(ready - encoded, 3),
            "milliseconds": {
                name: round(1000 * statistics.median(_seconds(work, number) for number in range(REPEATS)), 1)
                for name, work in waits.items()
            },
        }


def _page(project: Project, wanted: Filter) -> Any:
    return shown(project, find(project, wanted)[:50])


def _seconds(work: Any, number: int) -> float:
    started = time.perf_counter()
    work(number)
    return time.perf_counter() - started


@contextmanager
def _project(task: str) -> Iterator[Project]:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder) / "project", task=task)
        try:
            yield project
        finally:
            project.close()


# -- marks ---------------------------------------------------------------------------------------------------


def _marks(data: Path, name: str, way: str, seed: int) -> dict[str, Any]:
    """Test accuracy after rounds of marks."""
    train, test = (load_split(data, name, split) for split in ("train", "test"))
    names = label_names(train)
    pool, judged = _some(train, POOL_ROWS, seed), _some(test, TEST_ROWS, seed)
    place = {label: number for number, label in enumerate(names)}
    with _project(DATASETS[name]) as project:
        labels = project.start_labels(LabelSet.of(names))
        project.import_rows([{"text": str(text)} for text, _ in pool])
        project.engine.wait(36_000)
        key_of = {label: labels.labels[place[label]].key for label in names}
        order = random.Random(seed).sample(range(len(pool)), PER_ROUND * ROUNDS)
        accuracies: dict[str, float] = {}
        for number in range(1, (ROUNDS if way == "random" else QUEUE_ROUNDS) + 1):
            for turn in range(PER_ROUND):
                text, reason = order[PER_ROUND * (number - 1) + turn], "random"
                if way == "queue":
                    found = suggest(project, WHO)
                    assert found is not None
                    text, reason = found.text, found.reason
                project.store.mark([Mark(text, WHO, (key_of[pool[text][1]],), reason)], "marked", who=WHO)
            if way == "random" and number not in (QUEUE_ROUNDS, ROUNDS):
                continue
            matcher = _trained(project, seed)
            predicted = matcher.predict([text for text, _ in judged])
            right = [found == key_of[label] for found, (_, label) in zip(predicted, judged, strict=True)]
            accuracies[str(PER_ROUND * number)] = round(float(np.mean(right)), 4)
            if way == "queue" and number < QUEUE_ROUNDS:
                _use(project, matcher)
        return {"pool": len(pool), "rows": len(judged), "accuracy": accuracies}


def _trained(project: Project, seed: int) -> MaskMatcher:
    truth = project.truth()
    matcher = MaskMatcher.from_pretrained(labels=project.labels.inside(), task=project.task, verbose=False)
    return matcher.fit(project.store.texts(list(truth)), list(truth.values()), seed=seed, **TRAINING)


def _use(project: Project, matcher: MaskMatcher) -> None:
    """Predict with a classifier from now on, as if it had been trained on the page."""
    run = project.store.start_run("train", WHO)
    matcher.save_pretrained(project.folder / f"run-{run}")
    project.store.finish_run(run, "done", {}, f"run-{run}")
    project.choose(run)
    project.engine.wait(36_000)


def _some(rows: Examples, count: int, seed: int) -> list[tuple[Any, Any]]:
    places = np.random.default_rng(seed).permutation(len(rows))[:count].tolist()
    assert rows.labels is not None
    return [(rows.texts[row], rows.labels[row]) for row in places]


if __name__ == "__main__":
    main()
