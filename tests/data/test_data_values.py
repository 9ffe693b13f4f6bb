"""Missing values, blank texts, and the conversion of cells."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, get_args

import pytest

from maskmatch.data.formats import READERS, Format
from maskmatch.data.values import InvalidCellError, blank_message, is_blank, is_missing, is_valid_unicode, to_text


@pytest.mark.parametrize("value", [None, float("nan"), Decimal("nan"), Decimal("snan")])
def test_missing_values(value: Any) -> None:
    assert is_missing(value)


@pytest.mark.parametrize("value", ["", " ", "nan", 0, 0.0, False, float("inf"), Decimal(0), [], [None], {}, "NaT"])
def test_values_that_are_not_missing(value: Any) -> None:
    assert not is_missing(value)


def test_missing_values_of_numpy() -> None:
    numpy = pytest.importorskip("numpy")
    for kind in ("float16", "float32", "float64", "longdouble", "complex64"):
        assert is_missing(numpy.dtype(kind).type("nan"))
        assert not is_missing(numpy.dtype(kind).type(1))
    assert is_missing(numpy.datetime64("NaT"))
    assert is_missing(numpy.timedelta64("NaT"))
    for value in (numpy.int64(0), numpy.str_("nan"), numpy.bool_(False), numpy.datetime64("2025-12-31")):
        assert not is_missing(value)
    for array in (numpy.array([numpy.nan]), numpy.zeros((2, 2)), numpy.array([])):
        assert is_missing(array) is False


def test_missing_values_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    assert is_missing(pandas.NA)
    assert is_missing(pandas.NaT)
    assert not is_missing(pandas.Timestamp("2025-12-31"))
    assert not is_missing(pandas.Series([None]))


@pytest.mark.parametrize(
    "text",
    ["", " ", "\n\t\u00a0", None, float("nan"), {}, {"text": " ", "text_b": None}, {"text": "", "head_span": (0, 3)}],
)
def test_blank_texts(text: Any) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", " . ", 0, {"text": "", "text_b": "b"}, {"text": 0}, [], ["", ""]])
def test_texts_that_are_not_blank(text: Any) -> None:
    assert not is_blank(text)


def test_blank_text_has_one_message() -> None:
    assert blank_message() == "the text is blank"
    with pytest.raises(InvalidCellError, match=r"^the text_b is blank$"):
        to_text(" ", "text_b")


def test_valid_unicode() -> None:
    assert is_valid_unicode("plain")
    assert is_valid_unicode("caf\u00e9 \U0001f642")
    assert not is_valid_unicode("half \ud83d")


def test_every_format_has_a_reader() -> None:
    assert tuple(READERS) == get_args(Format)
