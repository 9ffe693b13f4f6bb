"""Partitions: which rows they have, what they say of themselves, and what a second run makes of them. Without Ray."""

from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import maskmatch
from integration_tools import made_texts, write_lines
from maskmatch import ExportedMatcher, MaskMatchError
from maskmatch.data import read_rows
from maskmatch.integrations import ray_job
from maskmatch.integrations.arrow import AnswerOptions, model_hash
from maskmatch.integrations.partitions import PartitionWriter, find_files, read_written, split
from maskmatch.integrations.places import Place
from maskmatch.integrations.ray_job import Job, run_job
from maskmatch.integrations.rows import ParquetRows, TextRows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path


@pytest.fixture
def without_ray(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Partitions are written by this process; gives their names as they are written."""
    names: list[str] = []

    class Connected:
        def __init__(self, job: Job) -> None:
            pass

        def __enter__(self) -> int:
            return 1

        def __exit__(self, *error: object) -> None:
            pass

    def answer(job: Job, partitions: Sequence[Any], actors: int) -> dict[str, Any]:
        writer = PartitionWriter(job.folder, vars(job.options), job.output)
        names.extend(partition.name for partition in partitions)
        return {partition.name: writer.write(partition) for partition in partitions}

    connected: type[AbstractContextManager[int]] = Connected
    monkeypatch.setattr(ray_job, "connected", connected)
    monkeypatch.setattr(ray_job, "_answer", answer)
    return names


def run(folder: Path, source: Path | str, output: Path | str, **changes: Any) -> dict[str, Any]:
    options = {name: changes.pop(name) for name in ("top_k", "prefix", "text_field") if name in changes}
    job = Job(str(folder), str(source), str(output), AnswerOptions(**options), **{"rows": 10, **changes})
    return run_job(job, ExportedMatcher.from_pretrained(folder).config)


class TestRows:
    def test_ranges_of_parquet(self, tmp_path: Path) -> None:
        whole = pa.table({"n": list(range(5000)), "text": [str(n) for n in range(5000)]})
        pq.write_table(whole, tmp_path / "rows.parquet", row_group_size=700)
        reader = ParquetRows(Place.of(tmp_path / "rows.parquet"))
        assert reader.count() == 5000
        for start, stop in [(0, 10), (10, 20), (15, 18), (650, 2900), (2900, 2901), (4999, 5000), (3, 4), (0, 5000)]:
            rows = reader.read(start, stop, ["text", "n"])
            assert rows.table.equals(whole.slice(start, stop - start)), (start, stop)
            assert rows.plain == rows.table.to_pylist()
            assert set(rows.plain[0]) == {"n", "text"}
            assert rows.numbers == list(range(start, stop))

    def test_ranges_of_text_files(self, tmp_path: Path) -> None:
        rows = [{"text": f"text {n}", "n": n} if n % 7 else "{broken" for n in range(100)]
        path = write_lines(tmp_path / "rows.jsonl", rows)
        reader = TextRows(Place.of(path), "jsonl", "utf-8")
        assert (reader.count(), reader.columns) == (100, ["text", "n"])
        for start, stop in [(0, 10), (10, 20), (5, 15), (50, 60), (90, 100)]:
            found = reader.read(start, stop, ["text"])
            assert all(set(row) <= {"text"} for row in found.plain)
            assert found.numbers == list(range(start, stop))
            assert found.table["n"].to_pylist() == [str(n) if n % 7 else None for n in range(start, stop)]
            assert set(found.problems) == {n - start for n in range(start, stop) if n % 7 == 0}

    def test_row_numbers_count_blank_lines_as_the_command_does(self, tmp_path: Path) -> None:
        (tmp_path / "rows.txt").write_text("a\n\nb\nc\n\n\nd\n")
        reader = TextRows(Place.of(tmp_path / "rows.txt"), "txt", "utf-8")
        assert reader.count() == 4
        numbers = reader.read(1, 2, ["text"]).numbers + reader.read(2, 4, ["text"]).numbers
        assert numbers == [row.number for row in read_rows(tmp_path / "rows.txt")][1:]


class TestJob:
    def test_every_row_once_in_order(self, exported: Path, tmp_path: Path, without_ray: list[str]) -> None:
        texts = made_texts(25)
        write_lines(tmp_path / "in" / "a.jsonl", [{"text": text} for text in texts])
        (tmp_path / "in" / "deep").mkdir()
        with gzip.open(tmp_path / "in" / "deep" / "b.csv.gz", "wt") as file:
            file.write("\n".join(["text", *(f'"{text}"' for text in texts)]))
        (tmp_path / "in" / "_note.csv").write_text("left out")
        (tmp_path / "in" / "notes.md").write_text("left out")
        found = run(exported, tmp_path / "in", tmp_path / "out", top_k=1)
        assert (found["rows"], found["bad_rows"], found["partitions"], found["skipped_partitions"]) == (50, 0, 6, 0)
        assert found["model"] == model_hash(exported)
        table = ds.dataset(tmp_path / "out").to_table()
        assert table["text"].to_pylist() == texts * 2
        assert table["row"].to_pylist() == list(range(25)) * 2
        expected = [pairs[0] for pairs in ExportedMatcher.from_pretrained(exported).top_k(texts, 1)]
        assert table["label"].to_pylist() == [label for label, _ in expected] * 2
        assert table["probability"].to_pylist()[:25] == pytest.approx([value for _, value in expected], abs=1e-5)

    def test_bad_rows(self, exported: Path, tmp_path: Path, without_ray: list[str]) -> None:
        rows = [{"text": "a refund"}, {"text": None}, "{broken", {"text": ["list"]}, {"text": " "}, {"other": 1}]
        write_lines(tmp_path / "rows.jsonl", rows)
        found = run(exported, tmp_path / "rows.jsonl", tmp_path / "out")
        assert (found["rows"], found["bad_rows"]) == (6, 5)
        table = ds.dataset(tmp_path / "out").to_table()
        errors = table["error"].to_pylist()
        assert errors[0] is None
        assert "line 3 is not valid JSON" in errors[2]
        assert [errors[place] for place in (1, 3, 4, 5)] == [
            "the text is missing", "the text is of type list, not a string", "the text is blank", "the text is missing",
        ]  # fmt: skip
        assert table["other"].to_pylist() == [None] * 5 + ["1"]

    def test_columns_that_python_cannot_hold(self, exported: Path, tmp_path: Path, without_ray: list[str]) -> None:
        late = pa.array([2**60, None, 0], pa.timestamp("us"))
        broken = pa.array([[b"a"], [b"\xff"], []], pa.list_(pa.binary())).cast(pa.list_(pa.string()), safe=False)
        texts = made_texts(3)
        pq.write_table(pa.table({"late": late, "broken": broken, "text": texts}), tmp_path / "rows.parquet")
        assert run(exported, tmp_path / "rows.parquet", tmp_path / "out")["bad_rows"] == 0
        table = ds.dataset(tmp_path / "out").to_table()
        assert table["late"].combine_chunks().equals(late)
        assert table["text"].to_pylist() == texts
        found = run(exported, tmp_path / "rows.parquet", tmp_path / "late", text_field="late")
        assert found["bad_rows"] >= 2
        errors = ds.dataset(tmp_path / "late").to_table()["error"].to_pylist()
        assert "column 'late' cannot be read" in errors[0]
        assert errors[1] == "the text is missing"

    def test_a_second_run_does_what_is_missing(self, exported: Path, tmp_path: Path, without_ray: list[str]) -> None:
        path = write_lines(tmp_path / "rows.jsonl", [{"text": text} for text in made_texts(45)])
        first = run(exported, path, tmp_path / "out")
        content = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
        lost = without_ray[2]
        (tmp_path / "out" / lost).unlink()
        (tmp_path / "out" / f".{lost}.1.host-1.writing").write_text("half")
        del without_ray[:]
        second = run(exported, path, tmp_path / "out")
        assert without_ray == [lost]
        assert (first["skipped_partitions"], second["skipped_partitions"]) == (0, 4)
        assert {name: (tmp_path / "out" / name).read_bytes() for name in content} == content
        assert run(exported, path, tmp_path / "out")["skipped_partitions"] == 5
        assert without_ray == [lost]

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ("options", "with other options"),
            ("model", "with another model"),
            ("input", "from another input"),
            ("rows", "--partition-rows"),
        ],
    )
    def test_another_identity_needs_overwrite(
        self, exported: Path, tmp_path: Path, without_ray: list[str], change: str, words: str
    ) -> None:
        path = write_lines(tmp_path / "rows.jsonl", [{"text": text} for text in made_texts(25)])
        run(exported, path, tmp_path / "out")
        changes: dict[str, Any] = {"options": {"top_k": 1}, "rows": {"rows": 7}}.get(change, {})
        folder = exported
        if change == "model":
            folder = tmp_path / "model"
            ExportedMatcher.from_pretrained(exported).rename_label("refund", "money back").save_pretrained(folder)
        if change == "input":
            write_lines(path, [{"text": text} for text in made_texts(25, seed=1)])
            os.utime(path, (1, 1))
        with pytest.raises(MaskMatchError, match=words):
            run(folder, path, tmp_path / "out", **changes)
        assert run(folder, path, tmp_path / "out", **changes, overwrite=True)["skipped_partitions"] == 0
        assert ds.dataset(tmp_path / "out").count_rows() == 25

    @pytest.mark.usefixtures("without_ray")
    def test_another_version_needs_overwrite(
        self, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = write_lines(tmp_path / "rows.jsonl", [{"text": text} for text in made_texts(25)])
        assert run(exported, path, tmp_path / "out")["version"] == maskmatch.__version__
        monkeypatch.setattr(maskmatch, "__version__", "99.0")
        with pytest.raises(MaskMatchError, match="with another version of maskmatch"):
            run(exported, path, tmp_path / "out")
        assert run(exported, path, tmp_path / "out", overwrite=True)["skipped_partitions"] == 0

    def test_mistakes_are_told_before_anything_is_started(
        self, exported: Path, tmp_path: Path, without_ray: list[str]
    ) -> None:
        path = write_lines(tmp_path / "in" / "rows.jsonl", [{"text": "a refund", "label": "x"}])
        with pytest.raises(MaskMatchError, match="column 'label' already"):
            run(exported, path, tmp_path / "out")
        with pytest.raises(MaskMatchError, match="would become rows"):
            run(exported, tmp_path / "in", tmp_path / "in" / "out")
        with pytest.raises(MaskMatchError, match="There is no file or folder"):
            run(exported, tmp_path / "none.csv", tmp_path / "out")
        with pytest.raises(MaskMatchError, match="no column 'body'"):
            run(exported, path, tmp_path / "out", text_field="body", prefix="x_")
        (tmp_path / "other").mkdir()
        pq.write_table(pa.table({"a": [1]}), tmp_path / "other" / "own.parquet")
        with pytest.raises(MaskMatchError, match="no file of this command"):
            run(exported, path, tmp_path / "other", prefix="x_", overwrite=True)
        (tmp_path / "in" / "broken.parquet").write_bytes(b"PAR1")
        with pytest.raises(MaskMatchError, match="cannot be read as Parquet"):
            run(exported, tmp_path / "in" / "broken.parquet", tmp_path / "out")
        with pytest.raises(MaskMatchError, match="cannot be read or written"):
            run(exported, "nowhere://bucket/rows.csv", tmp_path / "out")
        assert without_ray == []
        assert not (tmp_path / "out").exists()

    def test_the_answers_of_rows_by_uri_do_not_become_rows(self, exported: Path, tmp_path: Path) -> None:
        write_lines(tmp_path / "in" / "rows.jsonl", [{"text": "a refund"}])
        for source in (tmp_path / "in", (tmp_path / "in").as_uri(), f"{(tmp_path / 'in').as_uri()}/"):
            for output in (tmp_path / "in" / "out", (tmp_path / "in" / "out").as_uri()):
                with pytest.raises(MaskMatchError, match="would become rows"):
                    run(exported, source, output)

    def test_files_without_rows_and_of_unknown_formats(
        self, exported: Path, tmp_path: Path, without_ray: list[str], caplog: pytest.LogCaptureFixture
    ) -> None:
        write_lines(tmp_path / "in" / "rows.jsonl", [{"text": "a refund"}])
        for name, content in (("a.csv", "text,id\n"), ("b.json", "[]"), ("c.txt", "\n\n"), ("d.xlsx", "no")):
            (tmp_path / "in" / name).write_text(content)
        assert run(exported, tmp_path / "in", tmp_path / "out")["rows"] == 1
        assert "1 files of unknown formats are not read, such as" in caplog.text
        assert "d.xlsx" in caplog.text
        with pytest.raises(MaskMatchError, match="has no rows"):
            run(exported, tmp_path / "in" / "a.csv", tmp_path / "other")

    def test_a_file_without_a_text_is_named(self, exported: Path, tmp_path: Path, without_ray: list[str]) -> None:
        write_lines(tmp_path / "in" / "a.jsonl", [{"text": "a refund"}])
        (tmp_path / "in" / "b.csv").write_text("id,date,notes\n1,2,3\n")
        with pytest.raises(MaskMatchError, match=r"b\.csv: Cannot tell which column"):
            run(exported, tmp_path / "in", tmp_path / "out")

    def test_answers_hold_no_path_of_this_machine_and_the_input_may_move(
        self, exported: Path, tmp_path: Path, without_ray: list[str]
    ) -> None:
        path = write_lines(tmp_path / "in" / "rows.jsonl", [{"text": text} for text in made_texts(25)])
        run(exported, path.parent, tmp_path / "out")
        for file in (tmp_path / "out").iterdir():
            assert str(tmp_path).encode() not in file.read_bytes()
        (tmp_path / "in").rename(tmp_path / "moved")
        assert run(exported, tmp_path / "moved", tmp_path / "out")["skipped_partitions"] == 3

    def test_a_folder_with_a_manifest_is_complete(self, exported: Path, tmp_path: Path, without_ray: list[str]) -> None:
        path = write_lines(tmp_path / "rows.jsonl", [{"text": text} for text in made_texts(25)])
        run(exported, path, tmp_path / "out", rows=5)
        before = sorted(each.name for each in (tmp_path / "out").iterdir())
        pq.write_table(pa.table({"a": [1]}), tmp_path / "out" / "zz.parquet")
        with pytest.raises(MaskMatchError, match="no file of this command"):
            run(exported, path, tmp_path / "out", rows=7, overwrite=True)
        assert sorted(each.name for each in (tmp_path / "out").iterdir()) == [*before, "zz.parquet"]
        (tmp_path / "out" / "zz.parquet").unlink()
        assert run(exported, path, tmp_path / "out", rows=7, overwrite=True)["rows"] == 25
        assert ds.dataset(tmp_path / "out").count_rows() == 25

    def test_places_by_uri(self, exported: Path, tmp_path: Path, without_ray: list[str]) -> None:
        write_lines(tmp_path / "in" / "rows.jsonl", [{"text": text} for text in made_texts(25)])
        run(exported, (tmp_path / "in").as_uri(), (tmp_path / "out").as_uri())
        assert run(exported, (tmp_path / "in").as_uri(), (tmp_path / "out").as_uri())["skipped_partitions"] == 3
        manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
        assert manifest["rows"] == sum(file["rows"] for file in manifest["files"]) == 25

    def test_a_file_that_changes_meanwhile(self, exported: Path, tmp_path: Path) -> None:
        path = write_lines(tmp_path / "rows.jsonl", [{"text": text} for text in made_texts(25)])
        files = [file.counted() for file in find_files(str(path), None, "utf-8")]
        first, *_ = split(files, 10, {"model": "m", "options": {}})
        write_lines(path, [{"text": "another"}])
        with pytest.raises(MaskMatchError, match="changed during the run"):
            PartitionWriter(str(exported), {}, str(tmp_path / "out")).write(first)
        assert read_written(Place.of(tmp_path / "out") / first.name) is None


class Bucket:
    """An object store: a file is there when it is closed."""

    type_name = "s3"

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def open_output_stream(self, path: str) -> Iterator[Any]:
        sink, files = pa.BufferOutputStream(), self.files

        class Stream:
            def __enter__(self) -> Any:
                return sink

            def __exit__(self, *error: object) -> None:
                files[path] = sink.getvalue().to_pybytes()

        return Stream()  # type: ignore[return-value]


def test_object_stores_get_a_file_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = Bucket()
    monkeypatch.setattr(Place, "_found", property(lambda place: (bucket, f"bucket/folder/{place.below}")))
    (Place.of("s3://bucket/folder") / "a.parquet").write(b"content")
    assert bucket.files == {"bucket/folder/a.parquet": b"content"}
