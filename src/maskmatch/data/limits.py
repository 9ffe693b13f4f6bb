"""Limits of what is read at once: a hostile or broken file gets a sentence instead of all memory."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace

from maskmatch.errors import MaskMatchError, did_you_mean

VARIABLE = "MASKMATCH_LIMITS"
"""The environment variable that raises limits: ``MASKMATCH_LIMITS="line=100000000,ratio=2000"``."""


@dataclass(frozen=True)
class Limits:
    """The largest values that are read.

    Attributes:
        line: Characters of a line.
        record: Characters of a CSV record, which may go over several lines.
        whole: Bytes of a file that has to be read as a whole: JSON, compressed Parquet.
        ratio: Decompressed bytes per compressed byte. Texts have 3 to 20.
        columns: Columns of a table.
    """

    line: int = 32_000_000
    record: int = 64_000_000
    whole: int = 2_000_000_000
    ratio: int = 300
    columns: int = 20_000


def limits() -> Limits:
    """The limits, with those that the environment variable names.

    >>> limits().columns
    20000
    """
    given = os.environ.get(VARIABLE, "")
    changes = {}
    known = [each.name for each in fields(Limits)]
    for pair in filter(None, (part.strip() for part in given.split(","))):
        name, _, number = pair.partition("=")
        if name not in known:
            raise MaskMatchError(f"{VARIABLE} names {name!r}; choose {', '.join(known)}.{did_you_mean(name, known)}")
        if not number.strip().isdecimal() or not int(number):
            raise MaskMatchError(f"{VARIABLE} gives {name} the value {number!r}; it must be an integer above 0.")
        changes[name] = int(number)
    return replace(Limits(), **changes)


def too_large(where: str, what: str, limit: str) -> MaskMatchError:
    """The error for something beyond a limit.

    Args:
        where: The file, or the line of a file.
        what: What is too large, with its bound.
        limit: The name of the limit.
    """
    return MaskMatchError(f"{where} {what}; if that is right, raise the limit with {VARIABLE}={limit}=NUMBER.")
