"""Scores of label sets that are computed before any training, from names alone: what the names study puts to the test.

A score takes a dataset (of which it reads the labels, never texts) and an encoder, and is higher the more its names
should be worth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from maskmatch.classifier import MaskMatcher
from maskmatch.labels import Label, LabelSet
from maskmatch.studies.names import numbered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from maskmatch.comparison import Splits


def apartness(data: Splits, model: str | Path | None) -> float:
    """How far apart the names are for the encoder: one minus the mean cosine of the vectors of two of them."""
    return 1.0 - _mean_cosine(_label_vectors(data.labels, data, model))


def apartness_over_numbers(data: Splits, model: str | Path | None) -> float:
    """The same, less what as many numbered names have: what words do and numbers do not."""
    names = numbered(data.labels.names)
    plain = LabelSet(tuple(Label(id_, name) for id_, name in zip(data.labels, names, strict=True)))
    return apartness(data, model) - (1.0 - _mean_cosine(_label_vectors(plain, data, model)))


def _label_vectors(labels: LabelSet, data: Splits, model: str | Path | None) -> NDArray[np.float32]:
    """The vectors of labels, of length 1: (K, dim)."""
    return MaskMatcher.from_pretrained(model, labels, task=data.task).prediction().kept.vectors


def _mean_cosine(vectors: NDArray[np.float32]) -> float:
    """Of two different vectors of length 1, on average."""
    count = len(vectors)
    total = float(np.square(vectors.sum(axis=0, dtype=np.float64)).sum())  # of all pairs, each with itself included
    return (total - count) / (count * (count - 1))


SCORES: Mapping[str, Callable[[Splits, str | Path | None], float]] = {
    "apartness": apartness,
    "apartness over numbers": apartness_over_numbers,
}
"""The scores that are tried, by name."""
