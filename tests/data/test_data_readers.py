"""What `read_rows` makes of good and of bad files."""

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
    """Work in a folder of its own, so that messages name files without a path."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, content: str | bytes) -> str:
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    return name


def fields(source: object, **options: object) -> list[dict[str, object]]:
    return [row.fields for row in read_rows(source, **options)]  # type: ignore[arg-type]


def refusal(source: object, **options: object) -> str:
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
    def test_the_suffix_tells_the_format(self, suffix: str) -> None:
        assert fields(write(f"data.{suffix}", TABLES[suffix])) == TWO_ROWS
        assert fields(Path(write(f"data.{suffix.upper()}", TABLES[suffix]))) == TWO_ROWS

    @pytest.mark.parametrize("suffix", TABLES)
    def test_every_format_may_be_compressed(self, suffix: str) -> None:
        assert fields(write(f"data.{suffix}.gz", gzip.compress(TABLES[suffix].encode()))) == TWO_ROWS

    def test_a_text_file_has_one_text_on_each_line(self) -> None:
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

    def test_the_format_can_be_named(self) -> None:
        name = write("data.log", TABLES["csv"])
        assert fields(name, format="csv") == TWO_ROWS
        assert fields(name, format=".CSV") == TWO_ROWS
        assert fields(write("data.txt", LINES), format="jsonl") == TWO_ROWS

    @pytest.mark.parametrize("name", ["data.xlsx", "data", "data.gz", "data.csv.zip"])
    def test_an_unknown_suffix_is_refused_with_those_that_work(self, name: str) -> None:
        message = refusal(name)
        assert name in message
        assert ".csv, .tsv, .json, .jsonl, .ndjson, .parquet or .txt" in message
        assert "--format" in message

    def test_an_unknown_format_is_refused(self) -> None:
        assert "'xml'" in refusal("data.csv", format="xml")

    def test_json_may_be_columns(self) -> None:
        assert fields(write("data.json", '{"text": ["one", "two"], "label": ["a", "b"]}')) == TWO_ROWS

    def test_a_bare_json_string_is_a_text(self) -> None:
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

    def test_each_line_of_standard_input_shows_what_it_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(self.MIXED.encode())))
        rows = list(read_rows("-"))
        assert [row.fields for row in rows] == list(self.ROWS)
        assert [row.where for row in rows][1] == "standard input, line 3"

    def test_standard_input_without_bytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("one\n"))
        assert fields("-") == [{"text": "one"}]

    def test_standard_input_in_a_named_format_and_encoding(self, monkeypatch: pytest.MonkeyPatch) -> None:
        content = "text,label\ncafé,a\n".encode("latin-1")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
        assert fields("-", format="csv", encoding="latin-1") == [{"text": "café", "label": "a"}]

    def test_no_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", None)
        assert "standard input" in refusal("-")

    def test_empty_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n \n")))
        assert refusal("-") == "standard input has no rows; give at least one."

    def test_a_broken_object_on_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'one\n{"text": \n')))
        assert "standard input, line 2" in refusal("-")

    def test_a_text_stream_and_a_binary_stream(self) -> None:
        assert fields(io.StringIO(TABLES["csv"]), format="csv") == TWO_ROWS
        assert fields(io.BytesIO(TABLES["csv"].encode()), format="csv") == TWO_ROWS
        assert fields(io.BytesIO(gzip.compress(LINES.encode()))) == TWO_ROWS

    def test_a_stream_stays_open_and_its_name_tells_the_format(self) -> None:
        write("data.csv", TABLES["csv"])
        write("data.csv.gz", gzip.compress(TABLES["csv"].encode()))
        for name, mode in (("data.csv", "r"), ("data.csv", "rb"), ("data.csv.gz", "rb")):
            with open(name, mode) as stream:
                assert fields(stream) == TWO_ROWS
                assert not stream.closed
            assert "is closed" in refusal(stream)
        with gzip.open("data.csv.gz") as unpacked:
            assert fields(unpacked) == TWO_ROWS

    def test_a_stream_that_cannot_be_read(self) -> None:
        with open("data.csv", "w") as stream:
            assert "data.csv cannot be read" in refusal(stream)

    def test_rows_come_before_the_end_of_a_pipe(self) -> None:
        reading, writing = os.pipe()
        with open(reading, "rb") as stream, open(writing, "wb", buffering=0) as pipe:
            pipe.write(b"one\ntwo\n")
            rows = read_rows(stream)
            assert next(rows).fields == {"text": "one"}
            assert next(rows).fields == {"text": "two"}

    def test_a_large_file_is_not_read_before_it_is_needed(self) -> None:
        stream = io.BytesIO(b"text,label\n" + b"one,a\n" * 100_000)
        next(read_rows(stream, format="csv"))
        assert stream.tell() < 50_000


class TestEncodings:
    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
    @pytest.mark.parametrize("name", ["data.csv", "data.jsonl", "data.json", "data.txt"])
    def test_a_byte_order_mark_tells_the_encoding(self, name: str, encoding: str) -> None:
        contents = {
            "data.csv": "text\ncafé ☕\n",
            "data.jsonl": '{"text": "café ☕"}\n',
            "data.json": '[{"text": "café ☕"}]',
            "data.txt": "café ☕\n",
        }
        assert fields(write(name, contents[name].encode(encoding))) == [{"text": "café ☕"}]

    def test_a_byte_order_mark_in_a_text_stream_is_dropped(self) -> None:
        assert fields(io.StringIO("\ufefftext\none\n"), format="csv") == [{"text": "one"}]

    def test_a_named_encoding(self) -> None:
        assert fields(write("data.txt", "café".encode("cp1252")), encoding="cp1252") == [{"text": "café"}]

    @pytest.mark.parametrize("name", ["data.csv", "data.jsonl", "data.json", "data.txt"])
    def test_bytes_in_another_encoding(self, name: str) -> None:
        line = {"data.jsonl": '{"text": "%s"}\n', "data.json": '"%s"\n'}.get(name, "%s\n")
        content = (line % "plain") * 2 + line % "café" + line % "plain"
        message = refusal(write(name, content.encode("latin-1")))
        assert f"{name}, line 3 is not valid UTF-8" in message
        assert "--encoding latin-1" in message

    def test_bytes_that_the_named_encoding_does_not_know(self) -> None:
        assert "data.txt, line 2 is not valid CP1252" in refusal(write("data.txt", b"one\n\x81\n"), encoding="cp1252")

    def test_half_a_character_of_utf_16(self) -> None:
        assert "not valid UTF-16" in refusal(write("data.txt", "one\ntwo\n".encode("utf-16") + b"x"))

    def test_a_text_stream_that_cannot_be_decoded(self) -> None:
        write("data.txt", "café".encode("latin-1"))
        with open("data.txt", encoding="utf-8") as stream:
            assert "not valid UTF-8" in refusal(stream)

    @pytest.mark.parametrize("encoding", ["nonsense", "hex", "\0"])
    def test_an_unknown_encoding(self, encoding: str) -> None:
        assert "encoding" in refusal(write("data.txt", "one"), encoding=encoding)

    @pytest.mark.parametrize("name", ["data.csv", "data.jsonl", "data.json", "data.txt"])
    def test_nul_bytes(self, name: str) -> None:
        assert f"{name}, line 2 holds a NUL byte" in refusal(
            write(name, b"text\no\0ne\n" if "j" not in name else b'"a"\n"\0"')
        )

    def test_utf_16_without_a_mark(self) -> None:
        assert "--encoding utf-16" in refusal(write("data.csv", "text\none\n".encode("utf-16-le")))


class TestLinesAndCells:
    def test_windows_line_ends(self) -> None:
        for suffix, content in TABLES.items():
            assert fields(write(f"data.{suffix}", content.replace("\n", "\r\n"))) == TWO_ROWS

    def test_blank_lines_are_not_rows(self) -> None:
        rows = list(read_rows(write("data.csv", "\n \ntext,label\n\none,a\n   \n\ntwo,b\n\n")))
        assert [row.fields for row in rows] == TWO_ROWS
        assert [row.where for row in rows] == ["data.csv, line 5", "data.csv, line 8"]
        assert fields(write("data.jsonl", "\n" + LINES.replace("\n", "\n  \n"))) == TWO_ROWS

    def test_a_row_of_empty_cells_is_a_row(self) -> None:
        assert fields(write("data.tsv", "text\tlabel\n\t\n")) == [{"text": "", "label": ""}]

    @pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
    def test_the_header_shows_the_delimiter(self, delimiter: str) -> None:
        assert fields(write("data.csv", TABLES["csv"].replace(",", delimiter))) == TWO_ROWS

    def test_a_comma_where_the_delimiter_is_not_obvious(self) -> None:
        assert fields(write("data.csv", "a;b,c\n1,2\n")) == [{"a;b": "1", "c": "2"}]
        assert fields(write("data.csv", '"a,b";c\n1;2\n')) == [{"a,b": "1", "c": "2"}]
        assert fields(write("data.csv", "text\none; two\n")) == [{"text": "one; two"}]

    @pytest.mark.parametrize(("row", "cells"), [("one", "1 cell"), ("one,a,b", "3 cells"), ("one,", None)])
    def test_a_row_of_another_width(self, row: str, cells: str | None) -> None:
        name = write("data.csv", f'text,label\n"o\nne",a\n{row}\n')
        if cells is None:
            assert fields(name)[-1] == {"text": "one", "label": ""}
        else:
            assert f"data.csv, line 4 has {cells}, but the header has 2 columns" in refusal(name)

    def test_quoted_cells_over_several_lines(self) -> None:
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
    def test_an_unclosed_quote(self, content: str, line: int) -> None:
        assert f"data.csv, line {line} opens a double quote" in refusal(write("data.csv", content))

    def test_a_quote_closed_too_early(self) -> None:
        assert "data.csv, line 2 goes on behind" in refusal(write("data.csv", 'text,label\n"one" 1,a\n'))

    def test_a_stray_carriage_return(self) -> None:
        stream = io.StringIO("text,label\none\r1,a\n")  # a stream that does not end lines there
        assert "the stream, line 2 has a stray carriage return" in refusal(stream, format="csv")

    def test_header_names(self) -> None:
        assert fields(write("data.csv", "text , label\none,a\n")) == [{"text": "one", "label": "a"}]
        assert "two columns named 'text'" in refusal(write("data.csv", "text,label,text\n1,2,3\n"))
        message = refusal(write("data.csv", ",text\n0,one\n"))
        assert "no name for column 1" in message
        assert "index=False" in message

    def test_large_cells_without_a_trace(self) -> None:
        csv.field_size_limit(1000)
        try:
            rows = read_rows(write("data.csv", f"text,label\n{'x' * 300_000},a\ntwo,b\n"))
            assert len(next(rows).fields["text"]) == 300_000
            assert csv.field_size_limit() == 1000
            next(rows)
            assert csv.field_size_limit() == 1000
        finally:
            csv.field_size_limit(131072)


class TestBadFiles:
    @pytest.mark.parametrize("suffix", [*TABLES, "txt", "parquet"])
    def test_empty_files_have_no_rows(self, suffix: str) -> None:
        if suffix == "parquet":
            pytest.importorskip("pyarrow")
        for content in (b"", b"\n \n") if suffix != "parquet" else (b"",):
            assert "has no rows" in refusal(write(f"data.{suffix}", content))
            assert "has no rows" in refusal(write(f"data.{suffix}.gz", gzip.compress(content)))

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("data.csv", "text,label\n\n"),
            ("data.json", "[]"),
            ("data.json", "{}"),
            ("data.json", '{"text": []}'),
        ],
    )
    def test_a_header_alone_has_no_rows(self, name: str, content: str) -> None:
        assert refusal(write(name, content)) == f"{name} has no rows; give at least one."

    @pytest.mark.parametrize("line", ['{"text": ', "{'text': 1}", "[" * 100_000, "1" * 5000, "plain"])
    def test_broken_json_lines(self, line: str) -> None:
        assert "data.jsonl, line 2 is not valid JSON" in refusal(write("data.jsonl", f'{{"text": "one"}}\n{line}\n'))

    @pytest.mark.parametrize("line", ["1", "null", "[1, 2]", "true", "1.5"])
    def test_json_lines_that_are_no_objects(self, line: str) -> None:
        message = refusal(write("data.jsonl", f'{{"text": "one"}}\n{line}\n'))
        assert message.startswith("data.jsonl, line 2 is ")
        assert "not an object" in message
        assert "data.json, row 2" in refusal(write("data.json", f'["one", {line}]'))

    def test_broken_json(self) -> None:
        assert "data.json, line 3 is not valid JSON" in refusal(write("data.json", '[\n"one",\n]'))
        assert ".jsonl" in refusal(write("data.json", LINES))
        assert "not valid JSON" in refusal(write("data.json", "[" * 100_000))

    @pytest.mark.parametrize("content", ['"one"', "1", '{"text": "one"}', '{"0": {"text": "one"}}'])
    def test_json_that_is_no_table(self, content: str) -> None:
        assert "list of objects" in refusal(write("data.json", content))

    def test_json_columns_of_different_lengths(self) -> None:
        assert "text 2, label 1" in refusal(write("data.json", '{"text": ["a", "b"], "label": ["c"]}'))

    def test_broken_gzip(self) -> None:
        packed = gzip.compress(TABLES["csv"].encode() * 1000)
        for content in (
            packed[:-20],
            packed[:-8] + b"\0" * 8,
            packed[:12] + b"\xff" * 40,
            packed + b"trailing",
        ):
            assert "data.csv.gz is a broken gzip file" in refusal(write("data.csv.gz", content))
        assert "data.csv.gz is not a gzip file" in refusal(write("data.csv.gz", TABLES["csv"]))
        assert "broken gzip" in refusal(write("data.parquet.gz", packed[:-20]))

    @pytest.mark.parametrize("suffix", [*TABLES, "txt", "parquet", "csv.gz"])
    def test_a_missing_file_and_a_folder(self, suffix: str) -> None:
        assert f"missing.{suffix} does not exist" in refusal(f"missing.{suffix}")
        Path(f"folder.{suffix}").mkdir()
        assert f"folder.{suffix} is a folder" in refusal(f"folder.{suffix}")
        assert ". is a folder" in refusal(".")

    @pytest.mark.parametrize("name", ["", "a\0b.csv", "x" * 5000 + ".csv", "data.csv/data.csv"])
    def test_names_that_no_file_has(self, name: str) -> None:
        write("data.csv", TABLES["csv"])
        refusal(name)

    def test_no_permission(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise PermissionError(13, "Permission denied")

        write("data.csv", TABLES["csv"])
        # Not by chmod: whoever may do everything would be let in.
        monkeypatch.setattr("builtins.open", refuse)
        assert "data.csv cannot be read, for lack of permission" in refusal("data.csv")

    @pytest.mark.parametrize("content", [b"PAR1", b"text,label\none,a\n", b"PAR1" + b"\0" * 100 + b"PAR1"])
    def test_broken_parquet(self, content: bytes) -> None:
        pytest.importorskip("pyarrow")
        assert "data.parquet cannot be read as Parquet" in refusal(write("data.parquet", content))

    def test_parquet_as_text(self) -> None:
        assert "open it as binary" in refusal(io.StringIO("PAR1"), format="parquet")

    def test_parquet_without_pyarrow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        assert 'pip install "maskmatch[parquet]"' in refusal(write("data.parquet", b"PAR1"))
