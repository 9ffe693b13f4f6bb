"""The label check: accuracy before and after following all of its advice, with names as they are and made worse.

The check sees train rows; accuracy is that on test rows.

    python -m maskmatch_lab.benchmarks.label_check --data FOLDER
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch import Label, LabelSet, MaskMatcher, check_labels
from maskmatch_lab.benchmarks.common import finished_cells, label_names, load_split, parser, write_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.data import Examples

DATASETS = {"agnews": "topic", "trec50": "question", "banking77": "intent"}
ROWS = 600
SEED = 0


def main() -> None:
    """Run the cells that are not finished."""
    options = parser(__doc__ or "").parse_args()
    cells = finished_cells("label_check")
    for name, task in DATASETS.items():
        train, test = (load_split(options.data, name, split) for split in ("train", "test"))
        names = label_names(train)
        for how, worse in (("as they are", False), ("made worse", True)):
            key = {"dataset": name, "names": how}
            if any(key.items() <= cell.items() for cell in cells):
                continue
            shown = worsened(names) if worse else names
            labels = LabelSet(tuple(Label(id_, name_) for id_, name_ in zip(names, shown, strict=True)))
            cells.append({**key, **_cell(labels, task, _some(train), _some(test))})
            print(cells[-1], flush=True)
            write_results("label_check", {"rows": ROWS, "cells": cells})


def worsened(names: Sequence[str]) -> list[str]:
    """Names of which three fifths are made worse: a number, no vowels, or the first letters.

    Example:
        >>> len(set(worsened(["card lost", "refund", "exchange rate", "top up", "balance"])))
        5
    """
    rng, found = random.Random(SEED), []
    for number, name in enumerate(names):
        draw = rng.random()
        new = name
        if draw < 0.2:
            new = f"topic {number}"
        elif draw < 0.4:
            new = "".join(char for char in name if char not in "aeiou").strip() or name
        elif draw < 0.6:
            new = name.split()[0][:4]
        while new in found:
            new = f"{new} {number}"
        found.append(new)
    return found


def _cell(labels: LabelSet, task: str, train: Examples, test: Examples) -> dict[str, Any]:
    matcher = MaskMatcher.from_pretrained(labels=labels, task=task)
    report = check_labels(matcher, test=(train.texts, train.labels))
    improved = MaskMatcher.from_pretrained(labels=report.improved, task=task)
    before, after = (each.evaluate(test.texts, test.labels).accuracy for each in (matcher, improved))
    return {
        "labels": len(labels),
        "accuracy": [round(before, 4), round(after, 4)],
        "advice": dict(Counter(each.kind for each in report.advice)),
        "findings": dict(Counter(each.kind for each in report.findings)),
    }


def _some(rows: Examples) -> Examples:
    assert rows.labels is not None
    places = np.sort(np.random.default_rng(SEED).permutation(len(rows))[:ROWS]).tolist()
    return type(rows)([rows.texts[row] for row in places], [rows.labels[row] for row in places])


if __name__ == "__main__":
    main()
