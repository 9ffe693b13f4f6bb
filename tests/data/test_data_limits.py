"""Hostile and broken files: bounded memory and time, and a sentence."""

from __future__ import annotations

import gzip
import json
import resource
import time
from typing import TYPE_CHECKING

import pytest

from maskmatch import MaskMatchError, load_examples
from maskmatch.data import read_rows
from maskmatch.data.limits import VARIABLE, limits

if TYPE_CHECKING:
    from pathlib import Path


def message(path: Path) -> str:
    with pytest.raises(MaskMatchError) as caught:
        list(read_rows(path))
    return str(caught.value)


def bomb(path: Path, line: bytes, size: int) -> Path:
    with gzip.open(path, "wb", compresslevel=9) as file:
        block = line * (1_000_000 // len(line))
        for _ in range(size // len(block)):
            file.write(block)
    return path


@pytest.mark.parametrize("name", ["a.txt.gz", "a.csv.gz", "a.jsonl.gz", "a.json.gz", "a.parquet.gz"])
@pytest.mark.parametrize("line", [b"aaaaaaaaaa", b"          \n"])
def test_a_gzip_bomb_is_refused_in_bounded_memory(tmp_path: Path, name: str, line: bytes) -> None:
    path = bomb(tmp_path / name, line, 60_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert f"{VARIABLE}=ratio" in message(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kilobytes


def test_ordinary_gzip_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    with gzip.open(path, "wt") as file:
        file.writelines(f"where is my card number {number}\n" for number in range(200_000))
    assert sum(1 for _ in read_rows(path)) == 200_000


def test_long_lines_and_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "line=1000,record=2000,whole=5000,columns=50")
    (tmp_path / "a.txt").write_text("short\n" + "x" * 1001 + "\n")
    assert "a.txt, line 2 has more than 1,000 characters" in message(tmp_path / "a.txt")
    (tmp_path / "a.csv").write_text('text,label\na,b\n"' + "never closed\n" * 300)
    assert "a.csv, line 3 starts a record of more than 2,000 characters; a double quote" in message(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text(",".join(f"c{number}" for number in range(51)) + "\n")
    assert "has 51 columns, more than 50" in message(tmp_path / "b.csv")
    (tmp_path / "a.json").write_text(json.dumps([{"text": "x" * 100}] * 60))
    assert "more than 5,000 characters" in message(tmp_path / "a.json")
    monkeypatch.setenv(VARIABLE, "line=2000, record=10000")
    assert len(list(read_rows(tmp_path / "a.txt"))) == 2
    assert "never closed" in message(tmp_path / "a.csv")


def test_a_json_file_may_be_one_long_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "line=1000")
    (tmp_path / "a.json").write_text(json.dumps([{"text": "x" * 100}] * 60))
    assert len(list(read_rows(tmp_path / "a.json"))) == 60


@pytest.mark.parametrize(("given", "words"), [("lines=3", "'lines'"), ("line=many", "'many'"), ("line=0", "'0'")])
def test_limits_that_cannot_be(monkeypatch: pytest.MonkeyPatch, given: str, words: str) -> None:
    monkeypatch.setenv(VARIABLE, given)
    with pytest.raises(MaskMatchError, match=words):
        limits()


def test_many_columns_take_no_quadratic_time(tmp_path: Path) -> None:
    columns = [f"column {number}" for number in range(19_000)]
    cells = ["0"] * len(columns)
    (tmp_path / "a.csv").write_text(f"text,label,{','.join(columns)}\nx,y,{','.join(cells)}\n")
    started = time.monotonic()
    assert load_examples(tmp_path / "a.csv").labels == ["y"]
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("depth", [600, 100_000])
def test_deep_json(tmp_path: Path, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    (tmp_path / "a.jsonl").write_text(f'{{"text": "x", "label": "y"}}\n{{"text": {deep}, "label": "y"}}\n')
    with pytest.raises(MaskMatchError, match=r"a\.jsonl, line 2"):
        load_examples(tmp_path / "a.jsonl")


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_a_key_that_occurs_twice(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"text": "first", "text": "second", "label": "y"}\n')
    assert "has the key 'text' twice" in message(tmp_path / name)


def test_a_parquet_date_out_of_range(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({"text": ["x"], "day": pyarrow.array([2**40], pyarrow.timestamp("s"))})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(MaskMatchError, match=r"a\.parquet"):
        list(read_rows(tmp_path / "a.parquet"))
