"""Few-shot accuracy with the default settings: banking77, 5 shots per label, three seeds, the full test set.

With the default encoder, with the same encoder without its adapter, and with half the steps, which shows how much
training the adapter saves.
"""

from __future__ import annotations

import itertools
from typing import Any

from maskmatch import MaskMatcher
from maskmatch.model.encoder import DEFAULT_MODEL, EMBEDDED_MODEL
from maskmatch_lab.benchmarks.common import (
    finished_cells,
    label_names,
    load_split,
    mean_and_sd,
    parser,
    shots,
    usual_epochs,
    write_results,
)

DATASET = "banking77"
SHOTS = 5
SEEDS = (0, 1, 2)
WAYS = {
    "default": (DEFAULT_MODEL, 1.0),
    "default, half the steps": (DEFAULT_MODEL, 0.5),
    "without the adapter": (EMBEDDED_MODEL, 1.0),
}


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--again", action="store_true", help="run finished cells once more")
    options = arguments.parse_args()
    train, test = (load_split(options.data, DATASET, split) for split in ("train", "test"))
    usual = usual_epochs(len(shots(train, SHOTS, 0)), len(label_names(train)))
    keys = {
        (seed, way): {"way": way, "seed": seed, "epochs": share * usual}
        for seed, (way, (_, share)) in itertools.product(SEEDS, WAYS.items())
    }
    finished = finished_cells("few_shot", options.again)
    cells = [cell for cell in finished if any(key.items() <= cell.items() for key in keys.values())]
    for (seed, way), key in keys.items():
        if any(key.items() <= cell.items() for cell in cells):
            continue
        few, (model, share) = shots(train, SHOTS, seed), WAYS[way]
        matcher = MaskMatcher.from_pretrained(model, labels=label_names(train), task="intent")
        matcher.fit(few.texts, few.labels, seed=seed, epochs=share * usual, calibrate=False)
        report = matcher.evaluate(test.texts, test.labels)
        assert matcher.training_ is not None
        cells.append(
            {
                **key,
                "accuracy": round(report.accuracy, 4),
                "macro_f1": round(report.macro_f1, 4),
                "expected_calibration_error": round(report.expected_calibration_error or 0.0, 4),
                "steps": matcher.training_.steps,
                "training_seconds": matcher.training_.seconds,
            }
        )
        print(cells[-1], flush=True)
        _write(cells, len(test), matcher.training_.config)


def _write(cells: list[dict[str, Any]], rows: int, training: dict[str, Any]) -> None:
    table = []
    for way, (model, _) in WAYS.items():
        own = [cell for cell in cells if cell["way"] == way]
        if own:
            figures = {
                name: mean_and_sd([float(cell[name]) for cell in own])
                for name in ("accuracy", "macro_f1", "expected_calibration_error", "training_seconds")
            }
            table.append({"way": way, "encoder": model, "seeds": len(own), "steps": own[0]["steps"], **figures})
    settings = {name: value for name, value in training.items() if name not in ("seed", "epochs")}
    write_results(
        "few_shot",
        {
            "dataset": DATASET,
            "shots": SHOTS,
            "split": "test",
            "rows": rows,
            "training": settings,
            "table": table,
            "cells": cells,
        },
    )


if __name__ == "__main__":
    main()
