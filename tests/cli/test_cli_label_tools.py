"""``maskmatch labels expand`` and ``maskmatch labels check``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, get_args

from cli_tools import Run, Tiny, fails, is_wrong_usage, write_csv
from maskmatch.cli.options import PhraseSourceName
from maskmatch.label_tools.expansion.expand import PhraseSource
from maskmatch.labels.files import load_labels
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ", ".join(LABELS)


def test_pairs_are_read_as_a_whole_before_anything_is_learned(run: Run, tiny: Tiny, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text("\n".join(json.dumps({"text": text, "text_b": "money"}) for text in TEXTS))
    given = ["labels", "check", NAMES, "--model", tiny("bert"), "--task", "nli", "--texts", pairs]
    assert "distance of two texts" not in run(*given).out
    assert "distance of two texts" in run(*given, "--method", "pair-matching").out
    bare = ["all-MiniLM-L6-v2" if part == tiny("bert") else part for part in given]
    assert "distance of two texts" not in run(*bare).out


def test_lists_of_names_that_could_be_no_path(run: Run, tiny: Tiny) -> None:
    for names in (", ".join(f"label number {number}" for number in range(40)), "~approx, exact"):
        result = run("labels", "check", names, "--model", tiny("bert"))
        assert result.code == 0, result.err


class TestExpand:
    def test_a_file_that_goes_straight_into_labels(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        out = tmp_path / "labels.csv"
        result = run("labels", "expand", NAMES, "--model", tiny("bert"), "--texts", toy, "--examples", 2, "-o", out)
        assert result.code == 0, result.err
        assert "refund" in result.out
        assert f"--labels {out}" in result.err
        assert any(label.examples for label in load_labels(out).labels)
        answers = run("classify", "--model", tiny("bert"), "--labels", out, "--text", TEXTS[0]).rows()
        assert answers[0]["label"] in LABELS

    def test_sources(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        words = tmp_path / "words.txt"
        words.write_text("parcel\nblock it\n")
        result = run("labels", "expand", NAMES, "--model", tiny("bert"), "--train", toy, "--words", words,
                     "--keep-shared", "--json")  # fmt: skip
        found = [each for label in json.loads(result.out)["labels"] for each in label["found"]]
        assert {each["source"] for each in found} == {"training-words", "words"}
        assert {"parcel", "block it"} <= {each["text"] for each in found}
        only = run(
            "labels", "expand", NAMES, "--model", tiny("bert"), "--train", toy, "--source", "vocabulary", "--json"
        )
        assert {e["source"] for label in json.loads(only.out)["labels"] for e in label["found"]} <= {"vocabulary"}

    def test_a_saved_classifier_and_refusals(self, run: Run, model: Path, toy: Path, tmp_path: Path) -> None:
        assert run("labels", "expand", model, "--texts", toy).code == 0
        is_wrong_usage(run("labels", "expand", model, "--model", "x", "--texts", toy), "--model")
        is_wrong_usage(run("labels", "expand", NAMES, "--source", "dictionary"), "dictionary")
        fails(run("labels", "expand", model, "--source", "texts"), "needs texts")
        fails(run("labels", "expand", model, "-o", tmp_path / "labels.xlsx"), ".csv, .tsv or .jsonl")


class TestCheck:
    def test_before_training(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        page = tmp_path / "check.html"
        result = run("labels", "check", NAMES, "--model", tiny("bert"), "--texts", toy, "-o", page)
        assert result.code == 0, result.err
        assert result.out.startswith("3 labels, informativeness")
        assert "<svg" in page.read_text()

    def test_after_training(self, run: Run, model: Path, tmp_path: Path) -> None:
        turned = write_csv(tmp_path / "turned.csv", TEXTS, TRUTH[4:] + TRUTH[:4])
        result = run("labels", "check", model, "--test", turned, "--json")
        assert result.code == 0, result.err
        data = json.loads(result.out)
        assert data["accuracy"] == 0
        confused = [each for each in data["findings"] if each["kind"] == "confused"]
        assert len(confused) == 3
        assert all("classified as" in each["message"] and each["suggestion"] for each in confused)

    def test_refusals(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        is_wrong_usage(run("labels", "check", NAMES, "-o", tmp_path / "x.pdf"), ".html")
        fails(run("labels", "check", tmp_path / "none.csv", "--model", tiny("bert")), "no label file")


def test_the_command_line_knows_all_sources_of_phrases() -> None:
    assert tuple(each.value for each in PhraseSourceName) == get_args(PhraseSource)
