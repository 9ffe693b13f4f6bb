"""The choice of the default similarity: dot product, cosine with a fixed temperature, or with a learned one.

5 shots per label, three seeds, accuracy on dev; test splits are not read. The encoder is the bare one, because the
default's adapter was trained on one of the datasets.
"""

from __future__ import annotations

import itertools

from maskmatch import MaskMatcher, SimilarityConfig
from maskmatch.model.encoder import EMBEDDED_MODEL
from maskmatch_lab.benchmarks.common import (
    finished_cells,
    label_names,
    load_split,
    mean_and_sd,
    parser,
    shots,
    write_results,
)

SHOTS = 5
SEEDS = (0, 1, 2)
DATASETS = {"trec50": "question", "sst2": "sentiment", "snips": "intent"}
LEARNING_RATE = 2e-4
CHOICES = {
    "cosine, temperature 0.05": SimilarityConfig("cosine", 0.05),
    "cosine, temperature learned from 0.05": SimilarityConfig("cosine", 0.05, learn_temperature=True),
    "dot product": SimilarityConfig("dot", 1.0),
}


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--again", action="store_true", help="run finished cells once more")
    options = arguments.parse_args()
    cells = finished_cells("similarity", options.again)
    for dataset, task in DATASETS.items():
        train, dev = (load_split(options.data, dataset, split) for split in ("train", "dev"))
        for seed, (name, similarity) in itertools.product(SEEDS, CHOICES.items()):
            key = {"dataset": dataset, "similarity": name, "seed": seed}
            if any(key.items() <= cell.items() for cell in cells):
                continue
            few = shots(train, SHOTS, seed)
            matcher = MaskMatcher.from_pretrained(
                EMBEDDED_MODEL, labels=label_names(train), task=task, similarity=similarity
            )
            matcher.fit(few.texts, few.labels, seed=seed, learning_rate=LEARNING_RATE, calibrate=False)
            report = matcher.evaluate(dev.texts, dev.labels)
            cells.append(
                {
                    **key,
                    "accuracy": round(report.accuracy, 4),
                    "expected_calibration_error": round(report.expected_calibration_error or 0.0, 4),
                }
            )
            print(cells[-1], flush=True)
            _write(cells)


def _write(cells: list[dict[str, object]]) -> None:
    table = []
    for dataset in DATASETS:
        for name in CHOICES:
            chosen = [cell for cell in cells if cell["dataset"] == dataset and cell["similarity"] == name]
            if chosen:
                accuracies = [float(str(cell["accuracy"])) for cell in chosen]
                errors = [float(str(cell["expected_calibration_error"])) for cell in chosen]
                table.append(
                    {
                        "dataset": dataset,
                        "similarity": name,
                        "seeds": len(chosen),
                        "accuracy": mean_and_sd(accuracies),
                        "expected_calibration_error": mean_and_sd(errors),
                    }
                )
    write_results(
        "similarity",
        {
            "shots": SHOTS,
            "split": "dev",
            "encoder": EMBEDDED_MODEL,
            "learning_rate": LEARNING_RATE,
            "table": table,
            "cells": cells,
        },
    )


if __name__ == "__main__":
    main()
