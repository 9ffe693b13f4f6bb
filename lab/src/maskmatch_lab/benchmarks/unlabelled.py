"""Learning from unlabelled texts: zero-shot accuracy with names alone, and adapted to unlabelled train texts.

Two methods, which read the mask or the mean of the same prompted text. No label of a train text is used. Each number of
texts is drawn with several seeds; the largest with one, because it is most of the train split.
"""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Any

from maskmatch import MaskMatcher
from maskmatch.config.tasks import TASKS
from maskmatch_lab.benchmarks.common import (
    finished_cells,
    label_names,
    load_split,
    mean_and_sd,
    parser,
    write_results,
)

if TYPE_CHECKING:
    from pathlib import Path

DATASETS = {
    "trec6": "question",
    "trec50": "question",
    "banking77": "intent",
    "sst2": "sentiment",
    "sst5": "sentiment",
    "agnews": "topic",
    "goemotions": "emotion",
    "semeval2010_re": "relation",
    "crossner_typing": "entity-typing",
    "newsgroups20": "topic",
}
METHODS = ("mask-matching", "mean-matching")
DRAWS = {100: (0, 1, 2), 1000: (0, 1, 2), 4000: (0,)}
"""The numbers of unlabelled texts, and the seeds of their draws."""

TEST_TEXTS = 1000


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--again", action="store_true", help="run finished cells once more")
    options = arguments.parse_args()
    logging.getLogger("maskmatch").setLevel(logging.ERROR)  # the decision is in the cells
    cells = finished_cells("unlabelled", options.again)
    for dataset, task in DATASETS.items():
        for method in METHODS:
            if not any((cell["dataset"], cell["method"]) == (dataset, method) for cell in cells):
                cells += _cells(options.data, dataset, task, method)
                write_results("unlabelled", {"split": "test", "summary": summary(cells), "cells": cells})


def _cells(data: Path, dataset: str, task: str, method: str) -> list[dict[str, Any]]:
    """The accuracy with names alone, and adapted to each draw of texts, whatever the texts themselves advise."""
    train, test = (load_split(data, dataset, split, TASKS[task].fields) for split in ("train", "test"))
    assert test.labels is not None
    rows = random.Random(0).sample(range(len(test)), min(TEST_TEXTS, len(test)))
    texts, truth = [test.texts[row] for row in rows], [test.labels[row] for row in rows]
    matcher = MaskMatcher.from_pretrained(labels=label_names(train), task=task, method=method, verbose=False)
    key = {"dataset": dataset, "method": method, "labels": len(matcher.labels or ()), "test_texts": len(texts)}
    cells = [{**key, "texts": 0, "seed": None, **_measured(matcher, texts, truth)}]
    for count, seeds in DRAWS.items():
        for seed in seeds:
            drawn = random.Random(seed).sample(range(len(train)), min(count, len(train)))
            matcher.adapt([train.texts[row] for row in drawn], force=True)
            assert matcher.adaptation_ is not None
            found = matcher.adaptation_
            decided = {"agreement": found.agreement, "advised": found.advised, "seconds": found.seconds}
            cells.append({**key, "texts": count, "seed": seed, **_measured(matcher, texts, truth), **decided})
            print(cells[-1], flush=True)
    return cells


def _measured(matcher: MaskMatcher, texts: list[Any], truth: list[Any]) -> dict[str, float]:
    report = matcher.evaluate(texts, truth)
    error = report.expected_calibration_error
    return {"accuracy": round(report.accuracy, 4), "calibration_error": round(error or 0.0, 4)}


def summary(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Per dataset and method: the accuracy with names alone, adapted, and as the classifier itself decides."""
    rows = []
    for dataset in DATASETS:
        for method in METHODS:
            own = [cell for cell in cells if (cell["dataset"], cell["method"]) == (dataset, method)]
            if not own:
                continue
            alone = next(cell["accuracy"] for cell in own if cell["texts"] == 0)
            row: dict[str, Any] = {"dataset": dataset, "method": method, "names alone": alone}
            for count in DRAWS:
                drawn = [cell for cell in own if cell["texts"] == count]
                row[f"adapted to {count}"] = mean_and_sd([cell["accuracy"] for cell in drawn])
                kept = [cell["accuracy"] if cell["advised"] else alone for cell in drawn]
                row[f"as decided with {count}"] = mean_and_sd(kept)
            rows.append(row)
    return rows


if __name__ == "__main__":
    main()
