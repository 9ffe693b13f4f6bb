"""Every method, its labels' words and the metrics of tasks, from the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cli_tools import QUICK, Run, Tiny, fails, is_wrong_usage, write_csv
from maskmatch import METHODS
from maskmatch.config.methods import ANY_TEXT_METHODS
from maskmatch.testing.tiny_encoders import write_tiny_mlm
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("method", ANY_TEXT_METHODS)
def test_every_method_trains_predicts_and_is_measured(
    run: Run, tiny: Tiny, toy: Path, tmp_path: Path, method: str
) -> None:
    folder = tmp_path / "model"
    trained = run("train", toy, "-o", folder, "--model", tiny("bert"), "--method", method, *QUICK, "--json")
    assert trained.code == 0, trained.err
    notes = json.loads(trained.out)["notes"]
    assert [("no pretrained head" in note) for note in notes] == ([True] if method == "prompt-tuning" else [])
    answers = run("predict", folder, "-", stdin="\n".join(TEXTS)).rows()
    assert {row["label"] for row in answers} <= set(LABELS)
    report = json.loads(run("evaluate", folder, toy, "--json").out)
    right = sum(row["label"] == label for row, label in zip(answers, TRUTH, strict=True)) / len(TRUTH)
    assert (report["metric"], report["score"]) == ("accuracy", pytest.approx(right))
    assert json.loads((folder / "maskmatch.json").read_text())["config"]["method"]["name"] == method


@pytest.mark.parametrize("method", [name for name in ANY_TEXT_METHODS if METHODS[name].reads_labels])
def test_methods_that_read_labels_need_no_training(run: Run, tiny: Tiny, method: str) -> None:
    result = run(
        "classify", "--model", tiny("bert"), "--method", method, "--labels", ", ".join(LABELS), "--text", "a refund"
    )
    assert result.rows()[0]["label"] in LABELS


@pytest.mark.parametrize(
    "design",
    [
        ["--method", "pair-matching"],
        ["--label-prompt", "{text} {text_b} {label} is {mask}.", "--masks", "late"],
        ["--method", "pair-matching", "--label-prompt", "{text} {text_b} {label} is {mask}."],
        ["--prompt", "{text} {mask*2}", "--label-prompt", "{text_b} {label} {mask*2}", "--masks", "concat"],
    ],
    ids=["the pair and its sides", "labels see the pair", "both", "a side in each prompt"],
)
def test_designs_for_pairs_are_trained_and_predict(run: Run, tiny: Tiny, tmp_path: Path, design: list[str]) -> None:
    rows = "card lost,lost card,same\nrefund,exchange rate,other\nmoney,the money,same\nparcel,rate,other\n"
    (tmp_path / "pairs.csv").write_text(f"text,text_b,label\n{rows}")
    model, folder = ["--model", tiny("bert"), "--task", "paraphrase"], tmp_path / "model"
    trained = run("train", tmp_path / "pairs.csv", "-o", folder, *model, *design, *QUICK)
    assert trained.code == 0, trained.err
    answers = run("predict", folder, tmp_path / "pairs.csv").rows()
    assert {row["label"] for row in answers} <= {"same", "other"}
    assert json.loads(run("evaluate", folder, tmp_path / "pairs.csv", "--json").out)["rows"] == 4


def test_a_join_of_masks_that_does_not_fit_is_refused(run: Run, tiny: Tiny) -> None:
    common = ["classify", "--model", tiny("bert"), "--labels", "refund, card lost", "--text", "a refund"]
    wrong = run(*common, "--prompt", "{text} {mask*2}", "--masks", "concat")
    is_wrong_usage(wrong, "input prompt has 2 and the label prompt 1")


def test_words_come_from_a_label_file(run: Run, tmp_path: Path) -> None:
    model = write_tiny_mlm("bert", tmp_path / "mlm")
    (tmp_path / "labels.csv").write_text("label,words\nmoney,refund | exchange\nplastic,card\n")
    (tmp_path / "labels.json").write_text('{"money": {"words": ["refund", "exchange"]}, "plastic": {"words": "card"}}')
    (tmp_path / "labels.jsonl").write_text(
        '{"label": "money", "words": ["refund", "exchange"]}\n{"label": "plastic", "words": ["card"]}\n'
    )
    common = ["classify", "--model", model, "--method", "prompt-tuning", "--text", "where is it", "-k", "2"]
    found = [run(*common, "--labels", tmp_path / f"labels.{kind}").rows()[0] for kind in ("csv", "json", "jsonl")]
    assert found[0] == found[1] == found[2]
    assert run(*common, "--labels", "money, plastic").rows()[0]["top_k"] != found[0]["top_k"]


def test_training_says_which_head_it_has(run: Run, toy: Path, tmp_path: Path) -> None:
    model = write_tiny_mlm("bert", tmp_path / "mlm")
    result = run("train", toy, "-o", tmp_path / "model", "--model", model, "--method", "prompt-tuning", *QUICK)
    assert "The head over the mask is the one that the encoder was pretrained with." in result.out.splitlines()


class TestMetrics:
    def test_one_is_chosen_by_its_name(self, run: Run, model: Path, toy: Path) -> None:
        report = json.loads(run("evaluate", model, toy, "--metric", "macro-f1", "--json").out)
        assert (report["metric"], report["score"]) == ("macro-f1", report["macro_f1"])
        assert "(macro-f1)" in run("evaluate", model, toy, "--metric", "macro-f1").out

    def test_one_that_does_not_suit_is_refused(self, run: Run, model: Path, toy: Path) -> None:
        fails(run("evaluate", model, toy, "--metric", "luck"), "There is no metric 'luck'; choose one of accuracy")
        fails(run("evaluate", model, toy, "--metric", "stance-f1"), "stance-f1 needs a label named favor")

    def test_a_task_brings_its_own(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        rows = tmp_path / "rows.jsonl"
        labels = ["no_relation", "made by"] * 3
        texts = [f"The model {number} was in a jar" for number in range(6)]
        rows.write_text(
            "".join(
                json.dumps({"text": text, "head": "model", "tail": "jar", "label": label}) + "\n"
                for text, label in zip(texts, labels, strict=True)
            )
        )
        folder = tmp_path / "model"
        assert run("train", rows, "-o", folder, "--model", tiny("bert"), "--task", "relation", *QUICK).code == 0
        report = json.loads(run("evaluate", folder, rows, "--json").out)
        (made,) = (row for row in report["per_label"] if row["label"] == "made by")
        assert (report["metric"], report["score"]) == ("relation-micro-f1", pytest.approx(made["f1"]))


def test_a_table_of_stances(run: Run, tiny: Tiny, tmp_path: Path) -> None:
    rows = write_csv(tmp_path / "rows.csv", TEXTS, [LABELS.index(label) for label in TRUTH])
    folder = tmp_path / "model"
    (tmp_path / "labels.json").write_text('{"0": "favor", "1": "against", "2": "none"}')
    options = ["--labels", tmp_path / "labels.json", "--model", tiny("bert"), *QUICK]
    assert run("train", rows, "-o", folder, *options).code == 0
    assert json.loads(run("evaluate", folder, rows, "--metric", "stance-f1", "--json").out)["metric"] == "stance-f1"
