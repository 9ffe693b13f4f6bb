"""From the labels of training and test rows to what a model learns and is measured by."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.labels import Label, LabelSet

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from maskmatch.data import Examples

SEVERAL = (list, set, frozenset, np.ndarray)
"""What holds several labels of one text; a tuple does only where texts are known to have several."""


def has_several(labels: Sequence[Any]) -> bool:
    """Whether these rows have several labels each."""
    several = sum(isinstance(label, SEVERAL) for label in labels)
    if several and several < len(labels):
        raise MaskMatchError(
            f"{several} of {len(labels)} rows have a list of labels and the others a single one; give lists in all."
        )
    return several > 0


def plain_labels(labels: Iterable[Any], multi_label: bool) -> list[Any]:
    """Label ids as plain Python values, one a row, or a list a row.

    Missing labels are refused with their row number.
    """
    plain: list[Any] = []
    for row, value in enumerate(labels):
        try:
            if multi_label:
                each = value if isinstance(value, (*SEVERAL, tuple)) else [value]
                plain.append([Label(id_).id for id_ in each])
            else:
                plain.append(Label(value).id)
        except MaskMatchError as error:
            raise MaskMatchError(f"Row {row}: {error}") from None
    return plain


def row_labels(examples: Examples, known: LabelSet | None, multi_label: bool) -> list[Any]:
    """The labels of rows as the classifier's own ids, one a row, or a list a row.

    One file writes the label 3 as the text "3", another as the number, a dataset may have a name for it: whichever of
    these the classifier knows is meant.
    """
    assert examples.labels is not None
    rows = plain_labels(by_name(examples.labels, examples.label_names, known), multi_label)
    if known is None:
        return rows
    return [[known.own(id_) for id_ in row] if multi_label else known.own(row) for row in rows]


def by_name(labels: Sequence[Any], names: Mapping[Any, str] | None, known: LabelSet | None) -> list[Any]:
    """Numbers that a dataset has names for, by these names where the classifier's labels are the names."""
    if not names or known is None or any(known.own(number) in known for number in names):
        return list(labels)
    return [
        [names.get(part, part) for part in label] if isinstance(label, SEVERAL) else names.get(label, label)
        for label in labels
    ]


def labels_in(rows: Sequence[Any], multi_label: bool) -> list[Hashable]:
    """The distinct labels of some rows, sorted, so that their order does not hang on that of the rows."""
    distinct = list(dict.fromkeys(id_ for row in rows for id_ in (row if multi_label else [row])))
    try:
        return sorted(distinct)
    except TypeError:  # of mixed kinds
        return sorted(distinct, key=lambda id_: (type(id_).__name__, str(id_)))


def label_set_of(rows: Sequence[Any], names: Mapping[Any, str] | None, multi_label: bool) -> LabelSet:
    """The labels that occur in rows, by their names where a dataset has names for numbers."""
    found = labels_in(rows, multi_label)
    return LabelSet.of({id_: names[id_] for id_ in found} if names else found)


def check_trainable(rows: Sequence[Any], labels: LabelSet | None, multi_label: bool) -> None:
    """Refuse training data that cannot teach: fewer than two labels, or labels that the classifier lacks."""
    found = labels_in(rows, multi_label)
    if len(found) < 2:
        only = f", only {found[0]!r}" if found else ""
        raise MaskMatchError(f"The training data has fewer than two labels{only}; it takes two to tell apart.")
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
    """Positions of labels, (n,); or with several a text, a matrix (n, K) of 0 and 1."""
    if not multi_label:
        return np.array([labels.position(id_) for id_ in rows], dtype=np.int64)
    matrix = np.zeros((len(rows), len(labels)), dtype=np.float32)
    for row, ids in enumerate(rows):
        for id_ in ids:
            if id_ in labels:  # a dev row may have one that training never showed
                matrix[row, labels.position(id_)] = 1.0
    return matrix
