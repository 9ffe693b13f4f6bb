"""`read_rows` on valid and invalid files."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
from pathlib import Path

import pytest

from maskmatch.data import Row, read_rows
from maskmatch.errors import MaskMatchError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in an empty folder, so that error messages name files without a path."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, content: str | bytes) -> str:
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    return name


def fields(source: object, **options: object) -> list[dict[str, object]]:
    return [row.fields for row in read_rows(source, **options)]  # type: ignore[arg-type]


def error_message(source: object, **options: object) -> str:
    with pytest.raises(MaskMatchError) as caught:
        list(read_rows(source, **options))  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


TWO_ROWS = [{"text": "one", "label": "a"}, {"text": "two", "label": "b"}]
LINES = "".join(json.dumps(row) + "\n" for row in TWO_ROWS)
TABLES = {
    "csv": "text,label\none,a\ntwo,b\n",
    "tsv": "text\tlabel\none\ta\ntwo\tb\n",
    "json": json.dumps(TWO_ROWS),
    "jsonl": LINES,
    "ndjson": LINES,
}


class TestFormats:
    @pytest.mark.parametrize("suffix", TABLES)
    def test_format_from_suffix(self, suffix: str) -> None:
        assert fields(write(f"data.{suffix}", TABLES[suffix])) == TWO_ROWS
        assert fields(Path(write(f"data.{suffix.upper()}", TABLES[suffix]))) == TWO_ROWS

    @pytest.mark.parametrize("suffix", TABLES)
    def test_gzip_of_every_format(self, suffix: str) -> None:
        assert fields(write(f"data.{suffix}.gz", gzip.compress(TABLES[suffix].encode()))) == TWO_ROWS

    def test_text_file_has_one_text_per_line(self) -> None:
        assert list(read_rows(write("data.txt", "one\n\n  two, three \r\n"))) == [
            Row({"text": "one"}, "data.txt, line 1"),
            Row({"text": "  two, three "}, "data.txt, line 3"),
        ]

    def test_parquet(self) -> None:
        parquet = pytest.importorskip("pyarrow.parquet")
        import pyarrow

        rows = [{"text": "one", "labels": ["a", "b"]}, {"text": "two", "labels": []}]
        parquet.write_table(pyarrow.Table.from_pylist(rows), "data.parquet")
        assert list(read_rows("data.parquet")) == [
            Row(rows[0], "data.parquet, row 1"),
            Row(rows[1], "data.parquet, row 2"),
        ]
        content = Path("data.parquet").read_bytes()
        assert fields(write("data.parquet.gz", gzip.compress(content))) == rows
        assert fields(io.BytesIO(content), format="parquet") == rows

    def test_format_option(self) -> None:
        name = write("data.log", TABLES["csv"])
        assert fields(name, format="csv") == TWO_ROWS
        assert fields(name, format=".CSV") == TWO_ROWS
        assert fields(write("data.txt", LINES), format="jsonl") == TWO_ROWS

    @pytest.mark.parametrize("name", ["data.xlsx", "data", "data.gz", "data.csv.zip"])
    def test_unknown_suffix_lists_the_known_ones(self, name: str) -> None:
        message = error_message(write(name, "text\none\n"))
        assert name in message
        assert ".csv, .tsv, .json, .jsonl, .ndjson, .parquet or .txt" in message
        assert "--format" in message

    def test_a_file_that_is_not_there(self) -> None:
        assert "There is no file 'data.xlsx'; check" in error_message("data.xlsx")
        assert "--text" in error_message("My card is gone.")

    def test_unknown_format(self) -> None:
        assert "'xml'" in error_message("data.csv", format="xml")

    def test_json_object_of_columns(self) -> None:
        assert fields(write("data.json", '{"text": ["one", "two"], "label": ["a", "b"]}')) == TWO_ROWS

    def test_json_string_is_a_text(self) -> None:
        assert fields(write("data.jsonl", '"one"\n{"text": "two"}\n')) == [{"text": "one"}, {"text": "two"}]
        assert fields(write("data.json", '["one", {"text": "two"}]')) == [{"text": "one"}, {"text": "two"}]


class TestStreams:
    MIXED = '{"text": "one", "label": "a"}\n\n"two \\"2\\""\n"three" she said\nplain, {text}\n'
    ROWS = (
        {"text": "one", "label": "a"},
        {"text": 'two "2"'},
        {"text": '"three" she said'},
        {"text": "plain, {text}"},
    )

    def test_standard_input_of_mixed_lines(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(self.MIXED.encode())))
        rows = list(read_rows("-"))
        assert [row.fields for row in rows] == list(self.ROWS)
        assert [row.where for row in rows][1] == "standard input, line 3"

    def test_standard_input_without_a_byte_stream(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("one\n"))
        assert fields("-") == [{"text": "one"}]

    def test_standard_input_with_format_and_encoding(self, monkeypatch: pytest.MonkeyPatch) -> None:
        content = "text,label\ncafé,a\n".encode("latin-1")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
        assert fields("-", format="csv", encoding="latin-1") == [{"text": "café", "label": "a"}]

    def test_no_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", None)
        assert "standard input" in error_message("-")

    def test_empty_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n \n")))
        assert error_message("-") == "standard input has no rows; give at least one."

    def test_invalid_json_on_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'one\n{"text": \n')))
        assert "standard input, line 2" in error_message("-")

    def test_text_and_binary_streams(self) -> None:
        assert fields(io.StringIO(TABLES["csv"]), format="csv") == TWO_ROWS
        assert fields(io.BytesIO(TABLES["csv"].encode()), format="csv") == TWO_ROWS
        assert fields(io.BytesIO(gzip.compress(LINES.encode()))) == TWO_ROWS

    def test_stream_stays_open_and_has_the_format_of_its_name(self) -> None:
        write("data.csv", TABLES["csv"])
        write("data.csv.gz", gzip.compress(TABLES["csv"].encode()))
        for name, mode in (("data.csv", "r"), ("data.csv", "rb"), ("data.csv.gz", "rb")):
            with open(name, mode) as stream:
                assert fields(stream) == TWO_ROWS
                assert not stream.closed
            assert "is closed" in error_message(stream)
        with gzip.open("data.csv.gz") as unpacked:
            assert fields(unpacked) == TWO_ROWS

    def test_stream_open_for_writing(self) -> None:
        with open("data.csv", "w") as stream:
            assert "data.csv cannot be read" in error_message(stream)

    def test_rows_of_a_pipe_are_available_at_once(self) -> None:
        reading, writing = os.pipe()
        with open(reading, "rb") as stream, open(writing, "wb", buffering=0) as pipe:
            pipe.write(b"one\ntwo\n")
            rows = read_rows(stream)
            assert next(rows).fields == {"text": "one"}
            assert next(rows).fields == {"text": "two"}

    def test_large_file_is_read_lazily(self) -> None:
        stream = io.BytesIO(b"text,label\n" + b"one,a\n" * 100_000)
        next(read_rows(stream, format="csv"))
        assert stream.tell() < 50_000


class TestEncodings:
    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
    @pytest.mark.parametrize("name", ["data.csv", "data.jsonl", "data.json", "data.txt"])
    def test_byte_order_mark_sets_the_encoding(self, name: str, encoding: str) -> None:
        contents = {
            "data.csv": "text\ncafé ☕\n",
            "data.jsonl": '{"text": "café ☕"}\n',
            "data.json": '[{"text": "café ☕"}]',
            "data.txt": "café ☕\n",
        }
        assert fields(write(name, contents[name].encode(encoding))) == [{"text": "café ☕"}]

    def test_byte_order_mark_in_a_text_stream_is_removed(self) -> None:
        assert fields(io.StringIO("\ufefftext\none\n"), format="csv") == [{"text": "one"}]

    def test_encoding_option(self) -> None:
        assert fields(write("data.txt", "café".encode("cp1252")), encoding="cp1252") == [{"text": "café"}]

    @pytest.mark.parametrize("name", ["data.csv", "data.jsonl", "data.json", "data.txt"])
    def test_wrong_encoding_names_the_line(self, name: str) -> None:
        line = {"data.jsonl": '{"text": "%s"}\n', "data.json": '"%s"\n'}.get(name, "%s\n")
        content = (line % "plain") * 2 + line % "café" + line % "plain"
        message = error_message(write(name, content.encode("latin-1")))
        assert f"{name}, line 3 is not valid UTF-8" in message
        assert "--encoding latin-1" in message

    def test_invalid_bytes_in_the_given_encoding(self) -> None:
        assert "data.txt, line 2 is not valid CP1252" in error_message(
            write("data.txt", b"one\n\x81\n"), encoding="cp1252"
        )

    def test_truncated_utf_16(self) -> None:
        assert "not valid UTF-16" in error_message(write("data.txt", "one\ntwo\n".encode("utf-16") + b"x"))

    def test_text_stream_in_the_wrong_encoding(self) -> None:
        write("data.txt", "café".encode("latin-1"))
        with open("data.txt", encoding="utf-8") as stream:
            assert "not valid UTF-8" in error_message(stream)

    @pytest.mark.parametrize("encoding", ["nonsense", "hex", "\0"])
    def test_unknown_encoding(self, encoding: str) -> None:
        assert "encoding" in error_message(write("data.txt", "one"), encoding=encoding)

    @pytest.mark.parametrize("name", ["data.csv", "data.jsonl", "data.json", "data.txt"])
    def test_nul_bytes(self, name: str) -> None:
        assert f"{name}, line 2 contains a NUL byte" in error_message(
            write(name, b"text\no\0ne\n" if "j" not in name else b'"a"\n"\0"')
        )

    def test_utf_16_without_byte_order_mark(self) -> None:
        assert "--encoding utf-16" in error_message(write("data.csv", "text\none\n".encode("utf-16-le")))


class TestLinesAndCells:
    def test_windows_line_endings(self) -> None:
        for suffix, content in TABLES.items():
            assert fields(write(f"data.{suffix}", content.replace("\n", "\r\n"))) == TWO_ROWS

    def test_blank_lines_are_skipped(self) -> None:
        rows = list(read_rows(write("data.csv", "\n \ntext,label\n\none,a\n   \n\ntwo,b\n\n")))
        assert [row.fields for row in rows] == TWO_ROWS
        assert [row.where for row in rows] == ["data.csv, line 5", "data.csv, line 8"]
        assert fields(write("data.jsonl", "\n" + LINES.replace("\n", "\n  \n"))) == TWO_ROWS

    def test_row_of_empty_cells_is_kept(self) -> None:
        assert fields(write("data.tsv", "text\tlabel\n\t\n")) == [{"text": "", "label": ""}]

    @pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
    def test_delimiter_from_the_header(self, delimiter: str) -> None:
        assert fields(write("data.csv", TABLES["csv"].replace(",", delimiter))) == TWO_ROWS

    def test_ambiguous_delimiter_is_a_comma(self) -> None:
        assert fields(write("data.csv", "a;b,c\n1,2\n")) == [{"a;b": "1", "c": "2"}]
        assert fields(write("data.csv", '"a,b";c\n1;2\n')) == [{"a,b": "1", "c": "2"}]
        assert fields(write("data.csv", "text\none; two\n")) == [{"text": "one; two"}]

    @pytest.mark.parametrize(("row", "cells"), [("one", "1 cell"), ("one,a,b", "3 cells"), ("one,", None)])
    def test_row_of_a_different_width(self, row: str, cells: str | None) -> None:
        name = write("data.csv", f'text,label\n"o\nne",a\n{row}\n')
        if cells is None:
            assert fields(name)[-1] == {"text": "one", "label": ""}
        else:
            assert f"data.csv, line 4 has {cells}, but the header has 2 columns" in error_message(name)

    def test_multi_line_cells(self) -> None:
        rows = list(read_rows(write("data.csv", 'text,label\n"one\n""1""\r\n,x",a\ntwo,b\n')))
        assert rows == [
            Row({"text": 'one\n"1"\r\n,x', "label": "a"}, "data.csv, line 2"),
            Row({"text": "two", "label": "b"}, "data.csv, line 5"),
        ]

    @pytest.mark.parametrize(
        ("content", "line"),
        [
            ('text,label\none,a\n"two,b\nthree,c\n', 3),
            ('text,label\none,"\n', 2),
            ('text,label\none,"', 2),
            ('text,label\n"one\n1","a\nb\nc', 3),
            ('text,label\n5" disc,"a\nb""\n"",c', 2),
            ('text,"label\none,a\n', 1),
        ],
    )
    def test_unclosed_quote(self, content: str, line: int) -> None:
        assert f"data.csv, line {line} opens a double quote" in error_message(write("data.csv", content))

    def test_text_after_a_closing_quote(self) -> None:
        assert "data.csv, line 2 continues after the closing quote" in error_message(
            write("data.csv", 'text,label\n"one" 1,a\n')
        )

    def test_stray_carriage_return(self) -> None:
        stream = io.StringIO("text,label\none\r1,a\n")  # this stream does not split lines at \r
        assert "the stream, line 2 contains a stray carriage return" in error_message(stream, format="csv")

    def test_header_names(self) -> None:
        assert fields(write("data.csv", "text , label\none,a\n")) == [{"text": "one", "label": "a"}]
        assert "two columns named 'text'" in error_message(write("data.csv", "text,label,text\n1,2,3\n"))
        message = error_message(write("data.csv", ",text\n0,one\n"))
        assert "no name for column 1" in message
        assert "index=False" in message

    def test_large_cells_keep_the_csv_limit(self) -> None:
        csv.field_size_limit(1000)
        try:
            rows = read_rows(write("data.csv", f"text,label\n{'x' * 300_000},a\ntwo,b\n"))
            assert len(next(rows).fields["text"]) == 300_000
            assert csv.field_size_limit() == 1000
            next(rows)
            assert csv.field_size_limit() == 1000
        finally:
            csv.field_size_limit(131072)


class TestInvalidFiles:
    @pytest.mark.parametrize("suffix", [*TABLES, "txt", "parquet"])
    def test_empty_files_have_no_rows(self, suffix: str) -> None:
        if suffix == "parquet":
            pytest.importorskip("pyarrow")
        for content in (b"", b"\n \n") if suffix != "parquet" else (b"",):
            assert "has no rows" in error_message(write(f"data.{suffix}", content))
            assert "has no rows" in error_message(write(f"data.{suffix}.gz", gzip.compress(content)))

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("data.csv", "text,label\n\n"),
            ("data.json", "[]"),
            ("data.json", "{}"),
            ("data.json", '{"text": []}'),
        ],
    )
    def test_tables_without_rows(self, name: str, content: str) -> None:
        assert error_message(write(name, content)) == f"{name} has no rows; give at least one."

    @pytest.mark.parametrize("line", ['{"text": ', "{'text': 1}", "[" * 100_000, "1" * 5000, "plain"])
    def test_invalid_json_lines(self, line: str) -> None:
        assert "data.jsonl, line 2 is not valid JSON" in error_message(
            write("data.jsonl", f'{{"text": "one"}}\n{line}\n')
        )

    @pytest.mark.parametrize("line", ["1", "null", "[1, 2]", "true", "1.5"])
    def test_json_lines_that_are_not_objects(self, line: str) -> None:
        message = error_message(write("data.jsonl", f'{{"text": "one"}}\n{line}\n'))
        assert message.startswith("data.jsonl, line 2 is ")
        assert "not an object" in message
        assert "data.json, row 2" in error_message(write("data.json", f'["one", {line}]'))

    def test_invalid_json(self) -> None:
        assert "data.json, line 3 is not valid JSON" in error_message(write("data.json", '[\n"one",\n]'))
        assert ".jsonl" in error_message(write("data.json", LINES))
        assert "not valid JSON" in error_message(write("data.json", "[" * 100_000))

    @pytest.mark.parametrize("content", ['"one"', "1", '{"text": "one"}', '{"0": {"text": "one"}}'])
    def test_json_that_is_not_a_table(self, content: str) -> None:
        assert "list of objects" in error_message(write("data.json", content))

    def test_json_columns_of_different_lengths(self) -> None:
        assert "text 2, label 1" in error_message(write("data.json", '{"text": ["a", "b"], "label": ["c"]}'))

    def test_broken_gzip(self) -> None:
        packed = gzip.compress(TABLES["csv"].encode() * 1000)
        for content in (
            packed[:-20],
            packed[:-8] + b"\0" * 8,
            packed[:12] + b"\xff" * 40,
            packed + b"trailing",
        ):
            assert "data.csv.gz is a broken gzip file" in error_message(write("data.csv.gz", content))
        assert "data.csv.gz is not a gzip file" in error_message(write("data.csv.gz", TABLES["csv"]))
        assert "broken gzip" in error_message(write("data.parquet.gz", packed[:-20]))

    @pytest.mark.parametrize("suffix", [*TABLES, "txt", "parquet", "csv.gz"])
    def test_missing_file_and_folder(self, suffix: str) -> None:
        assert f"missing.{suffix} does not exist" in error_message(f"missing.{suffix}")
        Path(f"folder.{suffix}").mkdir()
        assert f"folder.{suffix} is a folder" in error_message(f"folder.{suffix}")
        assert ". is a folder" in error_message(".")

    @pytest.mark.parametrize("name", ["", "a\0b.csv", "x" * 5000 + ".csv", "data.csv/data.csv"])
    def test_invalid_file_names(self, name: str) -> None:
        write("data.csv", TABLES["csv"])
        error_message(name)

    def test_no_permission(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def deny(*_: object) -> None:
            raise PermissionError(13, "Permission denied")

        write("data.csv", TABLES["csv"])
        # Not chmod, because root may read every file.
        monkeypatch.setattr("builtins.open", deny)
        assert "data.csv cannot be read: permission denied" in error_message("data.csv")

    @pytest.mark.parametrize("content", [b"PAR1", b"text,label\none,a\n", b"PAR1" + b"\0" * 100 + b"PAR1"])
    def test_broken_parquet(self, content: bytes) -> None:
        pytest.importorskip("pyarrow")
        assert "data.parquet cannot be read as Parquet" in error_message(write("data.parquet", content))

    def test_parquet_in_text_mode(self) -> None:
        assert "open it in binary mode" in error_message(io.StringIO("PAR1"), format="parquet")

    def test_parquet_without_pyarrow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        assert 'pip install "maskmatch[parquet]"' in error_message(write("data.parquet", b"PAR1"))
