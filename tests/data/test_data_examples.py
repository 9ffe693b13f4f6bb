"""Load texts and labels from every kind of table."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from maskmatch.data import Examples, is_table, iter_examples, load_examples
from maskmatch.errors import MaskMatchError
from refusals import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = [{"text": "one", "label": "a"}, {"text": "two", "label": "b"}]
COLUMNS = {"text": ["one", "two"], "label": ["a", "b"]}
PAIR = ("text", "text_b")
RELATION = ("text", "head", "tail")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def error_message(source: object, *arguments: Any, **options: Any) -> str:
    with pytest.raises(MaskMatchError) as caught:
        load_examples(source, *arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestSources:
    def test_files_streams_lists_and_dicts(self) -> None:
        Path("train.csv").write_text("text,label\none,a\ntwo,b\n")
        stream = io.StringIO("".join(json.dumps(row) + "\n" for row in ROWS))
        for source in ("train.csv", Path("train.csv"), stream, ROWS, tuple(ROWS), COLUMNS):
            assert load_examples(source) == Examples(["one", "two"], ["a", "b"], [], None)

    def test_options_of_files(self) -> None:
        Path("train.log").write_bytes("text,label\ncafé,a\n".encode("latin-1"))
        assert load_examples("train.log", format="csv", encoding="latin-1").texts == ["café"]

    def test_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO("one\ntwo\n"))
        assert load_examples("-", want_label=False) == Examples(["one", "two"])

    def test_pandas_data_frame(self) -> None:
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(COLUMNS, index=[5, 5])
        assert load_examples(frame) == Examples(["one", "two"], ["a", "b"])
        numbers = load_examples(frame.assign(label=[0, 1])).labels
        assert numbers == [0, 1]
        assert [type(label) for label in numbers or []] == [int, int]

    def test_pandas_missing_values_and_categories(self) -> None:
        pandas = pytest.importorskip("pandas")
        missing = [float("nan"), None, pandas.NA, pandas.NaT]
        for value in missing:
            frame = pandas.DataFrame({"text": pandas.Series(["one", value], dtype=object), "label": ["a", "b"]})
            assert "data frame, position 1: the text is missing" in error_message(frame)
        frame = pandas.DataFrame({"text": ["one", "two"], "label": pandas.Categorical(["b", None])})
        assert load_examples(frame, skip_bad_rows=True).labels == ["b"]

    def test_polars_data_frame(self) -> None:
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame({**COLUMNS, "label": [["a"], ["b", "c"]]})
        assert load_examples(frame) == Examples(["one", "two"], [["a"], ["b", "c"]])
        assert "collect()" in error_message(frame.lazy())

    def test_dataset_with_class_names(self) -> None:
        datasets = pytest.importorskip("datasets")
        features = datasets.Features(
            {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["card", "refund"])}
        )
        dataset = datasets.Dataset.from_dict({"text": ["one", "two"], "label": [1, 0]}, features=features)
        expected = Examples(["one", "two"], [1, 0], [], {0: "card", 1: "refund"})
        assert load_examples(dataset) == expected
        assert load_examples(dataset.to_iterable_dataset()) == expected
        assert load_examples(dataset.with_format("numpy")) == expected
        unlabelled = dataset.add_item({"text": "three", "label": -1})
        assert "position 2: the label is missing" in error_message(unlabelled)
        assert len(load_examples(unlabelled, want_label=False)) == 3

    def test_multi_label_dataset(self) -> None:
        datasets = pytest.importorskip("datasets")
        label = datasets.ClassLabel(names=["card", "refund"])
        features = datasets.Features({"text": datasets.Value("string"), "labels": datasets.Sequence(label)})
        dataset = datasets.Dataset.from_dict({"text": ["one"], "labels": [[1, 0]]}, features=features)
        assert load_examples(dataset) == Examples(["one"], [[1, 0]], [], {0: "card", 1: "refund"})

    def test_dataset_with_string_labels(self) -> None:
        datasets = pytest.importorskip("datasets")
        assert load_examples(datasets.Dataset.from_dict(COLUMNS)) == Examples(["one", "two"], ["a", "b"])

    def test_dataset_dict_error_lists_the_splits(self) -> None:
        datasets = pytest.importorskip("datasets")
        splits = datasets.DatasetDict({name: datasets.Dataset.from_dict(COLUMNS) for name in ("train", "test")})
        assert "'train', 'test'" in error_message(splits)

    @pytest.mark.parametrize("source", [3, None, {"one", "two"}, b"train.csv", object()])
    def test_invalid_sources(self, source: object) -> None:
        assert type(source).__name__ in error_message(source)

    @pytest.mark.parametrize("source", [[], {}, {"text": [], "label": []}])
    def test_empty_tables(self, source: object) -> None:
        assert "has no rows" in error_message(source)

    def test_empty_data_frames(self) -> None:
        pandas = pytest.importorskip("pandas")
        assert "The data frame has no rows" in error_message(pandas.DataFrame({"text": [], "label": []}))

    def test_malformed_tables(self) -> None:
        assert "text 2, label 1" in error_message({"text": ["one", "two"], "label": ["a"]})
        assert "'text' is a str" in error_message({"text": "one", "label": "a"})
        assert "type int at position 1" in error_message([{"text": "one", "label": "a"}, 2])
        pandas = pytest.importorskip("pandas")
        assert "two columns named 'a'" in error_message(pandas.DataFrame([[1, 2]], columns=["a", "a"]))

    def test_is_table(self) -> None:
        pandas = pytest.importorskip("pandas")
        assert is_table(COLUMNS)
        assert is_table(pandas.DataFrame(COLUMNS))
        for other in (ROWS, ["one"], {"text": "one", "text_b": "two"}, "one", {}, pandas.Series(["one"])):
            assert not is_table(other)


class TestTexts:
    def test_several_fields_give_dicts(self) -> None:
        rows = [{"premise": "one", "hypothesis": "two", "label": "a", "other": 1}]
        assert load_examples(rows, PAIR).texts == [{"text": "one", "text_b": "two"}]

    def test_columns_named_by_the_user(self) -> None:
        rows = [{"a": "one", "b": "two", "c": "x"}]
        named = load_examples(rows, PAIR, text_field="b", label_field="c", named={"text_b": "a"})
        assert named == Examples([{"text": "two", "text_b": "one"}], ["x"])
        assert load_examples(rows, ["subject"], text_field="b", label_field="c").texts == ["two"]
        assert "'a' and 'b'" in error_message(rows, text_field="a", label_field="c", named={"text": "b"})

    def test_single_field_as_string(self) -> None:
        assert load_examples(ROWS, "text").texts == ["one", "two"]

    @pytest.mark.parametrize("fields", [[], ["text", "text"], ["text", "label"]])
    def test_invalid_fields(self, fields: list[str]) -> None:
        assert "field" in error_message(ROWS, fields)

    @pytest.mark.parametrize(("value", "text"), [(7, "7"), (0, "0"), (1.5, "1.5"), (True, "True"), (" x ", " x ")])
    def test_numbers_become_strings(self, value: object, text: str) -> None:
        assert load_examples([{"text": value, "label": "a"}]).texts == [text]

    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            ({"text": "", "label": "a"}, "the text is blank"),
            ({"text": " \n", "label": "a"}, "the text is blank"),
            ({"text": None, "label": "a"}, "the text is missing"),
            ({"text": float("nan"), "label": "a"}, "the text is missing"),
            ({"label": "a"}, "the text is missing"),
            ({"text": ["one"], "label": "a"}, "the text is of type list, not a string"),
            ({"text": {"a": 1}, "label": "a"}, "the text is of type dict, not a string"),
            ({"text": b"one", "label": "a"}, "the text is of type bytes, not a string"),
            ({"text": "\ud800", "label": "a"}, "the text contains a lone surrogate"),
            ({"text": "one", "label": ""}, "the label is blank"),
            ({"text": "one", "label": None}, "the label is missing"),
            ({"text": "one", "label": float("nan")}, "the label is missing"),
            ({"text": "one"}, "the label is missing"),
            ({"text": "one", "label": ["a", " "]}, "the label is blank"),
            ({"text": "one", "label": ["a", None]}, "the label is missing"),
            ({"text": "one", "label": {"a": 1}}, "the label is of type dict"),
        ],
    )
    def test_invalid_rows(self, row: dict[str, object], reason: str) -> None:
        rows = [ROWS[0], row, ROWS[1]]
        message = error_message(rows)
        assert message.startswith(f"1 row cannot be used (list, position 1: {reason}")
        assert "--skip-bad-rows" in message
        rest = load_examples(rows, skip_bad_rows=True)
        assert (rest.texts, rest.labels, len(rest)) == (["one", "two"], ["a", "b"], 2)
        assert len(rest.skipped) == 1
        assert rest.skipped[0].startswith(f"list, position 1: {reason}")

    def test_error_lists_three_invalid_rows_and_counts_all(self) -> None:
        Path("train.csv").write_text("text,label\none,a\n" + ",a\n" * 2000)
        message = error_message("train.csv")
        assert message.startswith("2000 rows cannot be used (train.csv, line 3: the text is blank; ")
        assert message.count("line") == 3
        assert "and 1997 more" in message
        assert len(load_examples("train.csv", skip_bad_rows=True).skipped) == 2000

    def test_no_row_left(self) -> None:
        assert "No row is left" in error_message([{"text": "", "label": "a"}], skip_bad_rows=True)

    def test_unwanted_labels_are_not_checked(self) -> None:
        assert load_examples([{"text": "one", "label": None}], want_label=False) == Examples(["one"], None)


class TestLabels:
    def test_label_values_are_unchanged(self) -> None:
        labels = ["a", 1, 0, True, 2.5, " b "]
        assert load_examples([{"text": "x", "label": label} for label in labels]).labels == labels

    def test_labels_of_a_csv_are_strings(self) -> None:
        Path("train.csv").write_text("text,label\none,1\n")
        assert load_examples("train.csv").labels == ["1"]

    def test_lists_tuples_and_arrays_are_multi_label(self) -> None:
        numpy = pytest.importorskip("numpy")
        cells = [
            ["a", "b"],
            ("a", "b"),
            numpy.array(["a", "b"]),
            numpy.array(["a", "b"], dtype=object),
            {"b", "a"},
        ]
        assert load_examples([{"text": "x", "label": cell} for cell in cells]).labels == [["a", "b"]] * 5

    def test_numpy_scalars_become_python_scalars(self) -> None:
        numpy = pytest.importorskip("numpy")
        cells = [numpy.int64(1), numpy.float32(0.5), numpy.bool_(True), numpy.str_("a"), numpy.array([1, 2])]
        labels = load_examples([{"text": numpy.str_("x"), "label": cell} for cell in cells]).labels
        assert labels == [1, 0.5, True, "a", [1, 2]]
        assert [type(label) for label in labels] == [int, float, bool, str, list]

    def test_array_cells_in_parquet_and_pandas(self) -> None:
        pytest.importorskip("pyarrow")
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"text": ["one", "two"], "labels": [["a"], ["b", "c"]]})
        frame.to_parquet("train.parquet")
        for source in ("train.parquet", frame, pandas.read_parquet("train.parquet")):
            assert load_examples(source).labels == [["a"], ["b", "c"]]


class TestSpans:
    TEXT = "The clay was in a jar."

    @pytest.mark.parametrize("span", [[4, 8], (4, 8), [4.0, 8.0], "4:8", "4,8", "[4, 8]", "(4, 8)", " 4 : 8 "])
    def test_span_notations(self, span: object) -> None:
        row = {"text": self.TEXT, "head": "clay", "tail": "jar", "head_span": span, "label": "a"}
        assert load_examples([row], RELATION).texts == [
            {"text": self.TEXT, "head": "clay", "tail": "jar", "head_span": (4, 8)}
        ]

    @pytest.mark.parametrize("span", [None, float("nan"), "", " "])
    def test_blank_span(self, span: object) -> None:
        row = {"text": self.TEXT, "entity": "clay", "entity_span": span, "label": "a"}
        assert load_examples([row], ["text", "entity"]).texts == [{"text": self.TEXT, "entity": "clay"}]

    @pytest.mark.parametrize(
        "span",
        [[4], [4, 8, 9], [8, 4], [4, 4], [-1, 4], "4", "4-8", "a:b", [4, "8"], [4.5, 8], [True, 8], 4,
         {"start": 4}, [4, 100], "4:100", "1" * 5000 + ":2"],
    )  # fmt: skip
    def test_malformed_spans(self, span: object) -> None:
        row = {"text": self.TEXT, "entity": "clay", "entity_span": span, "label": "a"}
        assert "the entity_span" in error_message([row], ["text", "entity"])

    def test_span_of_the_only_field_gives_a_dict(self) -> None:
        rows = [{"text": "one two", "text_span": "4:7", "label": "a"}, {"text": "one", "label": "b"}]
        assert load_examples(rows).texts == [{"text": "one two", "text_span": (4, 7)}, "one"]

    def test_span_column_absent_from_the_first_chunk(self) -> None:
        rows = [{"text": "one two", "label": "a"}] * 1500 + [{"text": "one two", "text_span": [0, 3], "label": "a"}]
        assert load_examples(rows).texts[-1] == {"text": "one two", "text_span": (0, 3)}

    def test_field_with_a_span_is_read_from_the_text(self) -> None:
        row = {"text": self.TEXT, "head_span": [4, 8], "tail_span": [18, 21], "label": "a"}
        expected = {
            "text": self.TEXT,
            "head": "clay",
            "tail": "jar",
            "head_span": (4, 8),
            "tail_span": (18, 21),
        }
        assert load_examples([row], RELATION).texts == [expected]
        assert "the head is missing" in error_message([row, {**row, "head_span": None}], RELATION)

    def test_numpy_span(self) -> None:
        numpy = pytest.importorskip("numpy")
        row = {"text": self.TEXT, "entity": "clay", "entity_span": numpy.array([4, 8]), "label": "a"}
        assert load_examples([row], ["text", "entity"]).texts[0]["entity_span"] == (4, 8)  # type: ignore[index]


class TestChunks:
    def test_chunks_add_up_to_the_table(self) -> None:
        rows = [{"text": f"text {number}", "label": number % 3} for number in range(10)]
        chunks = list(iter_examples(rows, chunk_size=4))
        assert [len(chunk) for chunk in chunks] == [4, 4, 2]
        assert [text for chunk in chunks for text in chunk.texts] == load_examples(rows).texts

    def test_chunks_are_read_lazily(self) -> None:
        stream = io.StringIO("one\ntwo\nthree\n")
        first = next(iter_examples(stream, want_label=False, chunk_size=2))
        assert first.texts == ["one", "two"]
        assert stream.readline() == "three\n"

    def test_invalid_rows(self) -> None:
        rows = [ROWS[0], ROWS[1], {"text": "", "label": "a"}, {"text": " ", "label": "a"}]
        assert [chunk.texts for chunk in iter_examples(rows, skip_bad_rows=True, chunk_size=2)] == [
            ["one", "two"],
            [],
        ]
        chunks = iter_examples(rows, chunk_size=2)
        next(chunks)
        with pytest.raises(MaskMatchError, match="position 2: the text is blank"):
            next(chunks)

    def test_invalid_chunk_size(self) -> None:
        with pytest.raises(MaskMatchError, match="1 or more"):
            next(iter_examples(ROWS, chunk_size=0))


def test_row_numbers_include_skipped_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,label\na,x\n,x\nc,y\nd,\ne,y\n", encoding="utf-8")
    assert load_examples(path, skip_bad_rows=True).row_numbers == [0, 2, 4]
    chunks = list(iter_examples(path, skip_bad_rows=True, chunk_size=2))
    assert [chunk.row_numbers for chunk in chunks] == [[0], [2], [4]]


def test_empty_list_means_no_label(tmp_path: Path) -> None:
    rows = [{"text": "one", "label": ["a", "b"]}, {"text": "two", "label": []}]
    assert load_examples(rows).labels == [["a", "b"], []]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert load_examples(tmp_path / "rows.jsonl").labels == [["a", "b"], []]


BROKEN = {
    "jsonl": '{"text": "a", "label": "x"}\n{"text": "b", \n[1]\n{"text": "c", "text": 1}\n{"text": "e", "label": "y"}',
    "csv": "text,label\na,x\nb\nc,x,y\ne,y\n",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_lines_that_cannot_be_read_are_skipped_if_asked(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.{kind}"
    path.write_text(BROKEN[kind])
    found = load_examples(path, skip_bad_rows=True)
    assert (found.texts, found.labels) == (["a", "e"], ["x", "y"])
    assert found.row_numbers == ([0, 4] if kind == "jsonl" else [0, 3])
    assert [reason.partition(" has")[0].partition(" is")[0].partition(":")[0] for reason in found.skipped] == [
        f"{path}, line {number}" for number in ((2, 3, 4) if kind == "jsonl" else (3, 4))
    ]
    assert "rows cannot be used" in refusal(load_examples, path)
    assert "skip them with --skip-bad-rows" in refusal(load_examples, path)


def test_a_file_without_a_row_that_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text("[1]\n[2]\n")
    assert refusal(load_examples, path).startswith("2 rows cannot be used")
    assert "No row is left" in refusal(load_examples, path, skip_bad_rows=True)


def test_a_stream_without_a_row_that_can_be_read_is_not_read_to_its_end() -> None:
    read = 0

    def lines() -> Iterator[str]:
        nonlocal read
        while True:  # endless
            read += 1
            yield "[1]\n"

    class Stream(io.StringIO):
        def __iter__(self) -> Iterator[str]:  # type: ignore[override]
            return lines()

        def readline(self, size: int | None = -1) -> str:
            return next(lines())

    with pytest.raises(MaskMatchError, match="5 rows cannot be used"):
        next(iter_examples(Stream(), format="jsonl", chunk_size=5))


def test_a_csv_record_over_several_lines_is_no_row_to_skip(tmp_path: Path) -> None:
    """A quote that is closed many lines later has swallowed the rows between."""
    path = tmp_path / "data.csv"
    path.write_text('text,label\na,x\n"b,x\nc,x\nd,x\n",y,z\ne,x\n')
    message = refusal(load_examples, path, skip_bad_rows=True)
    assert "lines 3 to 6" in message
    assert "quote" in message


def test_the_first_chunk_may_have_no_row_that_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('[1]\n[2]\n{"text": "a", "label": "x"}\n')
    chunks = list(iter_examples(path, skip_bad_rows=True, chunk_size=2))
    assert [chunk.texts for chunk in chunks] == [["a"]]
    assert [len(chunk.skipped) for chunk in chunks] == [2]
    assert chunks[0].row_numbers == [2]
