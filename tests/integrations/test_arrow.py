"""ArrowPredictor: the same answers as the command line's, with bad rows in their column."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from integration_tools import made_texts
from maskmatch import ExportedMatcher, MaskMatcher, MaskMatchError
from maskmatch.integrations.arrow import AnswerOptions, ArrowPredictor, model_hash
from toy_data import LABELS, TEXTS

if TYPE_CHECKING:
    from pathlib import Path

    from cli_tools import Run, Tiny


def printed(run: Run, folder: Path, texts: list[str], *options: object) -> list[dict[str, Any]]:
    """What ``maskmatch predict`` prints, without row numbers."""
    rows = run("predict", folder, "-", *options, stdin="\n".join(map(json.dumps, texts))).rows()
    return [{name: value for name, value in row.items() if name != "row"} for row in rows]


def answers(table: pa.Table) -> list[dict[str, Any]]:
    """The answers of a table that have no error."""
    shown = [name for name in table.column_names if name not in ("text", "error", "model", "label_set")]
    return table.select(shown).to_pylist()


class TestAnswers:
    def test_are_those_of_the_command_line(self, run: Run, exported: Path) -> None:
        texts = made_texts(100)
        table = ArrowPredictor(exported, top_k=2, novelty=True)(pa.table({"text": texts}))
        assert answers(table) == printed(run, exported, texts, "-k", 2, "--novelty")
        assert table.column_names == [
            "text", "label", "probability", "top_k", "novelty", "error", "model", "label_set",
        ]  # fmt: skip
        assert table["text"].to_pylist() == texts

    def test_abstaining(self, run: Run, exported: Path) -> None:
        texts = made_texts(30)
        rows = pa.table({"text": texts})
        least = sorted(ArrowPredictor(exported)(rows)["probability"].to_pylist())[15]
        table = ArrowPredictor(exported, abstain=least, none_label="other")(rows)
        assert answers(table) == printed(run, exported, texts, "--abstain", least, "--none-label", "other")
        assert {"other"} < set(table["label"].to_pylist())

    def test_several_labels_per_text(self, run: Run, several: Path) -> None:
        texts = made_texts(30)
        table = ArrowPredictor(several)(pa.table({"text": texts}))
        assert answers(table) == printed(run, several, texts)
        assert "labels" in table.column_names
        assert "label" not in table.column_names
        higher = ArrowPredictor(several, threshold=0.9)(pa.table({"text": texts}))["labels"].to_pylist()
        assert sum(map(len, higher)) < sum(map(len, table["labels"].to_pylist()))

    def test_a_classifier_and_its_export_say_which_they_are(self, exported: Path, several: Path) -> None:
        table = ArrowPredictor(exported)(pa.table({"text": TEXTS}))
        assert set(table["model"].to_pylist()) == {model_hash(exported)}
        assert set(table["label_set"].to_pylist()) == {ExportedMatcher.from_pretrained(exported).labels.digest}
        assert model_hash(exported) != model_hash(several)

    def test_labels_are_strings_whatever_they_were(self, tiny: Tiny, tmp_path: Path) -> None:
        MaskMatcher.from_pretrained(tiny("bert"), {1: "refund", 2: "card lost"}).save_pretrained(tmp_path / "m")
        table = ArrowPredictor(tmp_path / "m")(pa.table({"text": TEXTS[:3]}))
        assert set(table["label"].to_pylist()) <= {"1", "2"}
        assert table["top_k"].to_pylist()[0][0]["label"] in {"1", "2"}

    def test_other_columns_stay_as_they_are(self, exported: Path) -> None:
        table = pa.table({"n": pa.array([1, 2], pa.int16()), "text": pa.array(TEXTS[:2]).dictionary_encode()})
        found = ArrowPredictor(exported)(table)
        assert found.select(["n", "text"]) == table

    def test_an_empty_table_and_many_rows(self, exported: Path) -> None:
        predictor = ArrowPredictor(exported)
        empty = predictor(pa.table({"text": pa.array([], pa.string())}))
        assert len(empty) == 0
        texts = made_texts(5) * 1000
        table = predictor(pa.table({"text": texts}))
        assert table.schema == empty.schema
        assert table["label"].to_pylist() == table["label"].to_pylist()[:5] * 1000


class TestBadRows:
    def test_get_their_reason_and_fail_no_other(self, exported: Path) -> None:
        texts = [TEXTS[0], None, " ", TEXTS[4]]
        found = ArrowPredictor(exported)(pa.table({"text": texts})).to_pylist()
        assert [row["error"] for row in found] == [None, "the text is missing", "the text is blank", None]
        assert [row["label"] is None for row in found] == [False, True, True, False]
        assert [row["top_k"] is None for row in found] == [False, True, True, False]

    def test_a_wrong_type(self, exported: Path) -> None:
        found = ArrowPredictor(exported)(pa.table({"text": [["a"], ["b"]]}))
        assert found["error"].to_pylist() == ["the text is of type list, not a string"] * 2
        numbers = ArrowPredictor(exported)(pa.table({"text": [1, 2]}))
        assert numbers["error"].to_pylist() == [None, None]

    def test_bytes_that_are_no_text(self, exported: Path) -> None:
        broken = pa.array([TEXTS[0].encode(), b"\xff\xfe"], pa.binary()).cast(pa.string(), safe=False)
        found = ArrowPredictor(exported)(pa.table({"text": broken}))["error"].to_pylist()
        assert found[0] is None
        assert "surrogate" in found[1]

    @pytest.mark.parametrize("kind", [pa.large_string(), pa.list_(pa.string())])
    def test_bytes_that_are_no_text_in_other_types(self, exported: Path, kind: pa.DataType) -> None:
        if pa.types.is_list(kind):
            broken = pa.array([[b"a"], [b"\xff"]], pa.list_(pa.binary())).cast(kind, safe=False)
        else:
            broken = pa.array([b"a card", b"\xff\xfe"], pa.large_binary()).cast(kind, safe=False)
        found = ArrowPredictor(exported)(pa.table({"text": broken}))["error"].to_pylist()
        assert (found[0] is None) != pa.types.is_list(kind)
        assert "column 'text' cannot be read" in found[1] if pa.types.is_list(kind) else "surrogate" in found[1]

    def test_a_text_that_the_prompt_cannot_take(self, tiny: Tiny, tmp_path: Path) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, task="relation")
        matcher.save_pretrained(tmp_path / "m")
        rows = {"text": ["Ada met Bob", "Ada met Bob"], "head": ["Ada", None], "tail": ["Bob", "Bob"]}
        found = ArrowPredictor(tmp_path / "m")(pa.table(rows))["error"].to_pylist()
        assert found[0] is None
        assert "head" in found[1]

    def test_all_of_them(self, exported: Path) -> None:
        found = ArrowPredictor(exported)(pa.table({"text": pa.array([None, None], pa.string())}))
        assert found["error"].to_pylist() == ["the text is missing"] * 2


class TestMistakes:
    def test_a_column_that_is_there_already(self, exported: Path) -> None:
        table = pa.table({"text": TEXTS[:1], "label": ["refund"]})
        with pytest.raises(MaskMatchError, match="column 'label' already"):
            ArrowPredictor(exported)(table)
        with pytest.raises(MaskMatchError, match="column 'Label' already"):
            ArrowPredictor(exported)(table.rename_columns(["text", "Label"]))
        found = ArrowPredictor(exported, prefix="found_")(table)
        assert found.column_names[:4] == ["text", "label", "found_label", "found_probability"]

    def test_a_column_that_is_not_obvious(self, exported: Path) -> None:
        table = pa.table({"one": TEXTS[:1], "two": TEXTS[1:2]})
        with pytest.raises(MaskMatchError, match="text"):
            ArrowPredictor(exported)(table)
        assert ArrowPredictor(exported, text_field="two")(table)["error"].to_pylist() == [None]

    def test_another_model_than_the_driver_saw(self, exported: Path) -> None:
        with pytest.raises(MaskMatchError, match="another classifier on this machine"):
            ArrowPredictor(exported, model_hash="0" * 64)

    def test_no_classifier(self, tmp_path: Path) -> None:
        with pytest.raises(MaskMatchError, match="all machines can read"):
            ArrowPredictor(tmp_path)

    @pytest.mark.parametrize("wrong", [{"top_k": 0}, {"threads": 0}, {"abstain": 2.0}, {"batch_size": -1}])
    def test_options(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(MaskMatchError, match=next(iter(wrong))):
            AnswerOptions(**wrong)
