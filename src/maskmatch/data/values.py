"""What a cell holds: plain Python values, missing values, texts and labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from maskmatch.data.sources import is_unicode


class UnusableCellError(ValueError):
    """A cell that cannot be used, and why; the row it belongs to is reported or skipped."""


def plain(value: Any) -> Any:
    """Return a cell as a plain Python value: arrays and tuples become lists, numpy's numbers Python's.

    The libraries are recognised by their methods, so that none of them has to be imported.
    """
    if value is None or (isinstance(value, (str, bool, int, float)) and type(value).__module__ == "builtins"):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item) for item in value), key=repr)
    for convert in ("tolist", "to_list", "as_py"):
        if callable(getattr(value, convert, None)):
            converted = getattr(value, convert)()
            # An array of objects may hold arrays again.
            return plain(converted) if isinstance(converted, list) else converted
    return value


def is_missing(value: Any) -> bool:
    """Tell whether a cell has no value: None, NaN, or what pandas writes for them."""
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(value, (float, Decimal)) and math.isnan(value)


def is_empty(value: Any) -> bool:
    """Tell whether a cell has no value or nothing but white space."""
    return is_missing(value) or (isinstance(value, str) and not value.strip())


def text_of(value: Any, field: str) -> str:
    """Return a cell as a text; a number or a truth value is written out."""
    value = plain(value)
    if is_missing(value):
        raise UnusableCellError(f"the {field} is missing")
    if isinstance(value, (bool, int, float, Decimal)):
        return str(value)
    if not isinstance(value, str):
        raise UnusableCellError(f"the {field} is of type {type(value).__name__}, not a text")
    if not value.strip():
        raise UnusableCellError(f"the {field} is blank")
    if not is_unicode(value):
        raise UnusableCellError(f"the {field} holds half of a character (a lone surrogate)")
    return value


def label_of(value: Any, label_names: Mapping[Any, str] | None) -> Any:
    """Return a cell as a label, or as a list of labels, each of them there; an empty list says that none applies."""
    label = plain(value)
    if not isinstance(label, list):
        _check_label(label, label_names)
        return label
    for item in label:
        _check_label(item, label_names)
    return label


def _check_label(label: Any, label_names: Mapping[Any, str] | None) -> None:
    if is_missing(label):
        raise UnusableCellError("the label is missing")
    if isinstance(label, str) and not label.strip():
        raise UnusableCellError("the label is blank")
    if isinstance(label, (list, Mapping)):
        raise UnusableCellError(f"the label is of type {type(label).__name__}, not a name or a list of names")
    # Unlabelled rows of datasets carry the number -1, which names no class.
    if label_names is not None and label not in label_names:
        raise UnusableCellError(f"the label is missing ({label!r} names no class)")
