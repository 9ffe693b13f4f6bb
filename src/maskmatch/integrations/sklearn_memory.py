"""A sample of the rows that an estimator was trained on, which ``partial_fit`` trains on again."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import numpy as np

ROWS_PER_LABEL = 20
"""How many rows of each label are remembered."""


class Memory:
    """Up to :data:`ROWS_PER_LABEL` rows of each label, all of its rows so far being equally likely."""

    def __init__(self) -> None:
        self._rows: dict[Any, list[tuple[Any, float]]] = {}
        self._seen: Counter[Any] = Counter()
        self._draws = np.random.default_rng(0)

    def add(self, texts: list[Any], labels: list[Any], weights: list[float] | None) -> None:
        """Remember rows, some of them in the place of earlier ones (reservoir sampling)."""
        for text, label, weight in zip(texts, labels, weights or [1.0] * len(texts), strict=True):
            rows = self._rows.setdefault(label, [])
            self._seen[label] += 1
            if len(rows) < ROWS_PER_LABEL:
                rows.append((text, weight))
            elif (place := int(self._draws.integers(self._seen[label]))) < ROWS_PER_LABEL:
                rows[place] = text, weight

    def with_others(
        self, texts: list[Any], labels: list[Any], weights: list[float] | None
    ) -> tuple[list[Any], list[Any], list[float] | None]:
        """New rows, followed by those that are remembered."""
        known = [(text, label, weight) for label, rows in self._rows.items() for text, weight in rows]
        weighted = weights is not None or any(weight != 1.0 for _, _, weight in known)
        all_weights = [*(weights or [1.0] * len(texts)), *(weight for _, _, weight in known)]
        return (
            [*texts, *(text for text, _, _ in known)],
            [*labels, *(label for _, label, _ in known)],
            all_weights if weighted else None,
        )

    def copy(self) -> Memory:
        """A memory of its own."""
        return copy.deepcopy(self)
