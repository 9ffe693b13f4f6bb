"""Fit the calibration of the default encoder without training: a temperature and a curve per kind of task.

The rows are dev rows of public datasets; each dataset counts alike. Test rows are not read. It writes the table that is
part of the package.

    python -m maskmatch_lab.benchmarks.default_calibration --data FOLDER
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch import MaskMatcher
from maskmatch.config.tasks import TASKS
from maskmatch.files import write_text
from maskmatch.labels.calibration import Calibration
from maskmatch.model.default_calibration import FILE
from maskmatch.training.calibration import HeldOut, log_loss, minimise
from maskmatch.training.held_out import score_rows
from maskmatch_lab.benchmarks.common import label_names, load_split, parser, write_results

if TYPE_CHECKING:
    from numpy.typing import NDArray

METHOD = "mask-matching"
DATASETS = {
    "intent": ("banking77", "snips"),
    "topic": ("agnews", "newsgroups20", "naics1065"),
    "question": ("trec6", "trec50"),
    "sentiment": ("sst2", "sst5"),
    "entity-typing": ("crossner_typing",),
    "emotion": ("goemotions",),
    "relation": ("semeval2010_re", "fewrel_nyt25"),
    "stance": ("semeval16_stance", "vast"),
    "nli": ("rte", "snli_testonly"),
    "paraphrase": ("mrpc", "qqp_10k"),
    "word-in-context": ("wic_trainonly",),
}
ROWS = 1000
PRIOR = np.array([0.5, 0.5, 0.5])
"""The standard deviations of the prior of log temperature, slope and intercept, in units of the loss per row."""


def main() -> None:
    """Fit the table, and write it with its log loss before and after."""
    options = parser(__doc__ or "").parse_args()
    table: dict[str, Any] = {}
    cells = []
    for task, names in DATASETS.items():
        parts = {name: _scores(options.data, name, task) for name in names}
        found = fit(list(parts.values()))
        rows = sum(len(part) for part in parts.values())
        labels = round(float(np.exp(np.mean([np.log(part.scores.shape[1]) for part in parts.values()]))))
        fitted = replace(found, rows=rows, labels=labels, source="datasets")
        table[task] = {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in fitted.to_json(()).items()
            if name in ("temperature", "slope", "intercept", "labels", "rows", "source")
        }
        for name, part in parts.items():
            before, after = (_mean_loss(part, each) for each in (Calibration(), fitted))
            cells.append({"task": task, "dataset": name, "rows": len(part), "log_loss": [before, after]})
            print(cells[-1], table[task], flush=True)
    data = {"about": "zero-shot calibration of the default encoder, by method and task", "methods": {METHOD: table}}
    write_text(FILE, json.dumps(data, indent=1) + "\n")
    write_results("default_calibration", {"split": "dev", "method": METHOD, "table": table, "cells": cells})


def fit(parts: list[HeldOut]) -> Calibration:
    """The calibration that minimises the mean log loss over datasets."""
    mean = np.array([0.0, 1.0, 0.0])

    def loss(x: NDArray[np.float64]) -> float:
        losses = [log_loss(part.scores.astype(np.float64), part.targets, *x) / len(part) for part in parts]
        return 100 * (float(np.mean(losses)) + 0.01 * float(np.square((x - mean) / PRIOR).sum()))

    found = minimise(loss, mean)
    return Calibration(float(np.exp(found[0])), float(max(0.05, found[1])), float(found[2]))


def _mean_loss(part: HeldOut, calibration: Calibration) -> float:
    numbers = float(np.log(calibration.temperature)), calibration.slope, calibration.intercept
    return round(log_loss(part.scores.astype(np.float64), part.targets, *numbers) / len(part), 4)


def _scores(data: Any, name: str, task: str) -> HeldOut:
    """The scores of dev rows with names alone, without calibration."""
    rows = load_split(data, name, "dev", TASKS[task].fields)
    names = label_names(load_split(data, name, "train", TASKS[task].fields))
    assert rows.labels is not None
    some = np.sort(np.random.default_rng(0).permutation(len(rows))[:ROWS]).tolist()
    matcher = MaskMatcher.from_pretrained(labels=names, task=task, method=METHOD)
    held = score_rows(matcher.bank, [rows.texts[row] for row in some], [rows.labels[row] for row in some], "dev")
    known = held.targets >= 0
    return HeldOut(held.scores[known], held.targets[known], held.source)


if __name__ == "__main__":
    main()
