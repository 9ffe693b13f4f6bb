"""What further marks would probably bring: the accuracy of a simple classifier on more and more marks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maskmatch.workbench.vectors import unit

if TYPE_CHECKING:
    from maskmatch.workbench.project import Project

MORE = 50
"""How many further marks the forecast is for."""

LEAST = 20
"""From how many marks on there is a curve."""

PARTS = (0.25, 0.4, 0.6, 0.8)
FOLDS, DRAWS = 5, 3


@dataclass(frozen=True)
class Curve:
    """Accuracy by the number of marks.

    Attributes:
        counts: Numbers of marks.
        accuracies: The accuracy with each of them, on other marks.
        marks: How many marks there are.
        more: How many further marks the forecast is for.
        gain: By how much the accuracy would probably rise with them.
    """

    counts: list[int]
    accuracies: list[float]
    marks: int
    more: int
    gain: float


def learning_curve(project: Project) -> Curve | None:
    """The curve of a logistic regression on the vectors of marked texts; None with too few marks."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold

    vectors = project.engine.vectors
    truth = {text: key for text, key in project.truth().items() if text < len(vectors)}
    counts = Counter(truth.values())
    truth = {text: key for text, key in truth.items() if counts[key] > 1}
    labels = np.array(list(truth.values()))
    if len(labels) < LEAST or len(set(labels.tolist())) < 2:
        return None
    rows = unit(vectors[list(truth)])
    folds = max(2, min(FOLDS, *Counter(labels.tolist()).values()))
    draw = np.random.default_rng(0)
    right: dict[int, list[float]] = {}
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(rows, labels):
        for part in (*PARTS, 1.0):
            for _ in range(DRAWS if part < 1 else 1):
                some = draw.permutation(train)[: max(2, round(part * len(train)))]
                if len(set(labels[some].tolist())) < 2:
                    continue
                found = LogisticRegression(C=10, max_iter=200).fit(rows[some], labels[some]).predict(rows[test])
                right.setdefault(len(some), []).append(float(np.mean(found == labels[test])))
    sizes = _merged(right)
    gain = _forecast(sizes, len(labels), MORE)
    return Curve(list(sizes), list(sizes.values()), len(labels), MORE, gain)


def _merged(right: dict[int, list[float]]) -> dict[int, float]:
    """The mean accuracy by size; folds differ by a row, so neighbouring sizes are one."""
    found: dict[int, list[float]] = {}
    for size in sorted(right):
        near = next((each for each in found if size - each <= 1), size)
        found.setdefault(near, []).extend(right[size])
    return {size: float(np.mean(values)) for size, values in found.items()}


def _forecast(sizes: dict[int, float], marks: int, more: int) -> float:
    """The gain of further marks, if accuracy is a constant less something that falls with the root of their number.

    >>> round(_forecast({16: 0.5, 64: 0.75}, 64, 36), 3)
    0.05
    """
    if len(sizes) < 2:
        return 0.0
    x, y = 1 / np.sqrt(np.array(list(sizes), float)), np.array(list(sizes.values()))
    slope = min(0.0, float(np.polyfit(x, y, 1)[0]))
    return float(min(slope * (1 / np.sqrt(marks + more) - 1 / np.sqrt(marks)), 1.0 - y[-1]))
