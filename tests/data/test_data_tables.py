"""Tables that are written: what is written is read back, whole or not at all, and a run that stopped can go on."""

from __future__ import annotations

import gzip
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch.data import read_rows, tables
from maskmatch.data.formats import READERS, WRITERS
from maskmatch.data.tables import Resumable, TableWriter, partial_files, write_table, writing_table
from maskmatch.errors import MaskMatchError

LIGHT = settings(max_examples=25, deadline=None)
AWKWARD = st.sampled_from(
    [
        '"',
        "'",
        "\n",
        "\r\n",
        "\r",
        ",",
        ";",
        "\t",
        "|",
        "{",
        "[",
        "=1+1",
        "@",
        "\u2028",
        "\x85",
        "\x0b",
        "\x1c",
        "\ufeff",
    ]
)
TEXTS = st.lists(
    AWKWARD | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8), max_size=6
).map("".join)
TABLES = st.lists(st.fixed_dictionaries({"id": TEXTS, "text": TEXTS, "label": TEXTS}), min_size=1, max_size=6)
CELLS = TEXTS | st.integers(-(2**53), 2**53) | st.booleans() | st.none() | st.lists(TEXTS, max_size=3)
ENDINGS = [f"{name}{zipped}" for name in WRITERS for zipped in ("", ".gz")]


def read(path: Path) -> list[dict[str, Any]]:
    return [row.fields for row in read_rows(path)]


