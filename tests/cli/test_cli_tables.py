"""``maskmatch predict -o`` and ``classify -o``: tables with the answers beside the columns of the input."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pytest

from cli_tools import Run, Tiny, fails, is_wrong_usage
from maskmatch import MaskMatcher
from maskmatch.cli import options
from maskmatch.data import read_rows, tables, write_table
from maskmatch.data.formats import WRITERS
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from pathlib import Path

ANSWERS = ["label", "probability", "label_2", "probability_2", "label_3", "probability_3"]


def read(path: Path) -> list[dict[str, Any]]:
    return [row.fields for row in read_rows(path)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rows = [{"id": f"a{number}", "text": text, "note": 'x, "y"\nz'} for number, text in enumerate(TEXTS)]
    return write_table(tmp_path / "in.csv", ["id", "text", "note"], rows)


class TestTables:
    @pytest.mark.parametrize("ending", [*WRITERS, "csv.gz", "parquet.gz"])
    def test_answers_stand_beside_the_columns_of_the_input(
        self, run: Run, model: Path, source: Path, tmp_path: Path, ending: str
    ) -> None:
        path = tmp_path / f"out.{ending}"
        result = run("predict", model, source, "-o", path)
        assert (result.code, result.out) == (0, f"12 rows in {path}\n"), result.err
        rows = read(path)
        assert list(rows[0]) == ["id", "text", "note", *ANSWERS]
        assert [{name: row[name] for name in ("id", "text", "note")} for row in rows] == read(source)
        assert [row["label"] for row in rows] == TRUTH
        for row, answer in zip(rows, run("predict", model, source).rows(), strict=True):
            best = answer["top_k"]
            assert [float(row[name]) for name in ANSWERS[1::2]] == [pair["probability"] for pair in best]
            assert [row[name] for name in ANSWERS[0::2]] == [pair["label"] for pair in best]

    def test_kept_columns_novelty_and_json(self, run: Run, model: Path, source: Path, tmp_path: Path) -> None:
        path = tmp_path / "out.jsonl"
        options_ = ["-o", path, "-k", 1, "--novelty", "--json"]
        result = run("predict", model, source, *options_, "--keep", "text, id")
        assert json.loads(result.out) == {
            "output": str(path),
            "rows": 12,
            "errors": 0,
            "columns": ["text", "id", "label", "probability", "novelty"],
        }
        assert list(read(path)[0]) == ["text", "id", "label", "probability", "novelty"]
        fails(
            run("predict", model, source, *options_, "--keep", "txt"), "no column 'txt' to keep", "Did you mean 'text'"
        )

    def test_nothing_of_the_input_is_overwritten(self, run: Run, model: Path, toy: Path, tmp_path: Path) -> None:
        first, second, third = (tmp_path / f"{number}.csv" for number in "123")
        result = run("predict", model, toy, "-o", first, "-k", 1)
        assert "begin with predicted_" in result.err
        assert list(read(first)[0]) == ["text", "label", "predicted_label", "predicted_probability"]
        assert [row["label"] for row in read(first)] == TRUTH
        run("predict", model, first, "-o", second, "-k", 1)
        assert list(read(second)[0])[4:] == ["predicted_2_label", "predicted_2_probability"]
        run("predict", model, first, "-o", third, "-k", 1, "--prefix", "my_", "--keep", "text")
        assert list(read(third)[0]) == ["text", "my_label", "my_probability"]
        assert run("predict", model, toy, "-o", third, "-k", 1, "--keep", "text").code == 0
        assert list(read(third)[0]) == ["text", "label", "probability"]
        fails(run("predict", model, toy, "-o", third, "--prefix", ""), "'label', too")
        later = tmp_path / "later.jsonl"
        later.write_text('{"text": "a"}\n' * 3000 + '{"text": "b", "label": "c"}\n')
        fails_late = run("predict", model, later, "-o", tmp_path / "out.jsonl")
        assert fails_late.code == 1
        assert "line 3001 has a column 'label'" in fails_late.err

    def test_skipped_rows_stay_with_their_error(self, run: Run, model: Path, tmp_path: Path) -> None:
        lines = ["not json", '{"text": ""}', json.dumps({"text": TEXTS[0], "id": 7}), '{"text": null}', "[1]"]
        source, path = tmp_path / "in.jsonl", tmp_path / "out.csv"
        source.write_text("\n".join(lines))
        fails(run("predict", model, source, "-o", path), "cannot be used")
        assert not path.exists()
        result = run("predict", model, source, "-o", path, "--skip-bad-rows", "-k", 1)
        assert result.out == f"5 rows in {path}, 4 of them without an answer\n"
        rows = read(path)
        assert list(rows[0]) == ["text", "id", "label", "probability", "error"]
        assert [row["label"] for row in rows] == ["", "", TRUTH[0], "", ""]
        assert [bool(row["error"]) for row in rows] == [True, True, False, True, True]
        assert "not valid JSON" in rows[0]["error"]
        assert "the text is blank" in rows[1]["error"]

    def test_a_bad_row_is_found_before_anything_is_classified(
        self, run: Run, model: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(options, "CHUNK_SIZE", 2)
        monkeypatch.setattr(options, "load_predictor", None)
        source.write_text(source.read_text() + "short\n")
        fails(run("predict", model, source, "-o", tmp_path / "out.csv"), "has 1 cell, but the header has 3 columns")

    def test_rows_of_a_chunk_without_texts_stay(
        self, run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(options, "CHUNK_SIZE", 2)
        source, path = tmp_path / "in.csv", tmp_path / "out.csv"
        texts = [TEXTS[0], "", "", "", "", TEXTS[4], "", ""]
        write_table(source, ["text", "n"], [{"text": text, "n": number} for number, text in enumerate(texts)])
        assert run("predict", model, source, "-o", path, "--skip-bad-rows").code == 0
        assert [row["n"] for row in read(path)] == list("01234567")
        assert [row["label"] for row in read(path)] == [TRUTH[0], "", "", "", "", TRUTH[4], "", ""]

    def test_texts_and_standard_input(self, run: Run, model: Path, tmp_path: Path) -> None:
        path = tmp_path / "out.tsv"
        assert run("predict", model, "--text", TEXTS[0], "--text", TEXTS[4], "-o", path).code == 0
        assert [(row["text"], row["label"]) for row in read(path)] == [(TEXTS[0], TRUTH[0]), (TEXTS[4], TRUTH[4])]
        assert run("predict", model, "-o", path, stdin="\n".join(TEXTS)).code == 0
        assert [row["label"] for row in read(path)] == TRUTH
        is_wrong_usage(run("predict", model, "-o", path, "--resume", stdin="x"), "of a file")

    def test_an_abstaining_classifier_shows_its_best_label_too(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        path = tmp_path / "out.jsonl"
        given = ["--model", tiny("bert"), "--labels", ",".join(LABELS), "--abstain", "0.99"]
        assert run("classify", *given, "--text", "x", "-o", path, "-k", 2).code == 0
        (row,) = read(path)
        assert list(row) == ["text", "label", "probability", "label_1", "probability_1", "label_2", "probability_2"]
        assert row["label"] is None
        assert row["label_1"] in LABELS

    def test_classify_and_several_labels(self, run: Run, tiny: Tiny, source: Path, tmp_path: Path) -> None:
        path = tmp_path / "out.jsonl"
        given = ["--model", tiny("bert"), "--labels", ",".join(LABELS), source, "-o", path]
        assert run("classify", *given, "--keep", "id").code == 0
        assert list(read(path)[0]) == ["id", *ANSWERS]
        assert run("classify", *given, "--keep", "id", "--multi-label", "-k", 1).code == 0
        rows = read(path)
        assert list(rows[0]) == ["id", "labels", "label_1", "probability_1"]
        expected = MaskMatcher.from_pretrained(tiny("bert"), LABELS, multi_label=True).predict(TEXTS)
        assert [row["labels"] for row in rows] == expected

    def test_numbers_as_labels(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        MaskMatcher.from_pretrained(tiny("bert"), {3: "refund", (1, 2): "card"}).save_pretrained(tmp_path / "m")
        for ending in ("parquet", "jsonl", "csv"):
            path = tmp_path / f"out.{ending}"
            assert run("predict", tmp_path / "m", "--text", "x", "-o", path).code == 0
            (row,) = read(path)
            assert {str(row["label"]), str(row["label_2"])} == {"3", "(1, 2)"}

    def test_wrong_usage(self, run: Run, model: Path, source: Path, tmp_path: Path) -> None:
        is_wrong_usage(run("predict", model, source, "-o", tmp_path / "out.txt"), "ends in .csv")
        is_wrong_usage(run("predict", model, source, "-o", tmp_path), "is a folder")
        is_wrong_usage(run("predict", model, source, "-o", source), "is the input")
        for option in (["--keep", "id"], ["--append"], ["--resume"], ["--prefix", "p_"]):
            is_wrong_usage(run("predict", model, source, *option), "-o FILE")

    def test_append(self, run: Run, model: Path, source: Path, tmp_path: Path) -> None:
        path = tmp_path / "out.csv"
        for _ in range(2):
            assert run("predict", model, source, "-o", path, "--append").code == 0
        assert [row["label"] for row in read(path)] == TRUTH * 2
        before = path.read_bytes()
        fails(run("predict", model, source, "-o", path, "--append", "-k", 1), "columns differ", "'label_2'")
        assert path.read_bytes() == before
        with path.open(newline="") as file:
            assert len(list(csv.reader(file))) == 25


class TestResume:
    @pytest.fixture
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(options, "CHUNK_SIZE", 5)
        monkeypatch.setattr(tables, "SAVE_EVERY", 0.0)

    @pytest.mark.usefixtures("small")
    @pytest.mark.parametrize("ending", ["csv", "jsonl.gz", "json", "parquet"])
    def test_a_run_that_was_interrupted_goes_on(
        self, run: Run, model: Path, source: Path, ending: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tmp_path = source.parent
        whole, path = tmp_path / f"whole.{ending}", tmp_path / f"out.{ending}"
        assert run("predict", model, source, "-o", whole).code == 0
        with monkeypatch.context() as patch:
            stop_after(patch, 2)
            result = run("predict", model, source, "-o", path)
        assert result.code == 130
        assert "--resume continues it" in result.err
        assert not path.exists()
        result = run("predict", model, source, "-o", path, "--resume")
        assert result.code == 0
        assert "continues after 10 rows" in result.err
        assert read(path) == read(whole)
        assert not list(tmp_path.glob("*.partial*"))

    @pytest.mark.usefixtures("small")
    def test_another_run_is_not_continued(
        self, run: Run, own: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "out.csv"
        with monkeypatch.context() as patch:
            stop_after(patch, 1)
            assert run("predict", own, source, "-o", path).code == 130
        resume = ["predict", own, source, "-o", path, "--resume"]
        assert "another abstain and set of columns;" in run(*resume, "-k", 3, "--abstain", "0.5").err
        refused = run(*resume, "-k", 2).err
        assert "another top k and set of columns" in refused or "set of columns" in refused
        assert "--resume continues it" not in refused
        content = source.read_text()
        source.write_text(content.replace("a11", "a12"))
        assert "another input;" in run(*resume).err
        source.write_text(content)
        run("labels", "add", own, "parcel")
        assert "another classifier and set of labels" in run(*resume, "-k", 3).err
        run("labels", "remove", own, "parcel")
        assert run("predict", own, source, "-o", path).code == 0
        assert [row["label"] for row in read(path)] == TRUTH

    @pytest.mark.usefixtures("small")
    def test_classify_goes_on(
        self, run: Run, tiny: Tiny, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole, path = tmp_path / "whole.csv", tmp_path / "out.csv"
        given = ["classify", "--model", tiny("bert"), "--labels", ",".join(LABELS), source, "-o"]
        assert run(*given, whole).code == 0
        with monkeypatch.context() as patch:
            stop_after(patch, 1)
            assert run(*given, path).code == 130
        assert run(*given, path, "--resume").code == 0
        assert path.read_bytes() == whole.read_bytes()

    def test_a_finished_run_does_not_add_its_rows_again(
        self, run: Run, model: Path, source: Path, tmp_path: Path
    ) -> None:
        path = tmp_path / "out.csv"
        assert run("predict", model, source, "-o", path).code == 0
        before = path.read_bytes()
        assert "no interrupted run" in fails(run("predict", model, source, "-o", path, "--append", "--resume"))
        assert "To write it again, leave --resume out" in fails(run("predict", model, source, "-o", path, "--resume"))
        assert path.read_bytes() == before


def stop_after(monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    """Ctrl-C after this many pieces of a table."""
    original, count = tables.TableWriter.write, 0

    def write(self: Any, *arguments: Any, **more: Any) -> None:
        nonlocal count
        if count == writes:
            raise KeyboardInterrupt
        count += 1
        original(self, *arguments, **more)

    monkeypatch.setattr(tables.TableWriter, "write", write)
