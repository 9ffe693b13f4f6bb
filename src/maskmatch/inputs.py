"""Texts and labels in whatever form users hold them, as lists of equal length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from maskmatch.data import Examples, is_table, load_examples
from maskmatch.errors import MaskMatchError


def take_texts(texts: Any, fields: Sequence[str]) -> list[Any]:
    """Texts from a list, an array, a series, a data frame or a dataset."""
    if is_table(texts):
        return load_examples(texts, fields, want_label=False).texts
    if isinstance(texts, (str, dict)) or not isinstance(texts, Iterable):
        raise MaskMatchError(f"Texts come as a list, even a single one: [text]; this is a {type(texts).__name__}.")
    texts = list(texts)
    if not texts:
        raise MaskMatchError("There are no texts.")
    return list(texts)


def take_examples(texts: Any, labels: Any, fields: Sequence[str]) -> Examples:
    """Texts with their labels; a table may hold both, and the labels be left out or the name of its column."""
    if is_table(texts) and (labels is None or isinstance(labels, str)):
        return load_examples(texts, fields, label_field=labels)
    texts = take_texts(texts, fields)
    if labels is None:
        raise MaskMatchError("The labels are missing: give one for each text.")
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise MaskMatchError(f"Labels come as a list, one for each text, not as {labels!r}.")
    if getattr(labels, "ndim", 1) > 1:
        raise MaskMatchError("The labels are a matrix; give one label for each text, or a list of labels for each.")
    labels = list(labels)
    if len(labels) != len(texts):
        raise MaskMatchError(f"There are {len(texts)} texts but {len(labels)} labels; each text needs one.")
    return Examples(texts, labels)
