"""What the tests of studies share: stand-ins for their datasets, and cells that were never run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from comparison_tools import rows
from maskmatch.config.tasks import find_task
from maskmatch_lab.comparison import Cell, Comparison, Splits
from maskmatch_lab.comparison.cells import Answers, Figures
from maskmatch_lab.studies import Evidence, Study

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def stand_ins(study: Study, count: int = 9) -> dict[str, Splits]:
    """A toy dataset for each of a study's, of the same task."""
    found = {}
    for name, task in study.datasets.items():
        fields = find_task(task).fields
        splits = [
            ([text if fields == ("text",) else dict.fromkeys(fields, text) for text in texts], labels)
            for texts, labels in (rows(count, 0), rows(9, 1), rows(6, 2))
        ]
        found[name] = Splits.of(name, task, *splits)
    return found


def cell(dataset: str, method: str, regime: str, right: Sequence[bool], seed: int = 0, **figures: Any) -> Cell:
    """A cell that answered these rows rightly."""
    known: dict[str, Any] = {
        "rows": len(right),
        "accuracy": float(np.mean(right)),
        "macro_f1": float(np.mean(right)),
        "metric": "accuracy",
        "score": float(np.mean(right)),
        "expected_calibration_error": None,
        "training_texts": 0,
        "steps": 0,
        "training_seconds": 0.0,
        "texts_per_second": 100.0,
        "trained_parameters": 0,
        "peak_megabytes": None,
        "cut": 0,
    }
    answers = Answers(
        tuple(range(len(right))), ("yes", "no"), (0,) * len(right), tuple(0 if each else 1 for each in right)
    )
    return Cell(dataset, method, regime, seed, "", {}, Figures(**{**known, **figures}), answers, (), {})


def evidence_of(study: Study, accuracies: Mapping[tuple[str, str, str], float], items: int = 400) -> Evidence:
    """What would be found if these accuracies were measured: by dataset, variant and regime."""
    cells = []
    for number, ((dataset, method, regime), accuracy) in enumerate(accuracies.items()):
        order = np.random.default_rng(number).permutation(items)
        cells += [cell(dataset, method, regime, (order < accuracy * items).tolist(), seed) for seed in range(3)]
    comparison = Comparison(cells, study.reference, resamples=1000)
    return Evidence(comparison, stand_ins(study), None)


def all_places(study: Study) -> list[tuple[str, str, str]]:
    """The dataset, variant and regime of every cell of a study."""
    from maskmatch_lab.comparison import Regime

    return [
        (dataset, variant.name, Regime.of(regime).name)
        for part in study.parts
        for dataset, task in part.datasets.items()
        for variant in part.variants_for(task)
        for regime in part.regimes
    ]
