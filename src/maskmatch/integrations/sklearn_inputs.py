"""X and y as scikit-learn users give them → texts, labels and weights."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import validate_data

from maskmatch.data import is_missing, is_table, take_texts
from maskmatch.data.spans import span_column
from maskmatch.errors import MaskMatchError
from maskmatch.labels import Label, LabelSet, LabelsLike
from maskmatch.labels.targets import COLLECTIONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

# -- X -------------------------------------------------------------------------------------------------------


FEATURES = ("n_features_in_", "feature_names_in_")


def features_of(X: Any) -> dict[str, Any]:
    """The number and names of the columns of a table, for ``n_features_in_`` and ``feature_names_in_``.

    A list or a series of texts has no columns.
    """
    found = BaseEstimator()
    if _has_columns(X):
        validate_data(found, X, reset=True, skip_check_array=True)
    return {name: value for name, value in vars(found).items() if name in FEATURES}


def set_features(estimator: Any, features: Mapping[str, Any]) -> None:
    """Keep the columns of the table that an estimator was fitted on."""
    for name in FEATURES:
        vars(estimator).pop(name, None)
    vars(estimator).update(features)


def check_features(estimator: Any, X: Any) -> None:
    """Raise if a table has other columns than that which the estimator was fitted on."""
    if hasattr(estimator, "n_features_in_") and _has_columns(X):
        validate_data(estimator, X, reset=False, skip_check_array=True)


def _has_columns(X: Any) -> bool:
    return len(getattr(X, "shape", ())) == 2 and not sparse.issparse(X)


def read_texts(estimator: Any, X: Any, fields: Sequence[str]) -> list[Any]:
    """The texts of X: strings, or dicts of fields.

    Args:
        estimator: The estimator, for error messages.
        X: Strings or dicts in a list, an array or a series; or a table with one column, or with those of the fields.
        fields: The fields of a text.
    """
    who = type(estimator).__name__
    if sparse.issparse(X):
        raise MaskMatchError(f"X is a sparse matrix of numbers; {who} reads texts, so give it the texts themselves.")
    if isinstance(X, (str, bytes)) or (isinstance(X, Mapping) and not is_table(X)):
        raise MaskMatchError(f"X is a single text; {who} reads a list of texts: [text].")
    if not is_table(X):
        return _of_rows(X, fields, who)
    columns = getattr(X, "columns", None)
    if columns is not None and len(columns) == 1:  # a text column may have any name
        return _of_rows(X[columns[0]], fields, who)
    names = set() if columns is None else set(map(str, columns))
    missing = [name for name in fields if name not in names and span_column(name) not in names]
    if names and missing:  # one of several columns would have to be guessed
        raise MaskMatchError(
            f"X has {len(names)} columns, and none is called {missing[0]!r}; give {who} one column of texts, or "
            f"columns with the names of the task's fields: {', '.join(fields)}."
        )
    return take_texts(X, fields, allow_empty=True)


def _of_rows(rows: Any, fields: Sequence[str], who: str) -> list[Any]:
    if hasattr(rows, "__array__") and not isinstance(rows, Iterable):
        rows = np.asarray(rows)
    dimensions = getattr(rows, "ndim", 1)
    if not isinstance(rows, Iterable) or dimensions == 0:
        raise MaskMatchError(f"X is {rows!r:.80}; {who} reads a list of texts, or a table of them.")
    if dimensions > 2:
        raise MaskMatchError(f"X has {dimensions} dimensions; {who} reads a list of texts, or a table of them.")
    texts = list(rows.tolist() if hasattr(rows, "tolist") else rows)
    return [_text(text, place, fields, who) for place, text in enumerate(texts)]


def _text(value: Any, place: int, fields: Sequence[str], who: str) -> Any:
    """One text: a row of a matrix with one column, or with one per field, is a text, too."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (list, tuple, np.ndarray)) and all(isinstance(part, str) for part in value):
        if len(value) == 1:
            return str(value[0])
        if len(value) == len(fields):
            return dict(zip(fields, map(str, value), strict=True))
        raise MaskMatchError(
            f"X has {len(value)} columns; {who} reads one column of texts, or those of the task's fields: "
            f"{', '.join(fields)}."
        )
    if is_missing(value):
        raise MaskMatchError(f"X has no text at row {place} ({value!r}); give every row a text, or leave it out.")
    raise MaskMatchError(
        f"X has {value!r:.60} at row {place}, and {who} reads texts: strings, or dicts of fields. Give it the texts "
        "themselves, not numbers that stand for them."
    )


