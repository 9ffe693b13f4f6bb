"""Drawing a few rows for each label: N shots, or a fraction of the training data.

Every label asks for its rows one after the other, each request at its time; the requests of all labels are
answered in the order of their times, until the time that the draw was asked for. A smaller draw is therefore
the beginning of a larger one. Which row answers a label's next request is settled by a hash of the seed, the
label and the number of the row among the rows of that label, so it is the same on every machine and whatever
other labels there are.
"""

from __future__ import annotations

import hashlib
import math
import operator
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

_NO_LABEL: tuple[()] = ()
"""What stands for the label of rows that have none; no label can be called so."""


def draw_shots(labels: Iterable[Any], shots: int, seed: int) -> list[int]:
    """Draw `shots` rows for each label, or all rows of a label that has fewer.

    Rows with several labels are drawn until each label has at least `shots` of them: in each round the rarest
    label comes first, and a label that has enough rows through others draws none.

    Examples:
        >>> labels = ["refund", "card", "refund", "card", "refund"]
        >>> sorted(labels[row] for row in draw_shots(labels, shots=2, seed=0))
        ['card', 'card', 'refund', 'refund']

    Args:
        labels: The label of each row, any hashable value, or a list of several.
        shots: How many rows each label gets.
        seed: Another seed draws other rows; the same seed with more shots draws the same rows and further
            ones.

    Returns:
        The numbers of the rows drawn, in ascending order.
    """
    limit = _whole_number(shots, "number of shots")
    if limit < 1:
        raise MaskMatchError(f"The number of shots is {shots}; it must be 1 or more.")
    return _draw(labels, seed, time=lambda request, _: request, limit=limit)


def draw_fraction(labels: Iterable[Any], fraction: float, seed: int) -> list[int]:
    """Draw a fraction of the rows of each label, rounded, and at least one.

    Rows with several labels are drawn until each label has at least its share, the rarest label first.

    Args:
        labels: The label of each row, any hashable value, or a list of several.
        fraction: More than 0 and at most 1, such as 0.1 for a tenth.
        seed: Another seed draws other rows; the same seed with a larger fraction draws the same rows and
            further ones.

    Returns:
        The numbers of the rows drawn, in ascending order.
    """
    if isinstance(fraction, (bool, str)) or fraction is None or not 0 < fraction <= 1:
        raise MaskMatchError(f"The fraction is {fraction}; it must be more than 0 and at most 1.")

    def time(request: int, rows: int) -> float:
        # From this fraction on, the share of the label rounds up to the request; the first row is always
        # drawn.
        return 0.0 if request == 1 else (request - 0.5) / rows

    return _draw(labels, seed, time=time, limit=fraction)


def _draw(labels: Iterable[Any], seed: int, *, time: Callable[[int, int], float], limit: float) -> list[int]:
    """Answer the requests up to a time.

    Args:
        labels: The label or labels of each row.
        seed: The seed.
        time: When a label makes a request, by the number of the request from 1 and the number of its rows.
        limit: The time to stop after.
    """
    seed_number = _whole_number(seed, "seed")
    labels_of_rows = [_labels_of_row(row) for row in labels]
    rows_of_label: dict[Hashable, list[int]] = {}
    for row, row_labels in enumerate(labels_of_rows):
        for label in row_labels:
            rows_of_label.setdefault(label, []).append(row)
    if rows_of_label.keys() <= {_NO_LABEL}:
        raise MaskMatchError("There are no labels to draw rows for; give at least one row with a label.")

    waiting = {label: iter(_shuffled(rows, seed_number, label)) for label, rows in rows_of_label.items()}
    drawn_of_label = dict.fromkeys(rows_of_label, 0)
    drawn: set[int] = set()
    for label, request in _requests(rows_of_label, time, limit):
        while drawn_of_label[label] < request:
            row = next(waiting[label])
            if row not in drawn:
                drawn.add(row)
                for other in labels_of_rows[row]:
                    drawn_of_label[other] += 1
    return sorted(drawn)


def _requests(
    rows_of_label: dict[Hashable, list[int]], time: Callable[[int, int], float], limit: float
) -> list[tuple[Hashable, int]]:
    """Return the requests up to a time as (label, number), by time and then the rarest label first."""
    requests: list[tuple[float, int, str, int, Hashable]] = []
    for label, rows in rows_of_label.items():
        for request in range(1, len(rows) + 1):
            moment = time(request, len(rows))
            if moment > limit:
                break
            requests.append((moment, len(rows), _identity(label), request, label))
    requests.sort(key=operator.itemgetter(0, 1, 2, 3))
    return [(label, request) for _, _, _, request, label in requests]


def _shuffled(rows: list[int], seed: int, label: Hashable) -> list[int]:
    """Return the rows of a label in an order of their own."""
    start = hashlib.blake2b(f"{seed}\n{_identity(label)}\n".encode("utf-8", "surrogatepass"), digest_size=16)

    def rank(position: int) -> bytes:
        hashed = start.copy()
        hashed.update(str(position).encode())
        return hashed.digest()

    return [rows[position] for position in sorted(range(len(rows)), key=rank)]


def _labels_of_row(label: Any) -> list[Hashable]:
    """Return the different labels of a row: one, or those of a list, an array or a set.

    Rows to which no label applies are drawn as if that were a label of its own.
    """
    if not isinstance(label, str) and callable(getattr(label, "tolist", None)):
        label = label.tolist()  # an array or a scalar of numpy, which need not be imported to be asked
    several = label if isinstance(label, (list, set)) else [label]
    try:
        return list(dict.fromkeys(several)) or [_NO_LABEL]
    except TypeError as error:
        raise MaskMatchError(
            f"A label is or holds a value that cannot be compared ({error}); give names or numbers."
        ) from error


def _identity(label: Hashable) -> str:
    """Return a string for a label that is the same in every process, and for all numbers that are equal."""
    if isinstance(label, str):
        return f"text {label}"
    if isinstance(label, (bool, int)) or (isinstance(label, float) and label.is_integer()):
        return f"number {int(label)}"
    if isinstance(label, float) and math.isnan(label):
        raise MaskMatchError("A label is NaN; give every row a label.")
    return f"{type(label).__name__} {label!r}"


def _whole_number(value: Any, meaning: str) -> int:
    if isinstance(value, bool):
        raise MaskMatchError(f"The {meaning} is {value}; it must be a whole number.")
    try:
        return operator.index(value)
    except TypeError as error:
        raise MaskMatchError(f"The {meaning} is {value!r}; it must be a whole number.") from error
