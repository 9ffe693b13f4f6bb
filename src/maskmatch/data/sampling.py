"""Sample a few rows per label: N shots, or a fraction of the training data.

Each label requests its rows one after the other, and each request has a time. The requests of all labels are served in
the order of their times, until the time limit of the sample. A smaller sample is therefore a prefix of a larger one.
A hash of the seed, the label and the row's number among the rows of that label decides which row serves the next
request of a label. So the sample is the same on every machine, and does not depend on the other labels.
"""

from __future__ import annotations

import hashlib
import operator
from typing import TYPE_CHECKING, Any

from maskmatch.data.values import is_missing
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

_NO_LABEL: tuple[()] = ()
"""The label of rows without labels; no actual label has this value."""


def draw_shots(labels: Iterable[Any], shots: int, seed: int) -> list[int]:
    """Sample `shots` rows per label, or all rows of a label that has fewer.

    Rows with several labels are sampled until each label has at least `shots` of them. In each round the rarest label
    comes first; a label that already has enough rows, sampled for other labels, gets no further ones.

    Examples:
        >>> labels = ["refund", "card", "refund", "card", "refund"]
        >>> sorted(labels[row] for row in draw_shots(labels, shots=2, seed=0))
        ['card', 'card', 'refund', 'refund']

    Args:
        labels: The label of each row: any hashable value, or a list of several.
        shots: The number of rows per label.
        seed: The random seed. With the same seed, more shots give the same rows and additional ones.

    Returns:
        The row numbers, in ascending order.
    """
    limit = _to_integer(shots, "number of shots")
    if limit < 1:
        raise MaskMatchError(f"The number of shots is {shots}; it must be 1 or more.")
    return _draw(labels, seed, time=lambda request, _: request, limit=limit)


def draw_fraction(labels: Iterable[Any], fraction: float, seed: int) -> list[int]:
    """Sample a fraction of the rows of each label, rounded, and at least one row.

    Rows with several labels are sampled until each label has at least its number of rows, the rarest label first.

    Args:
        labels: The label of each row: any hashable value, or a list of several.
        fraction: More than 0 and at most 1, such as 0.1 for 10 %.
        seed: The random seed. With the same seed, a larger fraction gives the same rows and additional ones.

    Returns:
        The row numbers, in ascending order.
    """
    if isinstance(fraction, (bool, str)) or fraction is None or not 0 < fraction <= 1:
        raise MaskMatchError(f"The fraction is {fraction}; it must be more than 0 and at most 1.")

    def time(request: int, rows: int) -> float:
        # From this fraction on, the label's number of rows rounds up to the request. The first row is always sampled.
        return 0.0 if request == 1 else (request - 0.5) / rows

    return _draw(labels, seed, time=time, limit=fraction)


def _draw(labels: Iterable[Any], seed: int, *, time: Callable[[int, int], float], limit: float) -> list[int]:
    """Serve the requests up to a time limit.

    Args:
        labels: The label or labels of each row.
        seed: The random seed.
        time: The time of a label's request, from the request's number (counted from 1) and the label's number of rows.
        limit: The time limit.
    """
    seed_number = _to_integer(seed, "seed")
    labels_of_rows = [_labels_of_row(row) for row in labels]
    rows_of_label: dict[Hashable, list[int]] = {}
    for row, row_labels in enumerate(labels_of_rows):
        for label in row_labels:
            rows_of_label.setdefault(label, []).append(row)
    if rows_of_label.keys() <= {_NO_LABEL}:
        raise MaskMatchError("There are no labels to sample rows for; give at least one row with a label.")

    unsampled = {label: iter(_shuffled(rows, seed_number, label)) for label, rows in rows_of_label.items()}
    sampled_per_label = dict.fromkeys(rows_of_label, 0)
    sampled: set[int] = set()
    for label, request in _requests(rows_of_label, time, limit):
        while sampled_per_label[label] < request:
            row = next(unsampled[label])
            if row not in sampled:
                sampled.add(row)
                for other in labels_of_rows[row]:
                    sampled_per_label[other] += 1
    return sorted(sampled)


def _requests(
    rows_of_label: dict[Hashable, list[int]], time: Callable[[int, int], float], limit: float
) -> list[tuple[Hashable, int]]:
    """Return the requests up to a time limit as (label, number), ordered by time, then the rarest label first."""
    requests: list[tuple[float, int, str, int, Hashable]] = []
    for label, rows in rows_of_label.items():
        for request in range(1, len(rows) + 1):
            request_time = time(request, len(rows))
            if request_time > limit:
                break
            requests.append((request_time, len(rows), _identity(label), request, label))
    requests.sort(key=operator.itemgetter(0, 1, 2, 3))
    return [(label, request) for _, _, _, request, label in requests]


def _shuffled(rows: list[int], seed: int, label: Hashable) -> list[int]:
    """Return the rows of a label, ordered by a hash."""
    start = hashlib.blake2b(f"{seed}\n{_identity(label)}\n".encode("utf-8", "surrogatepass"), digest_size=16)

    def rank(position: int) -> bytes:
        hashed = start.copy()
        hashed.update(str(position).encode())
        return hashed.digest()

    return [rows[position] for position in sorted(range(len(rows)), key=rank)]


def _labels_of_row(label: Any) -> list[Hashable]:
    """Return the distinct labels of a row: one, or those of a list, an array or a set.

    Rows without labels are sampled as if they had a label of their own.
    """
    if not isinstance(label, str) and callable(getattr(label, "tolist", None)):
        label = label.tolist()  # a numpy array or scalar; numpy is not imported
    several = label if isinstance(label, (list, set)) else [label]
    try:
        return list(dict.fromkeys(several)) or [_NO_LABEL]
    except TypeError as error:
        raise MaskMatchError(f"A label is not hashable ({error}); give names or numbers.") from error


def _identity(label: Hashable) -> str:
    """Return a string that identifies a label: the same in every process, and for equal numbers of different types."""
    if isinstance(label, str):
        return f"text {label}"
    if isinstance(label, (bool, int)) or (isinstance(label, float) and label.is_integer()):
        return f"number {int(label)}"
    if is_missing(label):
        raise MaskMatchError("A label is missing (None or NaN); give every row a label.")
    return f"{type(label).__name__} {label!r}"


def _to_integer(value: Any, name: str) -> int:
    if isinstance(value, bool):
        raise MaskMatchError(f"The {name} is {value}; it must be an integer.")
    try:
        return operator.index(value)
    except TypeError as error:
        raise MaskMatchError(f"The {name} is {value!r}; it must be an integer.") from error
