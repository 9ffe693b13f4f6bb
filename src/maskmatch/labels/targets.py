"""Convert the labels of training and test rows to target arrays."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.labels.label import Label
from maskmatch.labels.label_set import LabelSet

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from maskmatch.data import Examples

COLLECTIONS = (list, set, frozenset, np.ndarray)
"""Types that hold several labels of one row. A tuple is one label, unless the data is known to be multi-label."""


def has_several(labels: Sequence[Any]) -> bool:
    """Whether the data is multi-label: every row has a list of labels."""
    several = sum(isinstance(label, COLLECTIONS) for label in labels)
    if several and several < len(labels):
        raise MaskMatchError(
            f"{several} of {len(labels)} rows have a list of labels and the others a single one; give lists in all."
        )
    return several > 0


def plain_labels(labels: Iterable[Any], multi_label: bool) -> list[Any]:
    """Convert label ids to plain Python values: one per row, or a list per row if multi-label.

    A missing or invalid label raises an error that names its row.
    """
    plain: list[Any] = []
    for row, value in enumerate(labels):
        try:
            if multi_label:
                ids = value if isinstance(value, (*COLLECTIONS, tuple)) else [value]
                plain.append([Label(id_).id for id_ in ids])
            else:
                plain.append(Label(value).id)
        except MaskMatchError as error:
            raise MaskMatchError(f"Row {row}: {error}") from None
    return plain


def row_labels(examples: Examples, known: LabelSet | None, multi_label: bool) -> list[Any]:
    """Convert the labels of rows to the classifier's ids: one per row, or a list per row if multi-label.

    One file writes the label 3 as the text "3", another as the number, and a dataset may have a name for it. All of
    these match the label that the classifier knows.
    """
    assert examples.labels is not None
    rows = plain_labels(by_name(examples.labels, examples.label_names, known), multi_label)
    if known is None:
        return rows
    return [[known.resolve(id_) for id_ in row] if multi_label else known.resolve(row) for row in rows]


def by_name(labels: Sequence[Any], names: Mapping[Any, str] | None, known: LabelSet | None) -> list[Any]:
    """Replace the label numbers of a dataset by the dataset's names, unless the classifier's labels are numbers too."""
    if not names or known is None or any(known.resolve(number) in known for number in names):
        return list(labels)
    return [
        [names.get(part, part) for part in label] if isinstance(label, COLLECTIONS) else names.get(label, label)
        for label in labels
    ]


def labels_in(rows: Sequence[Any], multi_label: bool) -> list[Hashable]:
    """Return the distinct labels of the rows, sorted, so that the result does not depend on the order of rows."""
    first: dict[Hashable, Hashable] = {}
    for row in rows:
        for id_ in row if multi_label else [row]:
            if isinstance(first.setdefault(id_, id_), bool) != isinstance(id_, bool):
                raise MaskMatchError(
                    f"The labels {first[id_]!r} and {id_!r} are equal to Python, so they would be one label; write "
                    "truth values and numbers as texts."
                )
    distinct: list[Any] = list(first)
    try:
        return sorted(distinct)
    except TypeError:  # ids of different types have no order
        return sorted(distinct, key=lambda id_: (type(id_).__name__, str(id_)))


def label_set_of(rows: Sequence[Any], names: Mapping[Any, str] | None, multi_label: bool) -> LabelSet:
    """Return the labels that occur in the rows, with the dataset's names for numbers if there are any."""
    ids = labels_in(rows, multi_label)
    return LabelSet.of({id_: names[id_] for id_ in ids} if names else ids)


def check_trainable(rows: Sequence[Any], labels: LabelSet | None, multi_label: bool) -> None:
    """Raise if the training data has fewer than two labels, or labels that the classifier does not have."""
    found = labels_in(rows, multi_label)
    if len(found) < 2:
        only = f", only {found[0]!r}" if found else ""
        raise MaskMatchError(f"The training data has fewer than two labels{only}; a classifier needs at least two.")
    if labels is None:
        return
    unknown = [id_ for id_ in found if id_ not in labels]
    if unknown:
        counts = Counter(id_ for row in rows for id_ in (row if multi_label else [row]))
        shown = ", ".join(f"{id_!r} ({counts[id_]} rows)" for id_ in unknown[:3])
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        raise MaskMatchError(
            f"The training data has labels that the classifier does not have: {shown}{more}; add them to its "
            "labels, or leave these rows out."
        )


def target_array(rows: Sequence[Any], labels: LabelSet, multi_label: bool) -> NDArray[Any]:
    """Return the position of each row's label, (n,); if multi-label, a 0/1 matrix (n, K)."""
    if not multi_label:
        return np.array([labels.position(id_) for id_ in rows], dtype=np.int64)
    matrix = np.zeros((len(rows), len(labels)), dtype=np.float32)
    for row, ids in enumerate(rows):
        for id_ in ids:
            if id_ in labels:  # a dev row may have a label that is not in the training data
                matrix[row, labels.position(id_)] = 1.0
    return matrix
