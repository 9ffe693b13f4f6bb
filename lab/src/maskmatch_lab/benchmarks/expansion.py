"""Zero-shot accuracy with label names alone, and with automatically found examples and words.

Nothing is trained. Examples come from unlabelled training texts, another draw for each seed; words come from the
encoder's vocabulary. The choice and the weight of examples were tuned on dev rows of the same datasets, not on test
rows.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch import MaskMatcher, SimilarityConfig, expand_labels
from maskmatch.config.tasks import TASKS
from maskmatch_lab.benchmarks.common import finished_cells, label_names, load_split, mean_and_sd, parser, write_results

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from maskmatch.labels import LabelsLike

DATASETS = {
    "banking77": "intent",
    "trec50": "question",
    "agnews": "topic",
    "newsgroups20": "topic",
    "goemotions": "emotion",
}
NAMES, EXAMPLES, WORDS = "names", "names and examples from unlabelled texts", "names and words of the vocabulary"
SEEDS = (0, 1, 2)
UNLABELLED = 1000
TEST_ROWS = 1000
PROTOCOL = (
    f"At most {TEST_ROWS} test rows, a fixed draw; at most {UNLABELLED} unlabelled training texts, a draw for each "
    "seed; 20 examples per label; 5 words per label, joined by their maximum."
)


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--again", action="store_true", help="run finished cells once more")
    arguments.add_argument("--datasets", nargs="+", choices=list(DATASETS), default=list(DATASETS))
    options = arguments.parse_args()
    cells = finished_cells("expansion", options.again)
    for dataset in options.datasets:
        wanted = [(NAMES, 0), (WORDS, 0), *((EXAMPLES, seed) for seed in SEEDS)]
        missing = [key for key in wanted if not any(_key(cell) == (dataset, *key) for cell in cells)]
        if missing:
            _run(cells, options.data, dataset, missing)


def _key(cell: dict[str, Any]) -> tuple[str, str, int]:
    return cell["dataset"], cell["way"], cell["seed"]


def _run(cells: list[dict[str, Any]], data: Path, dataset: str, wanted: list[tuple[str, int]]) -> None:
    """Evaluate some ways on a dataset; its test texts are encoded once."""
    task = TASKS[DATASETS[dataset]]
    train, test = (load_split(data, dataset, split, task.fields) for split in ("train", "test"))
    assert test.labels is not None
    names = label_names(train)
    matcher = MaskMatcher.from_pretrained(labels=names, task=task)
    rows = _draw(len(test), TEST_ROWS, seed=0)
    vectors = matcher.pipeline.all_vectors(matcher.pipeline.tokenize([test.texts[row] for row in rows]))
    truth = np.array([names.index(test.labels[row]) for row in rows])
    for way, seed in wanted:
        labels: LabelsLike = names
        if way == EXAMPLES:
            texts = [train.texts[row] for row in _draw(len(train), UNLABELLED, seed)]
            labels = expand_labels(matcher, texts=texts).label_set
        elif way == WORDS:
            labels = expand_labels(matcher, sources=["vocabulary"]).label_set
        accuracy = _accuracy(labels, DATASETS[dataset], vectors, truth)
        cell = {"dataset": dataset, "way": way, "seed": seed, "rows": len(rows), "labels": len(names)}
        cells.append({**cell, "accuracy": round(accuracy, 4)})
        print(cells[-1], flush=True)
        result = {"split": "test", "protocol": PROTOCOL, "summary": _summary(cells), "cells": cells}
        write_results("expansion", result)


def _draw(rows: int, most: int, seed: int) -> list[int]:
    """A draw of row numbers, or all of them."""
    return sorted(random.Random(seed).sample(range(rows), min(rows, most)))


def _accuracy(labels: LabelsLike, task: str, vectors: NDArray[np.float32], truth: NDArray[np.int64]) -> float:
    """The accuracy on encoded test texts, (n, masks, dim)."""
    matcher = MaskMatcher.from_pretrained(labels=labels, task=task, similarity=SimilarityConfig(phrases="max"))
    return float((matcher.pipeline.scorer.scores(vectors).argmax(axis=1) == truth).mean())


def _summary(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """The accuracy of each way on each dataset, and its mean gain over names alone once all datasets have run."""
    summary: dict[str, Any] = {}
    for way in (NAMES, EXAMPLES, WORDS):
        by_dataset = {
            dataset: mean_and_sd([cell["accuracy"] for cell in own])
            for dataset in DATASETS
            if (own := [cell for cell in cells if (cell["dataset"], cell["way"]) == (dataset, way)])
        }
        summary[way] = {"accuracy": by_dataset}
        if way != NAMES:
            names = summary[NAMES]["accuracy"]
            gains = {
                name: round(by_dataset[name]["mean"] - names[name]["mean"], 4) for name in by_dataset if name in names
            }
            summary[way]["gain"] = gains
            if len(gains) == len(DATASETS):
                summary[way]["mean gain"] = round(sum(gains.values()) / len(gains), 4)
    return summary


if __name__ == "__main__":
    main()
