"""One row of a table, with its location for error messages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from maskmatch.data.limits import limits, too_large
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True)
class Row:
    """One row of a file or of an in-memory table.

    Attributes:
        fields: The value of each column, by column name, as the format gives it (a CSV cell is always a string).
        where: The location of the row, such as "train.csv, line 7", for error messages.
        number: The number of the row, counted from 0, if it is not one more than that of the row before: blank lines
            of a text file are skipped, but they count.
        problem: Why the row cannot be read, in a sentence; None if it can. The rows after it can be read.
    """

    fields: dict[str, Any]
    where: str
    number: int | None = field(default=None, compare=False)
    problem: str | None = None


@dataclass(frozen=True)
class TableRows:
    """The rows of a table as they were, whether they can be used or not.

    Attributes:
        rows: All rows.
        problems: Why each row cannot be used, as part of a sentence; None if it can.
    """

    rows: list[Row]
    problems: list[str | None]

    def __len__(self) -> int:
        return len(self.rows)

    def __add__(self, other: TableRows) -> TableRows:
        return TableRows([*self.rows, *other.rows], [*self.problems, *other.problems])

    @property
    def columns(self) -> list[str]:
        """The columns of the rows, in order of appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row.fields))


def check_unique_columns(columns: Sequence[str], table: str) -> None:
    """Raise if two columns have the same name.

    Args:
        columns: The column names.
        table: The table's name in the error message.
    """
    most = limits().columns
    if len(columns) > most:
        raise too_large(table, f"has {len(columns):,} columns, more than {most:,}", "columns")
    duplicate = next((column for column, count in Counter(columns).items() if count > 1), None)
    if duplicate is not None:
        raise MaskMatchError(f"{table} has two columns named {duplicate!r}; give each column a unique name.")


def clashes(columns: Iterable[str], others: Iterable[str]) -> list[str]:
    """The columns that are named like one of the others, whatever their case: some readers of tables know no case.

    >>> clashes(["text", "Label"], ["label", "probability"])
    ['Label']
    """
    taken = {name.casefold() for name in others}
    return [name for name in columns if name.casefold() in taken]


def check_equal_lengths(lengths: dict[str, int], table: str) -> None:
    """Raise if the columns of a table have different lengths.

    Args:
        lengths: The number of values of each column.
        table: The table's name in the error message.
    """
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{column} {length}" for column, length in lengths.items())
        raise MaskMatchError(f"{table} has columns of different lengths ({listed}); all columns need the same length.")
