"""``maskmatch evaluate``: label names with --labels, and tables of predictions and mistakes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cli_tools import Run, Tiny, fails, is_wrong_usage
from maskmatch import MaskMatcher
from maskmatch.data import read_rows, write_table
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ",".join(LABELS)


def read(path: Path) -> list[dict[str, Any]]:
    return [row.fields for row in read_rows(path)]


class TestLabels:
    def test_names_in_an_option_are_names_in_the_first_argument(self, run: Run, tiny: Tiny, toy: Path) -> None:
        base = ["--model", tiny("bert"), "--json"]
        first = json.loads(run("evaluate", NAMES, toy, *base).out)
        second = json.loads(run("evaluate", "--labels", NAMES, toy, *base).out)
        assert first["accuracy"] == second["accuracy"]
        assert first["per_label"] == second["per_label"]
        assert set(second["intervals"]) - {"macro_f1"} == {"accuracy", "micro_f1", "score"}

    def test_a_classifier_with_other_labels(self, run: Run, model: Path, toy: Path, tmp_path: Path) -> None:
        names = tmp_path / "labels.txt"
        names.write_text("refund\ncard lost\n")
        found = json.loads(run("evaluate", model, toy, "--labels", names, "--json").out)
        expected = MaskMatcher.from_pretrained(model, ["refund", "card lost"]).evaluate(TEXTS, TRUTH)
        assert found["accuracy"] == expected.accuracy
        assert [each["label"] for each in found["unseen"]]
        again = json.loads(run("evaluate", toy, "--labels", names, "--model", model, "--json").out)
        assert again["accuracy"] == found["accuracy"]

    def test_labels_that_only_read_otherwise(self, run: Run, tiny: Tiny, toy: Path) -> None:
        result = run("evaluate", "--labels", NAMES.title(), toy, "--model", tiny("bert"))
        assert "3 true labels are unknown to the model" in result.out
        assert "Perhaps 'Card Lost' for 'card lost'" in result.out

    def test_a_report_does_not_go_into_a_classifier(self, run: Run, model: Path, toy: Path) -> None:
        before = sorted(each.name for each in model.iterdir())
        is_wrong_usage(run("evaluate", model, toy, "-o", model), "holds a classifier")
        assert sorted(each.name for each in model.iterdir()) == before

    def test_wrong_usage(self, run: Run, model: Path, tiny: Tiny, toy: Path) -> None:
        is_wrong_usage(run("evaluate", model), "Missing argument")
        is_wrong_usage(run("evaluate"), "Missing argument: the classifier")
        is_wrong_usage(run("evaluate", "--labels", NAMES), "Missing argument: the labelled rows")
        is_wrong_usage(run("evaluate", toy, "--labels", "refund"), "only label")
        is_wrong_usage(run("evaluate", model, toy, "--labels", NAMES, "--model", tiny("bert")), "--model")


class TestTables:
    @pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
    def test_predictions_and_mistakes(self, run: Run, model: Path, tmp_path: Path, ending: str) -> None:
        rows = [
            {"id": n, "text": text, "label": label} for n, (text, label) in enumerate(zip(TEXTS, TRUTH, strict=True))
        ]
        rows[3]["label"], rows[5]["text"] = "no such label", ""
        source = write_table(tmp_path / "in.jsonl", ["id", "text", "label"], rows)
        one, two, folder = (tmp_path / name for name in (f"all.{ending}", f"wrong.{ending}", "report"))
        result = run(
            "evaluate", model, source, "--predictions", one, "--mistakes", two, "-o", folder, "--skip-bad-rows"
        )
        assert result.code == 0
        assert "12 predictions in" in result.err
        assert "1 mistake in" in result.err
        found = read(one)
        assert list(found[0]) == [
            "id", "text", "label", "predicted_label", "predicted_probability", "predicted_correct", "predicted_error",
        ]  # fmt: skip
        assert [str(row["id"]) for row in found] == [str(number) for number in range(12)]
        expected = [None if number == 5 else label for number, label in enumerate(TRUTH)]
        assert [row["predicted_label"] or None for row in found] == expected
        assert "blank" in found[5]["predicted_error"]
        (wrong,) = read(two)
        assert (str(wrong["id"]), wrong["label"]) == ("3", "no such label")
        assert [row["id"] for row in read(folder / "mistakes.csv")] == ["3"]
        assert len(read(folder / "predictions.csv")) == 12
        assert (folder / "report.html").exists()

    def test_several_labels_in_csv(
        self, run: Run, tiny: Tiny, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        source = tmp_path / "in.csv"
        rows = [{"text": "where is it", "label": "refund|card"}, {"text": "b", "label": "refund"}]
        write_table(source, ["text", "label"], [*rows, {"text": "c", "label": "card"}])
        given = ["evaluate", "--labels", "refund,card", source, "--model", tiny("bert")]
        path = tmp_path / "out.csv"
        result = run(*given, "--multi-label", "--predictions", path, "--json")
        assert result.code == 0, result.err
        assert not json.loads(result.out)["unseen"]
        assert json.loads(read(path)[0]["predicted_labels"]) is not None
        assert run(*given).code == 0
        assert "'refund|card' is read as one label" in caplog.text
        fails(run(*given, "--label-separator", "|"), "several labels each")
        (tmp_path / "odd.csv").write_text("text,label\na,x|y\nb,z\n")
        message = fails(run("evaluate", "--labels", "x,y", tmp_path / "odd.csv", "--multi-label", *given[-2:]))
        assert "'x|y' may be one label, or the labels 'x' and 'y'" in message

    def test_wrong_files(self, run: Run, model: Path, toy: Path, tmp_path: Path) -> None:
        is_wrong_usage(run("evaluate", model, toy, "--predictions", tmp_path / "x.pdf"), "ends in .csv")
        is_wrong_usage(run("evaluate", model, toy, "--mistakes", toy), "has the labelled rows")
        one = tmp_path / "one.csv"
        is_wrong_usage(run("evaluate", model, toy, "--predictions", one, "--mistakes", one), "--predictions, too")

    @pytest.mark.parametrize("name", ["predictions.csv", "mistakes.csv", "mistakes.jsonl", "report.json"])
    def test_a_report_that_would_replace_its_rows(self, run: Run, model: Path, tmp_path: Path, name: str) -> None:
        folder = tmp_path / "report"
        folder.mkdir()
        source = write_table(folder / name, ["text", "label"], [{"text": TEXTS[0], "label": TRUTH[0]}])
        before = source.read_bytes()
        is_wrong_usage(run("evaluate", model, source, "-o", folder), "the report replaces it")
        (tmp_path / "link").symlink_to(folder)
        is_wrong_usage(run("evaluate", model, source, "-o", tmp_path / "link"), "the report replaces it")
        assert source.read_bytes() == before

    def test_named_files_in_the_folder_of_the_report(self, run: Run, model: Path, toy: Path, tmp_path: Path) -> None:
        folder = tmp_path / "report"
        for name in ("mistakes.csv", "mistakes.jsonl", "report.json"):
            result = run("evaluate", model, toy, "--predictions", folder / name, "-o", folder)
            is_wrong_usage(result, "is a file of the report")
        for name in ("predictions.jsonl", "predictions.csv"):
            assert run("evaluate", model, toy, "--predictions", folder / name, "-o", folder).code == 0
            assert len(read(folder / name)) == len(TEXTS)
        assert not (folder / "predictions.jsonl").exists()  # of the run before


def test_training_on_several_labels_in_csv(run: Run, tiny: Tiny, tmp_path: Path) -> None:
    rows = [{"text": text, "label": f"{label}|new" if place % 2 else label}
            for place, (text, label) in enumerate(zip(TEXTS, TRUTH, strict=True))]  # fmt: skip
    write_table(tmp_path / "in.csv", ["text", "label"], rows)
    given = ["train", tmp_path / "in.csv", "--model", tiny("bert"), "--epochs", 1, "-o"]
    for place, how in enumerate((["--label-separator", "|"], ["--multi-label"])):
        assert run(*given, tmp_path / f"m{place}", *how).code == 0
        matcher = MaskMatcher.from_pretrained(tmp_path / f"m{place}")
        assert matcher.config.multi_label
        assert set(matcher.labels or ()) == {*LABELS, "new"}