# -- y -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """The labels of rows.

    Attributes:
        rows: Per row its label, or a list of labels.
        classes: All of them, in the order of scikit-learn: sorted; with several labels per text, as they were given.
        several: Whether a row has a list of labels.
        label_set: The same labels, with names that the encoder reads.
    """

    rows: list[Any]
    classes: NDArray[Any]
    several: bool
    label_set: LabelSet


def read_target(y: Any, labels: LabelsLike | None, label_names: Any, also: Iterable[Hashable] = ()) -> Target:
    """The labels of rows.

    Args:
        y: One label per row; or several, as lists or as a matrix of 0 and 1 with a column per label.
        labels: All labels, if the user gave them.
        label_names: Names of the labels in y, if the user gave them.
        also: Further labels.
    """
    if labels is not None and label_names is not None:
        raise MaskMatchError("labels and label_names are both given; give labels, or names for those in y.")
    known = None if labels is None else LabelSet.of(labels)
    rows, columns = _rows(y, known)
    several = columns is not None
    if columns is None:
        ids = rows = _checked(rows)
    else:
        ids = [*columns, *(id_ for row in rows for id_ in row)]
    if known is not None:
        _check_known(ids, known)
        ids = list(known)
    ids = list(dict.fromkeys([*ids, *also]))
    classes = columns_of(ids) if several else sorted_classes(ids)
    given = len(label_names) if isinstance(label_names, (list, tuple, np.ndarray)) else None
    if several and given is not None and given != len(classes):
        raise MaskMatchError(f"label_names has {given} names, and y has {len(classes)} columns; give one for each.")
    return Target(rows, classes, several, known or named(classes.tolist(), label_names))


def several_labels(y: Any, known: LabelSet) -> list[list[Any]]:
    """The labels of each row, where a row may have several: as lists, or as a matrix of 0 and 1."""
    return [list(row) for row in _rows(y, known)[0]]


def columns_of(ids: Sequence[Any]) -> NDArray[Any]:
    """Labels as an array in their order."""
    array = np.array(ids)
    return array if array.ndim == 1 and array.tolist() == list(ids) else _objects(ids)


def sorted_classes(ids: Sequence[Any]) -> NDArray[Any]:
    """Distinct labels, sorted as scikit-learn does it."""
    kinds = {"text" if isinstance(each, str) else "a number" for each in ids}
    if len(kinds) > 1:
        raise MaskMatchError("Labels mix texts and numbers, which cannot be sorted; write all of them as texts.")
    found: NDArray[Any] = np.unique(np.array(ids))
    return found


def named(ids: Sequence[Any], label_names: Any) -> LabelSet:
    """Labels with the names that the user gave: a dict by label, or a list whose positions are the labels."""
    if label_names is None:
        return LabelSet.of(ids)
    if isinstance(label_names, (str, bytes)) or not isinstance(label_names, (Mapping, Sequence, np.ndarray)):
        raise MaskMatchError(f"label_names is {label_names!r}; give a dict such as {{0: 'refund', 1: 'card lost'}}.")
    names = dict(label_names) if isinstance(label_names, Mapping) else dict(enumerate(label_names))
    missing = [id_ for id_ in ids if id_ not in names]
    if missing:
        raise MaskMatchError(f"label_names has no name for the label {missing[0]!r} of y; give one for every label.")
    return LabelSet(tuple(Label(id_, name=str(names[id_])) for id_ in ids))


def read_weights(sample_weight: Any, rows: int) -> list[float] | None:
    """The weight of each row; None if all count alike."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    if weights.ndim == 0:
        weights = np.full(rows, weights)
    if weights.shape != (rows,):
        raise MaskMatchError(
            f"sample_weight has the shape {weights.shape}, but there are {rows} texts; give one weight per text."
        )
    if weights.dtype.kind not in "biuf" or not np.isfinite(weights).all() or (weights < 0).any():
        raise MaskMatchError("sample_weight has values that are no weights; a weight is a number of at least 0.")
    if not weights.any():
        raise MaskMatchError("sample_weight is zero for every text; give at least two classes a weight above 0.")
    if np.ptp(weights) == 0:  # as if there were none
        return None
    return [float(weight) for weight in weights]


