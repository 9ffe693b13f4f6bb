"""Scores of label sets, computed before any training, which the study of names tests.

A score takes a dataset and an encoder. It reads the labels, and at most training texts without their labels. A higher
score should mean that names help more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from maskmatch.label_tools.check import informativeness
from maskmatch.labels import Label, LabelSet
from maskmatch.matcher import MaskMatcher
from maskmatch_lab.studies.names import numbered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from maskmatch_lab.comparison import Splits


TEXTS = 500
"""The number of training texts to read without their labels, always the same ones."""


def informativeness_of_names(data: Splits, model: str | Path | None) -> float:
    """The informativeness that ``maskmatch labels check`` reports."""
    return informativeness(_matcher(data.labels, data, model)).score


def name_scores(data: Splits, model: str | Path | None) -> tuple[float, ...]:
    """The informativeness of each name, in the order of labels."""
    return informativeness(_matcher(data.labels, data, model)).scores


def informativeness_with_texts(data: Splits, model: str | Path | None) -> float:
    """Informativeness with texts, by how confidently they match single names."""
    return informativeness(_matcher(data.labels, data, model), texts=list(data.train.sample(TEXTS).texts)).score


def apartness(data: Splits, model: str | Path | None) -> float:
    """One minus the mean cosine of the vectors of two names."""
    return 1.0 - _mean_cosine(_label_vectors(data.labels, data, model))


def apartness_over_numbers(data: Splits, model: str | Path | None) -> float:
    """Apartness of the names minus that of as many numbered names."""
    names = numbered(data.labels.names)
    plain = LabelSet(tuple(Label(id_, name) for id_, name in zip(data.labels, names, strict=True)))
    return apartness(data, model) - (1.0 - _mean_cosine(_label_vectors(plain, data, model)))


def _label_vectors(labels: LabelSet, data: Splits, model: str | Path | None) -> NDArray[np.float32]:
    """The vectors of labels, with unit norm: (K, dim)."""
    return _matcher(labels, data, model).pipeline.scorer.vectors


def _matcher(labels: LabelSet, data: Splits, model: str | Path | None) -> MaskMatcher:
    return MaskMatcher.from_pretrained(model, labels, task=data.task, method="mask-matching")


def _mean_cosine(vectors: NDArray[np.float32]) -> float:
    """The mean cosine of two different vectors of unit norm: (K, dim) → a number."""
    count = len(vectors)
    total = float(np.square(vectors.sum(axis=0, dtype=np.float64)).sum())  # of all pairs, each with itself included
    return (total - count) / (count * (count - 1))


def number_of_labels(data: Splits, _model: str | Path | None) -> float:
    """The number of labels: with more labels, there is more to gain over numbers."""
    return float(len(data.labels))


SCORES: Mapping[str, Callable[[Splits, str | Path | None], float]] = {
    "informativeness": informativeness_of_names,
    "informativeness with texts": informativeness_with_texts,
    "apartness": apartness,
    "apartness over numbers": apartness_over_numbers,
    "number of labels": number_of_labels,
}
"""The scores by name; the last three are simple baselines."""
