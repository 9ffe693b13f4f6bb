"""Cells of tables that are written: what JSON, CSV and Parquet can hold."""

from __future__ import annotations

import base64
import json
import logging
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from maskmatch.data.values import is_missing, is_valid_unicode, to_python

if TYPE_CHECKING:
    from collections.abc import Sequence

logger = logging.getLogger("maskmatch")

REPLACEMENT = "\ufffd"
"""What is written for a character that a format cannot hold."""


def json_value(value: Any) -> Any:
    """A cell as a JSON value: missing values become None, what JSON lacks becomes text.

    >>> json_value({"a": (1, float("nan"))}), json_value(float("inf")), json_value(b"raw")
    ({'a': [1, None]}, 'inf', 'cmF3')
    """
    value = to_python(value)
    if isinstance(value, Mapping):
        return {str(key): json_value(part) for key, part in value.items()}
    if isinstance(value, list):
        return [json_value(part) for part in value]
    if is_missing(value):
        return None
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode("ascii")
    return value if isinstance(value, (str, bool, int, float)) else str(value)


def to_json(value: Any) -> str:
    """A value as JSON on one line. Half of a character, which UTF-8 cannot encode, is written as an escape."""
    plain = json_value(value)
    text = json.dumps(plain, ensure_ascii=False)
    return text if is_valid_unicode(text) else json.dumps(plain)


def text_cells(cells: Sequence[Any], format_name: str, *, keep_nul: bool = False) -> list[str]:
    """Cells as texts: nothing for a missing value, JSON for a list or an object.

    A NUL, or half of a character, is replaced, with a warning: a long run should not fail because of it.

    >>> text_cells(["=1+1", None, 0.5, True, ["a", "b"]], "CSV")
    ['=1+1', '', '0.5', 'True', '["a", "b"]']
    """
    texts, replaced = [], 0
    for cell in cells:
        value = json_value(cell)
        text = "" if value is None else to_json(value) if isinstance(value, (list, dict)) else str(value)
        if ("\0" in text and not keep_nul) or not is_valid_unicode(text):
            text = "".join(
                REPLACEMENT if (each == "\0" and not keep_nul) or "\ud800" <= each <= "\udfff" else each
                for each in text
            )
            replaced += 1
        texts.append(text)
    if replaced:
        logger.warning(
            "%d %s had characters that %s cannot hold; they are replaced by %s.",
            replaced,
            "cell" if replaced == 1 else "cells",
            format_name,
            REPLACEMENT,
        )
    return texts
