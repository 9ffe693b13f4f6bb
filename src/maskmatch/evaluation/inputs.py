"""What an evaluation is given, checked: label ids, rows that belong together, probabilities."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.evaluation import metrics

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from maskmatch.evaluation.metrics import ReliabilityBin

    Text = str | Mapping[str, object]
    Row = tuple[Hashable, ...]


def known_labels(labels: Iterable[Hashable]) -> dict[Hashable, None]:
    """The labels of the model, in order, as a dict because it answers `in` at once."""
    ids = [_checked_id(label, "labels", place) for place, label in enumerate(labels)]
    known = dict.fromkeys(ids)
    if not known or len(known) != len(ids):
        raise MaskMatchError(f"The labels of the model must be distinct and at least one, not {ids!r}.")
    return known


def id_rows(values: Sequence[Any], name: str, multi_label: bool) -> list[Row]:
    """Each row's label ids as a tuple: of one id, or with `multi_label` of any number of distinct ones."""
    if not multi_label:
        return [(_checked_id(value, name, row),) for row, value in enumerate(values)]
    rows: list[Row] = []
    for row, value in enumerate(values):
        if isinstance(value, str) or not hasattr(value, "__iter__"):
            raise MaskMatchError(
                f"Row {row} of {name} is {value!r}, but with multi_label=True each row is a list of labels."
            )
        rows.append(tuple(dict.fromkeys(_checked_id(label, name, row) for label in value)))
    return rows


def _checked_id(label: Any, name: str, row: int) -> Hashable:
    """A label id as plain Python (NumPy numbers would not be JSON), refused where it cannot name a label."""
    label = label.item() if isinstance(label, np.generic) else label
    if label is None or (isinstance(label, float) and math.isnan(label)):
        raise MaskMatchError(f"Row {row} of {name} has no label ({label}): leave out rows without a label.")
    try:
        hash(label)
    except TypeError:
        raise MaskMatchError(
            f"Row {row} of {name} is {label!r}, which cannot be one label: "
            f"give a string or a number, or set multi_label=True for lists of labels."
        ) from None
    checked: Hashable = label
    return checked


def check_rows(
    texts: Sequence[Text], truth: Sequence[Row], predicted: Sequence[Row], known: Mapping[Hashable, None]
) -> None:
    """Refuse rows that do not belong together, no rows, and predictions that the model cannot have made."""
    if not len(texts) == len(truth) == len(predicted):
        raise MaskMatchError(
            f"An evaluation needs as many texts as true labels and predictions, "
            f"not {len(texts)} texts, {len(truth)} true labels and {len(predicted)} predictions."
        )
    if not truth:
        raise MaskMatchError("There is nothing to evaluate: give at least one text with its true label.")
    for row, ids in enumerate(predicted):
        for label in ids:
            if label not in known:
                raise MaskMatchError(
                    f"Row {row} of predicted is {label!r}, which is not one of the labels of the model: "
                    f"predictions must be among {', '.join(repr(each) for each in list(known)[:5])}"
                    f"{', ...' if len(known) > 5 else ''}."
                )


def calibration_bins(
    truth: Sequence[Row],
    predicted: Sequence[Row],
    known: Mapping[Hashable, None],
    *,
    confidence: ArrayLike | None,
    probabilities: ArrayLike | None,
    multi_label: bool,
) -> tuple[ReliabilityBin, ...]:
    """How often predictions were right, by how sure they were; none where that is not known."""
    if multi_label:
        return _decision_bins(truth, probabilities, confidence, known)
    return _prediction_bins(truth, predicted, confidence, probabilities)


def _prediction_bins(
    truth: Sequence[Row],
    predicted: Sequence[Row],
    confidence: ArrayLike | None,
    probabilities: ArrayLike | None,
) -> tuple[ReliabilityBin, ...]:
    """Calibration with one label per text: was the predicted label right as often as it was sure?"""
    if probabilities is not None:
        raise MaskMatchError(
            "Probabilities of all labels are for multi_label=True: with one label per text, "
            "give the confidence of the predicted labels."
        )
    if confidence is None:
        return ()
    if np.shape(confidence) != (len(truth),):
        raise MaskMatchError(
            f"The confidence needs one number for each of the {len(truth)} texts, not the shape {np.shape(confidence)}."
        )
    correct = [true == guess for true, guess in zip(truth, predicted, strict=True)]
    return tuple(metrics.reliability_bins(confidence, correct))


def _decision_bins(
    truth: Sequence[Row],
    probabilities: ArrayLike | None,
    confidence: ArrayLike | None,
    known: Mapping[Hashable, None],
) -> tuple[ReliabilityBin, ...]:
    """Calibration with any number of labels per text: did (text, label) hold as often as was probable?"""
    if confidence is not None:
        raise MaskMatchError(
            "The confidence is for one label per text: with multi_label=True, give the probabilities of all labels."
        )
    if probabilities is None:
        return ()
    wanted = (len(truth), len(known))
    if np.shape(probabilities) != wanted:
        raise MaskMatchError(
            f"The probabilities need a row for each text and a column for each label, {wanted}, "
            f"not the shape {np.shape(probabilities)}."
        )
    return tuple(metrics.reliability_bins(probabilities, metrics.truth_matrix(truth, known)))