def weighted(
    rows: Sequence[Any], weights: list[float] | None, class_weight: Any, classes: Iterable[Any] | None
) -> list[float] | None:
    """The weights of rows, times those of their classes where ``class_weight`` is a dict.

    Args:
        rows: The labels of the rows.
        weights: The weights of the rows, if there are any.
        class_weight: The parameter of the estimator.
        classes: All classes; None: others may come later.
    """
    if class_weight is None or isinstance(class_weight, str):
        if class_weight not in (None, "balanced"):
            raise MaskMatchError(
                f"class_weight is {class_weight!r}; it must be None, 'balanced' or a dict {{label: weight}}."
            )
        return weights
    if not isinstance(class_weight, Mapping):
        raise MaskMatchError(
            f"class_weight is {class_weight!r}; it must be None, 'balanced' or a dict {{label: weight}}."
        )
    unknown = [] if classes is None else [label for label in class_weight if label not in set(classes)]
    if unknown:
        raise MaskMatchError(f"class_weight has a weight for {unknown[0]!r}, which is no class.")
    if any(isinstance(row, COLLECTIONS) for row in rows):
        raise MaskMatchError("class_weight as a dict needs one label per text; give sample_weight instead.")
    wrong = next((weight for weight in class_weight.values() if not isinstance(weight, (int, float, np.number))), None)
    if wrong is not None:
        raise MaskMatchError(f"class_weight has the weight {wrong!r}; a weight is a number of at least 0.")
    by_class = [float(class_weight.get(row, 1.0)) for row in rows]
    before = [1.0] * len(rows) if weights is None else weights
    return read_weights(np.multiply(by_class, before), len(rows))


def _rows(y: Any, known: LabelSet | None) -> tuple[list[Any], list[Any] | None]:
    """The labels of each row; and with several per row, all labels in order."""
    if sparse.issparse(y):
        y = y.toarray()
    if hasattr(y, "__array__") and not isinstance(y, Iterable):
        y = np.asarray(y)
    if isinstance(y, (str, bytes)) or not isinstance(y, Iterable) or getattr(y, "ndim", 1) == 0:
        raise MaskMatchError(f"y should be a 1d array of labels, one per text, not {y!r:.80}.")
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] == 1:
        message = "A column-vector y was passed when a 1d array was expected; it is read as one."
        warnings.warn(message, DataConversionWarning, stacklevel=5)
        return np.asarray(y).ravel().tolist(), None
    if len(shape) == 2:
        columns = getattr(y, "columns", range(shape[1]) if known is None else known)
        return _of_indicator(np.asarray(y), list(columns))
    rows = list(y.tolist() if hasattr(y, "tolist") else y)
    if not any(isinstance(row, COLLECTIONS) for row in rows):
        return rows, None
    if not all(isinstance(row, COLLECTIONS) for row in rows):
        raise MaskMatchError("Some rows of y have a list of labels and the others a single one; give lists in all.")
    several = [list(row) for row in rows]
    lengths = {len(row) for row in several}
    if len(lengths) == 1 and min(lengths) > 1 and all(value in (0, 1) for row in several for value in row):
        return _rows(np.array(several), known)  # a matrix of 0 and 1 as lists
    return several, list(known) if known is not None else sorted_classes(
        [id_ for row in several for id_ in row]
    ).tolist()


def _of_indicator(matrix: NDArray[Any], columns: list[Any]) -> tuple[list[Any], list[Any]]:
    """The labels of each row of a matrix of 0 and 1."""
    if len(columns) != matrix.shape[1]:
        raise MaskMatchError(f"y has {matrix.shape[1]} columns and there are {len(columns)} labels; give one each.")
    if not np.isin(matrix, (0, 1)).all():
        raise MaskMatchError("y is a matrix with other values than 0 and 1; several labels per text are 0 or 1 each.")
    return [[columns[place] for place in np.flatnonzero(row)] for row in matrix], columns


def _checked(rows: list[Any]) -> list[Any]:
    """Labels as plain values; raise for what is none."""
    for place, row in enumerate(rows):
        if is_missing(row) or (isinstance(row, (float, np.floating)) and not np.isfinite(row)):
            raise MaskMatchError(f"Input y contains NaN, None or infinity: row {place} is {row!r}; give it a label.")
    if not rows:
        raise MaskMatchError("There are 0 labels in y; give one label per text.")
    plain = [row.item() if isinstance(row, np.generic) else row for row in rows]
    sorted_classes(plain)  # of one kind
    fraction = next((row for row in plain if isinstance(row, float) and not row.is_integer()), None)
    if fraction is not None:
        raise MaskMatchError(f"Unknown label type: continuous. y has the number {fraction!r}; labels name classes.")
    return plain


def _check_known(ids: Iterable[Any], known: LabelSet) -> None:
    unknown = [id_ for id_ in dict.fromkeys(ids) if id_ not in known]
    if unknown:
        shown = ", ".join(repr(id_) for id_ in unknown[:3])
        raise MaskMatchError(
            f"y has labels that are not among the labels given: {shown}; the labels are {list(known)}."
        )


def _objects(ids: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(ids), dtype=object)
    array[:] = list(ids)
    return array
