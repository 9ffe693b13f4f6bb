"""Several labels in one cell, as CSV files have them: ``a|b`` or ``["a", "b"]``."""

from __future__ import annotations

import ast
import json
import logging
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

logger = logging.getLogger("maskmatch")

BAR = "|"
"""The separator that is found without being named."""

OTHERS = (";", ",")
"""Separators that are common in names, so that they are asked for where they may separate labels."""

NO_SEPARATOR = "none"
"""The value of ``label_separator`` with which a cell is always one label, also if it looks like a list."""

MANY = 0.5
"""Such a share of cells that look like lists makes it unlikely that they are names."""


def read_label_cells(labels: Sequence[Any], *, multi_label: bool, separator: str | None) -> list[Any]:
    """The labels of rows, of which some may stand in one cell.

    - With a separator, each cell is a list of labels.
    - With `multi_label` and no separator, a JSON list is read, and so is ``a|b`` where ``a`` and ``b`` are also labels
      of other rows. Raises where it is not clear.
    - Otherwise a cell is one label. Raises if many look like lists, and warns if many look like ``a|b``.

    >>> read_label_cells(["late|broken", "late", '["broken"]', "broken"], multi_label=True, separator=None)
    [['late', 'broken'], ['late'], ['broken'], ['broken']]
    >>> read_label_cells(["late; broken", "late"], multi_label=False, separator=";")
    [['late', 'broken'], ['late']]

    Args:
        labels: A label or a list of labels per row; None for a row without one.
        multi_label: Whether it is known that a row may have several labels.
        separator: What separates labels in a cell; "none": nothing does.
    """
    texts = [each for each in labels if isinstance(each, str)]
    if separator is not None and not separator.strip():
        raise MaskMatchError(f"The label separator is {separator!r}; give a character such as '|', or 'none'.")
    if not texts or separator == NO_SEPARATOR:
        return list(labels)
    if separator is None:
        if not multi_label:
            _check_single(texts)
            return list(labels)
        separator = _found_separator(labels)
    elif not any(separator in each or _as_list(each) is not None for each in texts):
        logger.warning("No label has the separator %r, so every row has one label.", separator)
    return [_split(each, separator) for each in labels]


def _split(label: Any, separator: str | None) -> Any:
    """The labels of a cell as a list; None for a row without a label."""
    if label is None or isinstance(label, list):
        return label
    if not isinstance(label, str):
        return [label]
    found = _as_list(label)
    if found is None:
        found = [label] if separator is None else _parts(label, separator)
    return list(dict.fromkeys(found))


def _as_list(cell: str) -> list[Any] | None:
    """The labels of a cell that is a list in JSON, or as Python prints it; None for any other cell."""
    start = cell.lstrip()[:1]
    if start != "[" or not cell.rstrip().endswith("]"):
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            found = parse(cell.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, list) and all(_is_label(each) for each in found):
            return found
    return None


def _is_label(value: Any) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, str) and bool(value.strip()))


def _parts(cell: str, separator: str) -> list[str]:
    return [part.strip() for part in cell.split(separator) if part.strip()]


def _found_separator(labels: Sequence[Any]) -> str | None:
    """The separator of cells of several labels, if it is clear; MaskMatchError if it is not."""
    lists = [_as_list(each) if isinstance(each, str) else each for each in labels]
    known = {str(part) for each in lists if isinstance(each, list) for part in each}
    cells = [each for each, found in zip(labels, lists, strict=True) if isinstance(each, str) and found is None]
    for separator in (BAR, *OTHERS):
        some = sorted({cell for cell in cells if separator in cell and len(_parts(cell, separator)) > 1})
        if not some:
            continue
        clear = _are_labels_elsewhere([*cells, *known], some, separator)
        if separator == BAR and clear:
            return BAR
        if separator == BAR or clear:
            parts = " and ".join(map(repr, _parts(some[0], separator)[:3]))
            raise MaskMatchError(
                f"The cell {some[0]!r} may be one label, or the labels {parts}; say which with --label-separator "
                f"{separator!r} or --label-separator none (label_separator={separator!r} or 'none' in Python)."
            )
    return None


def _are_labels_elsewhere(cells: Sequence[str], some: Sequence[str], separator: str) -> bool:
    """Whether most parts of the cells with a separator are also labels by themselves, or parts of other cells."""
    whole = {cell.strip() for cell in cells if separator not in cell}
    seen: dict[str, int] = {}
    for cell in some:
        for part in dict.fromkeys(_parts(cell, separator)):
            seen[part] = seen.get(part, 0) + 1
    return sum(part in whole or count > 1 for part, count in seen.items()) > len(seen) / 2


def _check_single(cells: Sequence[str]) -> None:
    """Raise if cells that are one label each look like lists; warn if they look like labels with a bar in between."""
    lists = [cell for cell in cells if _as_list(cell) is not None]
    if len(lists) >= MANY * len(cells):
        raise MaskMatchError(
            f"{len(lists)} of {len(cells)} labels look like lists, such as {lists[0]!r}; read several labels per text "
            "with --multi-label or --label-separator '|' (multi_label=True or label_separator='|' in Python), or take "
            "them as names with --label-separator none."
        )
    some = sorted({cell for cell in cells if len(_parts(cell, BAR)) > 1})
    if some and _are_labels_elsewhere(cells, some, BAR):
        logger.warning(
            "The label %r is read as one label, though its parts are labels of other rows; to read several labels per "
            "text, give --label-separator '|' (label_separator='|' in Python).",
            some[0],
        )
