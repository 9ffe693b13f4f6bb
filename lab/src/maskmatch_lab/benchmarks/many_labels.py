"""The loss in accuracy with sampled labels: naics1065 (1,063 labels), one shot per label, on dev.

The encoder is the bare one, because the default's adapter was trained on this dataset. The time and memory of many
labels are measured by ``maskmatch_lab.benchmarks.speed``, together with other libraries.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from maskmatch import MaskMatcher
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

if TYPE_CHECKING:
    from maskmatch.data import Examples

DATASET = "naics1065"
SEEDS = (0, 1, 2)
WAYS = ("full", "sampled")


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--again", action="store_true", help="run finished cells once more")
    options = arguments.parse_args()
    cells = finished_cells("many_labels", options.again)
    train, dev = (load_split(options.data, DATASET, split) for split in ("train", "dev"))
    for seed, way in itertools.product(SEEDS, WAYS):
        if not any((cell["seed"], cell["way"]) == (seed, way) for cell in cells):
            cells.append(_accuracy(train, dev, seed, way))
            print(cells[-1], flush=True)
            _write(cells)


def _accuracy(train: Examples, dev: Examples, seed: int, way: str) -> dict[str, Any]:
    few = shots(train, 1, seed)
    matcher = MaskMatcher.from_pretrained(EMBEDDED_MODEL, labels=label_names(train))
    matcher.fit(few.texts, few.labels, seed=seed, label_encoding=way, calibrate=False)
    assert matcher.training_ is not None
    return {
        "seed": seed,
        "way": way,
        "accuracy": round(matcher.evaluate(dev.texts, dev.labels).accuracy, 4),
        "steps": matcher.training_.steps,
        "seconds": matcher.training_.seconds,
    }


def _write(cells: list[dict[str, Any]]) -> None:
    accuracy = {
        way: mean_and_sd([cell["accuracy"] for cell in cells if cell["way"] == way])
        for way in WAYS
        if any(cell["way"] == way for cell in cells)
    }
    write_results("many_labels", {"dataset": DATASET, "accuracy": accuracy, "cells": cells})


if __name__ == "__main__":
    main()
