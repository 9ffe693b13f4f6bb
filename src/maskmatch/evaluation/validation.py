"""Checks of the arguments of an evaluation: label ids, numbers of rows, probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.data.values import is_missing
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    Text = str | Mapping[str, object]
    LabelIds = tuple[Hashable, ...]
    """The label ids of one text."""

# A softmax in half or single precision may slightly exceed 1; a larger value is not a probability.
_ROUNDING = 1e-3
_MAX_LISTED = 5


def check_labels(labels: Iterable[Hashable]) -> dict[Hashable, None]:
    """The model's labels in order, as the keys of a dict for fast lookup; raise unless they are unique."""
    ids = [_check_id(label, "labels", position) for position, label in enumerate(labels)]
    known = dict.fromkeys(ids)
    if not known or len(known) != len(ids):
        raise MaskMatchError(f"The model's labels must be distinct, and at least one, not {ids!r}.")
    return known


def check_label_ids(values: Sequence[Any], name: str, multi_label: bool) -> list[LabelIds]:
    """The label ids of each row as a tuple: one id, or, with `multi_label`, any number of distinct ids.

    Args:
        values: The label of each row, or, with `multi_label`, a collection of labels.
        name: The name of the values in error messages.
        multi_label: Whether a row has any number of labels.
    """
    if not multi_label:
        return [(_check_id(value, name, row),) for row, value in enumerate(values)]
    rows: list[LabelIds] = []
    for row, value in enumerate(values):
        if isinstance(value, str) or not hasattr(value, "__iter__"):
            raise MaskMatchError(
                f"Row {row} of {name} is {value!r}, but with multi_label=True each row is a list of labels."
            )
        rows.append(tuple(dict.fromkeys(_check_id(label, name, row) for label in value)))
    return rows


def check_rows(
    texts: Sequence[Text], truth: Sequence[LabelIds], predicted: Sequence[LabelIds], known: Mapping[Hashable, None]
) -> None:
    """Raise if there are no rows, if their numbers differ, or if a prediction is not a label of the model."""
    if not len(texts) == len(truth) == len(predicted):
        raise MaskMatchError(
            f"An evaluation needs the same number of texts, true labels and predictions, "
            f"not {len(texts)} texts, {len(truth)} true labels and {len(predicted)} predictions."
        )
    if not truth:
        raise MaskMatchError("There is nothing to evaluate; give at least one text with its true label.")
    for row, ids in enumerate(predicted):
        for label in ids:
            if label not in known:
                listed = ", ".join(repr(each) for each in list(known)[:_MAX_LISTED])
                raise MaskMatchError(
                    f"Row {row} of predicted is {label!r}, which is not a label of the model; its labels are "
                    f"{listed}{', ...' if len(known) > _MAX_LISTED else ''}."
                )


def check_probabilities(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """The values as an array of floats; raise unless all are between 0 and 1.

    Args:
        values: The probabilities, of any shape.
        name: The name of the values in the error message.
    """
    probabilities = np.asarray(values, dtype=np.float64)
    if not np.all((probabilities >= -_ROUNDING) & (probabilities <= 1 + _ROUNDING)):  # False for NaN, too
        raise MaskMatchError(f"Every value of {name} must be a probability between 0 and 1.")
    return np.clip(probabilities, 0.0, 1.0)


def _check_id(label: Any, name: str, row: int) -> Hashable:
    """A label id as a plain Python value (numpy scalars cannot be written as JSON); raise if it cannot be an id."""
    label = label.item() if isinstance(label, np.generic) else label
    if is_missing(label):
        raise MaskMatchError(f"Row {row} of {name} has no label ({label}); leave out rows without a label.")
    try:
        hash(label)
    except TypeError:
        raise MaskMatchError(
            f"Row {row} of {name} is {label!r}, which is not a single label; "
            "give a string or a number, or set multi_label=True for lists of labels."
        ) from None
    checked: Hashable = label
    return checked
