"""Round trips: rows with awkward texts, written by other tools and read back."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch.data import load_examples, read_rows
from maskmatch.errors import MaskMatchError

LIGHT = settings(max_examples=60, deadline=None)
AWKWARD = st.sampled_from(
    ['"', "'", "\n", "\r\n", "\r", ",", ";", "\t", "|", "{", "[", "\u2028", "\x0b", "\x1c", "\ufeff", "🙂"]
)
TEXTS = st.lists(
    AWKWARD | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
    max_size=6,
).map("".join)
CELLS = TEXTS | st.integers() | st.booleans() | st.none() | st.lists(TEXTS, max_size=3)


def tables(cells: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(st.fixed_dictionaries({"text": cells, "label": cells}), min_size=1, max_size=5)


def read(content: bytes, **options: Any) -> list[dict[str, Any]]:
    return [row.fields for row in read_rows(io.BytesIO(content), **options)]


@pytest.mark.parametrize(
    ("table_format", "delimiter"), [("csv", ","), ("csv", ";"), ("csv", "|"), ("csv", "\t"), ("tsv", "\t")]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@LIGHT
@given(rows=tables(TEXTS))
def test_csv_and_tsv(table_format: str, delimiter: str, encoding: str, rows: list[dict[str, str]]) -> None:
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, ["text", "label"], delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    content = stream.getvalue().encode(encoding)
    assert read(content, format=table_format) == rows
    assert read(gzip.compress(content), format=table_format) == rows


@LIGHT
@given(rows=tables(CELLS), ascii_only=st.booleans())
def test_json_and_json_lines(rows: list[dict[str, Any]], ascii_only: bool) -> None:
    lines = "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows).encode()
    assert read(lines, format="jsonl") == rows
    assert read(lines) == rows
    assert read(json.dumps(rows, ensure_ascii=ascii_only, indent=1).encode(), format="json") == rows
    columns = {column: [row[column] for row in rows] for column in ("text", "label")}
    assert read(json.dumps(columns, ensure_ascii=ascii_only).encode(), format="json") == rows


@LIGHT
@given(rows=tables(TEXTS))
def test_parquet(rows: list[dict[str, str]]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    stream = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), stream)
    assert read(stream.getvalue(), format="parquet") == rows


@LIGHT
@given(
    rows=st.lists(st.fixed_dictionaries({"text": TEXTS.filter(str.strip), "label": st.sampled_from("ab")}), min_size=1)
)
def test_all_sources_give_the_same_examples(rows: list[dict[str, str]]) -> None:
    expected = load_examples(rows)
    lines = io.StringIO("".join(json.dumps(row) + "\n" for row in rows))
    assert load_examples(lines) == expected
    assert load_examples({column: [row[column] for row in rows] for column in rows[0]}) == expected
    assert expected.texts == [row["text"] for row in rows]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "json", "jsonl", "txt", "parquet", "csv.gz", "parquet.gz"])
@LIGHT
@given(
    content=st.binary(max_size=60) | st.text(max_size=60).map(str.encode) | st.binary(max_size=60).map(gzip.compress)
)
def test_any_file_is_read_or_raises(suffix: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"data.{suffix}")
        path.write_bytes(content)
        try:
            rows = list(read_rows(path))
        except MaskMatchError:
            return
        assert rows
