"""Values of table cells: conversion to plain Python, missing and blank values, texts and labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any


class InvalidCellError(ValueError):
    """A cell that cannot be used. The reader skips its row, or reports the row with this reason."""


def is_missing(value: Any) -> bool:
    """Whether a value is missing: None, NaN (float, Decimal or numpy), or NA or NaT of pandas.

    Neither numpy nor pandas is imported: their missing values are recognised by type name, or by not being equal to
    themselves.

    Examples:
        >>> is_missing(None), is_missing(float("nan")), is_missing(""), is_missing(0)
        (True, True, False, False)
    """
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    if isinstance(value, float):
        return math.isnan(value)
    if isinstance(value, Decimal):
        return value.is_nan()  # math.isnan raises for a signaling NaN
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return bool(value != value)  # a numpy scalar, such as float32 NaN or datetime64 NaT  # noqa: PLR0124
    return False


def is_blank(value: Any) -> bool:
    """Whether a text or cell has no content: a missing value, only white space, or a dict whose fields are all blank.

    Spans (``head_span`` and so on) are positions, not content, so they do not make a dict non-blank.

    Examples:
        >>> is_blank("  "), is_blank("refund"), is_blank({"text": "", "text_b": None}), is_blank({"text": "a", "b": ""})
        (True, False, True, False)
    """
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, Mapping):
        return all(is_blank(field) for name, field in value.items() if not str(name).endswith("_span"))
    return is_missing(value)


def blank_message(field: str = "text") -> str:
    """The reason why a blank text or field cannot be used; the caller adds the row.

    Examples:
        >>> blank_message()
        'the text is blank'
    """
    return f"the {field} is blank"


def is_valid_unicode(text: str) -> bool:
    """Whether a string can be encoded as UTF-8, that is, has no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def to_python(value: Any) -> Any:
    """Convert a cell to a plain Python value: arrays, tuples and sets to lists, numpy scalars to Python scalars.

    Libraries are recognised by their conversion methods, so none of them has to be imported.
    """
    try:
        return _to_python(value)
    except RecursionError:
        raise InvalidCellError("a cell is nested too deeply") from None


def _to_python(value: Any) -> Any:
    if value is None or (isinstance(value, (str, bool, int, float)) and type(value).__module__ == "builtins"):
        return value
    if isinstance(value, (list, tuple)):
        return [_to_python(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_to_python(item) for item in value), key=repr)
    for method in ("tolist", "to_list", "as_py"):
        if callable(getattr(value, method, None)):
            converted = getattr(value, method)()
            # An array of objects may contain arrays.
            return _to_python(converted) if isinstance(converted, list) else converted
    return value


def to_text(value: Any, field: str) -> str:
    """Convert a cell to a text. Numbers and booleans become strings.

    Args:
        value: The cell.
        field: The field's name in the error message.
    """
    value = to_python(value)
    if is_missing(value):
        raise InvalidCellError(f"the {field} is missing")
    if isinstance(value, (bool, int, float, Decimal)):
        return str(value)
    if not isinstance(value, str):
        raise InvalidCellError(f"the {field} is of type {type(value).__name__}, not a string")
    if is_blank(value):
        raise InvalidCellError(blank_message(field))
    if not is_valid_unicode(value):
        raise InvalidCellError(f"the {field} contains a lone surrogate (half of a character)")
    return value


def is_empty_label(value: Any) -> bool:
    """Whether a cell holds no label: it is missing, or a blank string."""
    label = to_python(value)
    return not isinstance(label, list) and (is_missing(label) or (isinstance(label, str) and is_blank(label)))


def to_label(value: Any, label_names: Mapping[Any, str] | None) -> Any:
    """Convert a cell to a label or a list of labels. An empty list means that no label applies.

    Args:
        value: The cell.
        label_names: The class names of a dataset with integer labels; any other label is then an error.
    """
    label = to_python(value)
    for each in label if isinstance(label, list) else [label]:
        _check_label(each, label_names)
    return label


def _check_label(label: Any, label_names: Mapping[Any, str] | None) -> None:
    if is_missing(label):
        raise InvalidCellError("the label is missing")
    if isinstance(label, (list, Mapping)):
        raise InvalidCellError(f"the label is of type {type(label).__name__}, not a name or a list of names")
    if is_blank(label):
        raise InvalidCellError(blank_message("label"))
    # Hugging Face datasets mark unlabelled rows with the class index -1.
    if label_names is not None and label not in label_names:
        raise InvalidCellError(f"the label is missing ({label!r} is not a class index)")
