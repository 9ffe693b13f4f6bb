"""Scores of label sets that are computed before any training: what the names study puts to the test.

A score takes a dataset (of which it reads the labels, and at most training texts without their labels) and an encoder,
and is higher the more the names should be worth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from maskmatch.classifier import MaskMatcher
from maskmatch.label_check import informativeness
from maskmatch.labels import Label, LabelSet
from maskmatch.studies.names import numbered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from maskmatch.comparison import Splits


TEXTS = 500
"""How many training texts are looked at without their labels, always the same ones."""


def informativeness_of_names(data: Splits, model: str | Path | None) -> float:
    """What ``maskmatch labels check`` says of the names."""
    return informativeness(_matcher(data.labels, data, model)).score


def name_scores(data: Splits, model: str | Path | None) -> tuple[float, ...]:
    """What it says of each name, in the order of labels."""
    return informativeness(_matcher(data.labels, data, model)).scores


def informativeness_with_texts(data: Splits, model: str | Path | None) -> float:
    """The same with texts, which tell how far they commit themselves to single names."""
    return informativeness(_matcher(data.labels, data, model), texts=list(data.train.sample(TEXTS).texts)).score


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
    return _matcher(labels, data, model).prediction().kept.vectors


def _matcher(labels: LabelSet, data: Splits, model: str | Path | None) -> MaskMatcher:
    return MaskMatcher.from_pretrained(model, labels, task=data.task, method="mask-matching")


def _mean_cosine(vectors: NDArray[np.float32]) -> float:
    """Of two different vectors of length 1, on average."""
    count = len(vectors)
    total = float(np.square(vectors.sum(axis=0, dtype=np.float64)).sum())  # of all pairs, each with itself included
    return (total - count) / (count * (count - 1))


def number_of_labels(data: Splits, _model: str | Path | None) -> float:
    """How many labels there are: with more of them, there is more to gain over numbers."""
    return float(len(data.labels))


SCORES: Mapping[str, Callable[[Splits, str | Path | None], float]] = {
    "informativeness": informativeness_of_names,
    "informativeness with texts": informativeness_with_texts,
    "apartness": apartness,
    "apartness over numbers": apartness_over_numbers,
    "number of labels": number_of_labels,
}
"""The scores that are tried, by name; the last three are simple ones that the others should beat."""
