"""The evaluation report: its values, its text form and its files."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch.errors import MaskMatchError
from maskmatch.evaluation import EvaluationReport, Example, UnseenLabel, evaluate_predictions
from maskmatch.evaluation.display import LabelNames, one_line, shorten, shorten_name, text_width, wrap

if TYPE_CHECKING:
    from pathlib import Path


def small_report(**changes: Any) -> EvaluationReport:
    arguments: dict[str, Any] = {
        "texts": ["money back", "my card is gone", "card stolen", "where is my money"],
        "truth": ["refund", "card lost", "card lost", "transfer"],
        "predicted": ["refund", "card lost", "refund", "refund"],
        "labels": ["refund", "card lost", "never seen"],
        "confidence": [0.9, 0.8, 0.6, 0.55],
        "cut": 1,
        "seconds": 2.0,
    }
    return evaluate_predictions(**{**arguments, **changes})


def multi_label_report(**changes: Any) -> EvaluationReport:
    arguments: dict[str, Any] = {
        "texts": [
            {"text": "so happy", "text_b": None},
            {"text": "oh no", "text_b": "the news"},
            {"text": "hm"},
        ],
        "truth": [["joy"], ["fear", "grief"], []],
        "predicted": [["joy", "love"], [], []],
        "labels": ["joy", "love", "fear"],
        "probabilities": np.array([[0.9, 0.7, 0.1], [0.2, 0.1, 0.4], [0.0, 0.1, 0.2]]),
        "multi_label": True,
        "threshold": 0.5,
    }
    return evaluate_predictions(**{**arguments, **changes})


def test_report_values() -> None:
    report = small_report()
    assert (report.rows, report.cut, report.seconds, report.texts_per_second) == (4, 1, 2.0, 2.0)
    assert report.accuracy == report.micro_f1 == 0.5
    assert report.macro_f1 == pytest.approx((0.5 + 2 / 3 + 0) / 3)
    assert report.expected_calibration_error == pytest.approx((0.1 + 0.2 + 0.6 + 0.55) / 4)
    assert [score.label for score in report.per_label] == ["refund", "card lost", "never seen", "transfer"]
    assert (report.multi_label, report.threshold) == (False, None)


def test_unknown_labels_count_as_errors_and_are_noted() -> None:
    report = small_report()
    assert report.unseen == (UnseenLabel("transfer", 1),)
    assert any("unknown to the model" in note and "transfer (1 row)" in note for note in report.notes)
    assert "transfer (1 row)" in str(report)
    assert ("transfer", "refund") in [(each.true, each.predicted) for each in report.confusions]


def test_confusions_are_sorted_by_count_and_have_examples() -> None:
    report = evaluate_predictions(
        [f"text {row}" for row in range(7)],
        truth=["a", "b", "b", "b", "b", "a", "a"],
        predicted=["b", "a", "a", "a", "a", "a", "a"],
        labels=["a", "b"],
    )
    first, second = report.confusions
    assert (first.true, first.predicted, first.count) == ("b", "a", 4)
    assert first.examples == (Example(1, "text 1"), Example(2, "text 2"), Example(3, "text 3"))
    assert (second.true, second.predicted, second.count) == ("a", "b", 1)


def test_multi_label_report_values() -> None:
    report = multi_label_report()
    assert report.accuracy == pytest.approx(1 / 3)
    assert report.micro_f1 == pytest.approx(2 * 1 / (3 + 2))
    assert report.macro_f1 == pytest.approx(1 / 4)
    assert report.threshold == 0.5
    assert report.unseen == (UnseenLabel("grief", 1),)
    assert sum(each.count for each in report.reliability) == 9
    pairs = [(each.true, each.predicted) for each in report.confusions]
    assert pairs == [(None, "love"), ("fear", None), ("grief", None)]
    assert report.confusions[0].examples[0].text == "text: so happy"
    assert report.confusions[1].examples[0].text == "text: oh no | text_b: the news"
    assert "(nothing) -> love" in str(report)


def test_multi_label_without_probabilities_or_predictions() -> None:
    report = multi_label_report(probabilities=None, predicted=[[], [], []], threshold=None)
    assert report.expected_calibration_error is None
    assert report.reliability == ()
    assert report.micro_f1 == 0.0
    assert any("no probabilities were given" in note for note in report.notes)
    json.dumps(report.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    "labels",
    [
        [3, 1, 2],
        [("a", 1), ("b", 2), ("a", 2)],
        [1, "1", ("1",)],
        ["<script>alert(1)</script>", "a&b", '"q"'],
    ],
)
def test_awkward_label_ids(labels: list[Any]) -> None:
    report = evaluate_predictions(
        ["one", "two", "three"], truth=labels, predicted=[labels[0], labels[0], labels[2]], labels=labels
    )
    assert [score.label for score in report.per_label] == labels
    assert report.accuracy == pytest.approx(2 / 3)
    rows = json.loads(json.dumps(report.to_dict(), allow_nan=False))["per_label"]
    assert [row["label"] for row in rows] == [
        label if isinstance(label, (str, int)) else str(label) for label in labels
    ]
    assert report.to_html()
    assert len(str(report).splitlines()) > 5


def test_numpy_labels_become_plain_ids() -> None:
    report = evaluate_predictions(
        np.array(["x", "y"]), truth=np.array([1, 2]), predicted=np.array([1, 1]), labels=np.arange(3)
    )
    assert all(type(score.label) is int for score in report.per_label)
    json.dumps(report.to_dict())


def test_pandas_series_are_read_by_row_not_by_index() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["x", "y"], "label": ["a", "b"]}, index=[7, 3])
    report = evaluate_predictions(frame["text"], frame["label"], ["a", "a"], labels=["a", "b"])
    assert report.confusions[0].examples == (Example(1, "y"),)


def test_all_correct_and_all_wrong() -> None:
    right = evaluate_predictions(["x"], truth=["a"], predicted=["a"], labels=["a"], confidence=[1.0])
    assert (right.accuracy, right.macro_f1, right.micro_f1, right.confusions) == (1.0, 1.0, 1.0, ())
    assert "No errors." in str(right)
    assert "every text is correct" in right.to_html()
    wrong = evaluate_predictions(["x", "y"], truth=["a", "b"], predicted=["b", "a"], labels=["a", "b"])
    assert (wrong.accuracy, wrong.macro_f1, wrong.micro_f1) == (0.0, 0.0, 0.0)
    assert wrong.to_html()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"texts": ["one"]}, "1 texts, 4 true labels and 4 predictions"),
        ({"texts": [], "truth": [], "predicted": [], "confidence": []}, "nothing to evaluate"),
        ({"predicted": ["refund", "gone", "refund", "refund"]}, "Row 1 of predicted is 'gone'"),
        ({"truth": ["refund", None, "refund", "refund"]}, "Row 1 of truth has no label"),
        ({"truth": ["refund", float("nan"), "refund", "refund"]}, "Row 1 of truth has no label"),
        ({"truth": [["refund"], [], [], []]}, "multi_label=True"),
        ({"labels": ["refund", "card lost", "refund"]}, "distinct"),
        ({"labels": []}, "at least one"),
        ({"confidence": [0.5]}, "one number for each of the 4 texts"),
        ({"confidence": [[0.5, 0.5]] * 4}, "one number for each of the 4 texts"),
        ({"confidence": [2, 0, 0, 0]}, "between 0 and 1"),
        ({"probabilities": [[1.0]]}, "multi_label=True"),
    ],
)
def test_invalid_arguments_raise(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(MaskMatchError, match=words):
        small_report(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"truth": ["joy", [], []]}, "each row is a list of labels"),
        ({"predicted": [1, [], []]}, "each row is a list of labels"),
        ({"confidence": [0.5, 0.5, 0.5]}, "one label per text"),
        ({"probabilities": np.zeros((3, 2))}, "a column for each label"),
    ],
)
def test_invalid_multi_label_arguments_raise(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(MaskMatchError, match=words):
        multi_label_report(**changes)


def test_text_shows_all_of_few_labels_and_the_worst_of_many() -> None:
    for count, shown in ((30, 30), (31, 15)):
        labels = [f"label {number}" for number in range(count)]
        text = str(evaluate_predictions(labels, truth=labels, predicted=labels[:-1] + labels[:1], labels=labels))
        assert sum(line.startswith("  label ") and line.endswith(" 1") for line in text.splitlines()) == shown
        assert ("16 other labels not shown" in text) == (count == 31)
        assert f"label {count - 1}" in text


words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=150)


@given(st.lists(words, min_size=1, max_size=5, unique=True), words)
@settings(max_examples=60, deadline=None)
def test_text_fits_100_columns(labels: list[str], text: str) -> None:
    report = evaluate_predictions(
        [text] * len(labels), truth=labels, predicted=[labels[0]] * len(labels), labels=labels[:1], cut=1
    )
    lines = str(report).split("\n")
    assert max(map(text_width, lines)) <= 100
    assert all(line.isprintable() or "\u200c" in line or "\u200d" in line for line in lines)


def test_save_writes_three_files(tmp_path: Path) -> None:
    report = small_report(truth=["refund", "card lost", "card lost", "lone surrogate \udc80"])
    folder = tmp_path / "made" / "here"
    report.save(folder)
    report.save(str(folder))
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "report.json", "report.txt"]
    assert json.loads((folder / "report.json").read_text("utf-8"))["rows"] == 4
    assert (folder / "report.txt").read_text("utf-8") == f"{report}\n"
    assert (folder / "report.html").read_text("utf-8") == report.to_html()


def test_failed_save_keeps_the_old_file_and_leaves_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_report().save(tmp_path)
    before = (tmp_path / "report.json").read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(MaskMatchError, match="No space left"):
        multi_label_report().save(tmp_path)
    assert (tmp_path / "report.json").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 3


def test_save_into_a_file_raises(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(MaskMatchError, match=r"choose a writable folder: .*taken"):
        small_report().save(tmp_path / "taken")


def test_label_names_are_distinct() -> None:
    names = LabelNames([1, "1", "refund", ""])
    assert [names[label] for label in (1, "1", "refund", "", None)] == [
        "1",
        "'1'",
        "refund",
        "''",
        "(nothing)",
    ]


def test_shortening() -> None:
    assert one_line("a\n\tb\x1b[31m  c") == "a b [31m c"
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdefg", 6) == "abc..."
    assert shorten("漢字漢字", 7) == "漢字..."
    assert shorten_name("balance not updated", 12) == "balanc...ted"
    assert wrap("one two three", 7, indent="  ") == ["one two", "  three"]


def test_model_data_and_date_are_in_every_form() -> None:
    texts, labels = ["one", "two"], ["a", "b"]
    report = evaluate_predictions(texts, labels, labels, labels=labels, model="my <model>", data="toy & test")
    assert report.date == date.today().isoformat()
    assert {name: report.to_dict()[name] for name in ("model", "data", "date")} == {
        "model": "my <model>",
        "data": "toy & test",
        "date": report.date,
    }
    for words in ("my <model>", "toy & test", report.date):
        assert words in str(report)
    for words in ("Model: my &lt;model&gt;", "Data: toy &amp; test", f"Date: {report.date}"):
        assert words in report.to_html()
    nameless = evaluate_predictions(texts, labels, labels, labels=labels)
    assert "Model:" not in nameless.to_html()
    assert (nameless.model, nameless.data) == (None, None)
    assert report.headline()["data"] == "toy & test"
