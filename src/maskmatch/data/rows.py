"""One row of a table, with the place it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Row:
    """One row of a file or of a table in memory.

    Attributes:
        fields: The cells by column name, as the format gives them (a CSV cell is always a string).
        where: The place of the row in words, such as "train.csv, line 7", for messages.
    """

    fields: dict[str, Any]
    where: str


def refuse_repeated(columns: Sequence[str], table: str) -> None:
    """Refuse a table in which a column name does not say which column is meant."""
    repeated = next((column for column in columns if columns.count(column) > 1), None)
    if repeated is not None:
        raise MaskMatchError(f"{table} has two columns named {repeated!r}; give every column a name of its own.")