def stop(path: Path, pieces: list[list[dict[str, Any]]], resumable: Resumable | None = None) -> None:
    """Writes some pieces with the columns of the first row, and fails."""

    def run() -> None:
        with writing_table(path, list(pieces[0][0]), resumable=resumable) as table:
            for done, piece in enumerate(pieces, 1):
                table.write(piece, done=4 * done, errors=1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()


def test_what_can_be_written_can_be_read() -> None:
    assert set(WRITERS) <= set(READERS)


@pytest.mark.parametrize("ending", ENDINGS)
@LIGHT
@given(rows=TABLES, size=st.integers(1, 3))
def test_texts_are_read_back(ending: str, rows: list[dict[str, str]], size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"table.{ending}")
        with writing_table(path, ["id", "text", "label"]) as table:
            for start in range(0, len(rows), size):
                table.write(rows[start : start + size])
        assert read(path) == rows
        assert sorted(each.name for each in path.parent.iterdir()) == [path.name]


@pytest.mark.parametrize("ending", ["jsonl", "json", "jsonl.gz"])
@LIGHT
@given(rows=st.lists(st.fixed_dictionaries({"a": CELLS, "b": CELLS}), min_size=1, max_size=5))
def test_json_keeps_types(ending: str, rows: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert read(write_table(Path(folder, f"table.{ending}"), ["a", "b"], rows)) == rows


@LIGHT
@given(rows=st.lists(st.fixed_dictionaries({"a": CELLS, "b": st.integers(-9, 9) | st.none()}), min_size=1, max_size=5))
def test_parquet_keeps_what_has_one_type_and_writes_the_rest_as_text(rows: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.parquet")
        with writing_table(path, ["a", "b"]) as table:
            for row in rows:
                table.write([row])
        found = read(path)
    assert [row["b"] for row in found] == [row["b"] for row in rows]
    for own, other in zip(rows, found, strict=True):
        assert (own["a"] is None) == (other["a"] is None)
        assert other["a"] == own["a"] or isinstance(other["a"], (str, float, int))


@pytest.mark.parametrize("cell", [{}, [{}], {"a": {}}, {"a": [{}]}, {"a": None}, [{"a": [None, {}]}]])
def test_parquet_writes_objects_without_keys_as_text(
    cell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "AT_ONCE", 2)
    rows = [{"id": 0, "meta": cell}, {"id": 1, "meta": None}, {"id": 2, "meta": cell}]
    path = write_table(tmp_path / "t.parquet", ["id", "meta"], rows)
    found = [row["meta"] for row in read(path)]
    assert [json.loads(each) if isinstance(each, str) else each for each in found] == [cell, None, cell]
    write_table(
        path, ["id", "meta"], [*rows, {"id": 3, "meta": {"b": 1}}, {"id": 4, "meta": {}}, {"id": 5, "meta": "x"}]
    )
    assert [row["id"] for row in read(path)] == [0, 1, 2, 3, 4, 5]


def test_a_failure_at_the_end_leaves_no_partial_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: Path, target: Path) -> None:
        raise MaskMatchError("no")

    monkeypatch.setitem(WRITERS, "parquet", replace(WRITERS["parquet"], finish=fail))
    path = tmp_path / "t.parquet"
    with pytest.raises(MaskMatchError, match="no"):
        write_table(path, ["a"], [{"a": 1}])
    assert not any(each.exists() for each in (path, *partial_files(path)))
    monkeypatch.setattr(tables, "SAVE_EVERY", 0.0)
    with pytest.raises(MaskMatchError, match="no"), writing_table(path, ["a"], resumable=Resumable(dict)) as table:
        table.write([{"a": 1}], done=1)
    assert all(each.exists() for each in partial_files(path))  # they can be continued


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_table_without_rows_has_its_columns(ending: str, tmp_path: Path) -> None:
    path = write_table(tmp_path / f"table.{ending}", ["text", "label"], [])
    content = gzip.decompress(path.read_bytes()) if ending.endswith(".gz") else path.read_bytes()
    assert b"text" in content or content.split() in ([], [b"[", b"]"])
    with pytest.raises(MaskMatchError, match="has no rows"):
        read(path)


def test_lists_and_numbers_in_csv(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", ["a", "b"], [{"a": ["x", "y"], "b": 0.5}, {"a": None, "b": True}])
    assert read(path) == [{"a": '["x", "y"]', "b": "0.5"}, {"a": "", "b": "True"}]


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_characters_that_a_format_cannot_hold_are_replaced_and_said(
    ending: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [{"text": "half \ud83d of one"}, {"text": "a\0b"}]
    path = write_table(tmp_path / f"t.{ending}", ["text", "n"], rows)
    kept = "a\0b" if ending == "parquet" else "a\ufffdb"
    assert [row["text"] for row in read(path)] == ["half \ufffd of one", kept]
    assert "cannot hold" in caplog.text
    assert [row["text"] for row in read(write_table(tmp_path / "t.jsonl", ["text"], rows))] == [
        "half \ud83d of one",
        "a\0b",
    ]


@pytest.mark.parametrize("name", ["table", "table.txt", "table.xlsx", "table.gz"])
def test_other_endings_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(MaskMatchError, match=r"ends in \.csv"):
        write_table(tmp_path / name, ["a"], [])


@pytest.mark.parametrize("column", ["", " text", "text ", "\ufefftext", "te\0xt"])
def test_names_that_csv_would_not_give_back_are_refused(column: str, tmp_path: Path) -> None:
    with pytest.raises(MaskMatchError, match="not be read back"):
        write_table(tmp_path / "t.csv", [column, "label"], [])
    assert not list(tmp_path.iterdir())


def test_columns_that_come_later(tmp_path: Path) -> None:
    rows = [{"a": 1}, {"a": 2, "b": "x"}]
    assert read(write_table(tmp_path / "t.jsonl", ["a"], rows)) == rows
    assert read(write_table(tmp_path / "t.parquet", ["a"], rows)) == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]
    with pytest.raises(MaskMatchError, match="'b', which the first rows lack"):
        write_table(tmp_path / "t.csv", ["a"], rows)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_failure_leaves_the_file_as_it_was(ending: str, tmp_path: Path) -> None:
    path = write_table(tmp_path / f"t.{ending}", ["a"], [{"a": "old"}])
    before = path.read_bytes()
    stop(path, [[{"a": "new"}]])
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", ENDINGS)
def test_rows_are_appended(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "AT_ONCE", 2)
    first = [{"a": str(number), "b": "x,\n"} for number in range(5)]
    path = write_table(tmp_path / f"t.{ending}", ["a", "b"], first)
    with writing_table(path, ["b", "a"], append=True) as table:
        table.write([{"b": "y", "a": "5"}])
    assert read(path) == [*first, {"a": "5", "b": "y"}]
    before = path.read_bytes()
    with (
        pytest.raises(MaskMatchError, match="lacks 'c' and it also has 'b'"),
        writing_table(path, ["a", "c"], append=True),
    ):
        pass
    assert path.read_bytes() == before


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("every", [0.0, 1e9])
def test_a_run_that_stopped_goes_on(ending: str, every: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "SAVE_EVERY", every)
    rows = [{"a": str(number)} for number in range(9)]
    path = tmp_path / f"t.{ending}"
    key = {"classifier": "one", "input": "digest"}
    stop(path, [rows[:3], rows[3:6]], Resumable(lambda: key))
    assert not path.exists()
    partial, progress = partial_files(path)
    with partial.open("ab") as file:
        file.write(b"half of a ")  # what a kill leaves behind the last save
    with (
        pytest.raises(MaskMatchError, match="another classifier"),
        writing_table(path, ["a"], resumable=Resumable(lambda: {**key, "classifier": "other"}, resume=True)),
    ):
        pass
    assert progress.exists()
    with writing_table(path, ["a"], resumable=Resumable(lambda: key, resume=True)) as table:
        assert (table.done, table.rows, table.counts) == (8, 6, {"errors": 2})
        table.write(rows[6:], done=10)
    assert read(path) == rows
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_without_resume_a_run_starts_again(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    key = Resumable(lambda: {"input": 1})
    stop(path, [[{"a": "1"}]], key)
    with writing_table(path, ["a"], resumable=key) as table:
        assert table.done == 0
        table.write([{"a": "2"}], done=1)
    assert read(path) == [{"a": "2"}]


def test_a_damaged_progress_is_said(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    stop(path, [[{"a": "1"}]], Resumable(dict))
    partial, progress = partial_files(path)
    whole = progress.read_text()
    for content, words in (("{", "damaged"), (json.dumps({**json.loads(whole), "bytes": 99}), "another size")):
        progress.write_text(content)
        with (
            pytest.raises(MaskMatchError, match=words),
            writing_table(path, ["a"], resumable=Resumable(dict, resume=True)),
        ):
            pass
    assert partial.exists()


def test_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(MaskMatchError, match="is a folder"):
        write_table(tmp_path / "x.csv", ["a"], [])


@pytest.mark.parametrize("every", [0.0, 1e9])
def test_rows_of_an_existing_table_survive_an_interrupted_copy(
    every: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Appending copies the rows first; whoever stops there must not resume with half of them."""
    monkeypatch.setattr(tables, "SAVE_EVERY", every)
    monkeypatch.setattr(tables, "AT_ONCE", 2)
    path = tmp_path / "t.csv"
    before = [{"a": str(number)} for number in range(7)]
    write_table(path, ["a"], before)
    writes = 0
    write = TableWriter.write

    def interrupted(self: TableWriter, rows: Any, done: int | None = None, **counts: int) -> None:
        nonlocal writes
        writes += 1
        if writes == 2:
            raise KeyboardInterrupt
        write(self, rows, done, **counts)

    monkeypatch.setattr(TableWriter, "write", interrupted)
    with pytest.raises(KeyboardInterrupt), writing_table(path, ["a"], append=True, resumable=Resumable(dict)):
        pass
    assert read(path) == before
    with writing_table(path, ["a"], append=True, resumable=Resumable(dict, resume=True)) as table:
        table.write([{"a": "7"}], done=1)
    assert read(path) == [*before, {"a": "7"}]


def test_an_interrupt_within_a_write_repeats_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, append = tmp_path / "t.jsonl", TableWriter._append  # noqa: SLF001

    def interrupted(self: TableWriter, piece: bytes) -> None:
        append(self, piece)
        if b"2" in piece:
            raise KeyboardInterrupt

    monkeypatch.setattr(TableWriter, "_append", interrupted)

    def write_two() -> None:
        with writing_table(path, ["a"], resumable=Resumable(dict)) as table:
            for number in (1, 2):
                table.write([{"a": number}], done=number)

    with pytest.raises(KeyboardInterrupt):
        write_two()
    monkeypatch.setattr(TableWriter, "_append", append)
    with writing_table(path, ["a"], resumable=Resumable(dict, resume=True)) as table:
        assert table.done == 1
        table.write([{"a": 2}, {"a": 3}], done=3)
    assert read(path) == [{"a": 1}, {"a": 2}, {"a": 3}]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "json", "tsv.gz"])
def test_rows_are_added_to_a_table_without_rows(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"
    write_table(path, ["a"], [])
    with writing_table(path, ["a"], append=True) as table:
        table.write([{"a": "1"}])
    assert read(path) == [{"a": "1"}]


def test_large_numbers_stay_as_they_are_in_parquet(tmp_path: Path) -> None:
    large = [{"id": 12345678901234567 + number} for number in range(3000)]
    path = write_table(tmp_path / "t.parquet", ["id"], [*large, {"id": 1.5}])
    assert [row["id"] for row in read(path)] == [str(row["id"]) for row in large] + ["1.5"]
    path = write_table(tmp_path / "small.parquet", ["id"], [*({"id": number} for number in range(3000)), {"id": 1.5}])
    assert [row["id"] for row in read(path)][-2:] == [2999.0, 1.5]


def test_nanoseconds_stay_in_parquet(tmp_path: Path) -> None:
    times = [pd.Timestamp(2000 + number % 2) for number in range(3000)]
    path = write_table(tmp_path / "t.parquet", ["at"], [{"at": pd.Timestamp(0)}] * 3000 + [{"at": at} for at in times])
    assert [pd.Timestamp(value) for value in pd.read_parquet(path)["at"]][3000:] == times
