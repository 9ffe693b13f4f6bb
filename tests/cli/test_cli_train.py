"""``maskmatch train``: what it learns from, what it saves, what it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cli_tools import QUICK, Result, Run, Tiny, fails, is_wrong_usage, write_csv
from maskmatch import MaskMatcher
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from pathlib import Path


class TestTrain:
    def test_train_predict_evaluate(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        folder = tmp_path / "model"
        settings = ["--epochs", "80", "--learning-rate", "0.01", "--batch-size", "12"]
        trained = run("train", toy, "-o", folder, "--model", tiny("bert"), "--dev", toy, *settings)
        assert trained.code == 0, trained.err
        assert "trained on 12 texts with 3 labels" in trained.out
        assert "on dev: " in trained.out
        assert f"saved in {folder}" in trained.out
        predicted = run("predict", folder, toy)
        assert [row["label"] for row in predicted.rows()] == TRUTH
        evaluated = run("evaluate", folder, toy, "--json")
        assert json.loads(evaluated.out)["accuracy"] == 1.0

    def test_json_summary(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        result = run("train", toy, "-o", tmp_path / "m", "--model", tiny("bert"), *QUICK, "--json")
        data = json.loads(result.out)
        assert data["folder"] == str(tmp_path / "m")
        assert (data["texts"], data["labels"], data["steps"]) == (12, 3, 2)

    def test_every_option_reaches_the_classifier(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        rows = write_csv(tmp_path / "rows.csv", TEXTS, TRUTH, header="question,topic")
        names = "refund,card lost,exchange rate,parcel"
        options = ["--labels", names, "--task", "intent", "--method", "semantic-matching"]
        options += ["--prompt", "{text} yes", "--similarity", "dot", "--max-length", "40"]
        options += ["--text-field", "question", "--label-field", "topic", "--no-dropout"]
        result = run("train", rows, "-o", tmp_path / "m", "--model", tiny("bert"), *QUICK, *options)
        assert result.code == 0, result.err
        config = MaskMatcher.from_pretrained(tmp_path / "m").config
        assert (config.task.name, config.method.name) == ("intent", "semantic-matching")
        assert (config.prompt.template, config.similarity.kind, config.max_length) == (
            "{text} yes",
            "dot",
            40,
        )
        saved = json.loads((tmp_path / "m" / "maskmatch.json").read_text(encoding="utf-8"))
        assert saved["training"]["config"]["dropout"] is False
        shown = run("labels", "show", tmp_path / "m", "--json")
        assert [label["id"] for label in json.loads(shown.out)] == names.split(",")

    def test_draws(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        for option, value, texts in (("--shots", "2", 6), ("--fraction", "0.25", 3)):
            arguments = ["train", toy, "--model", tiny("bert"), *QUICK, option, value, "--json"]
            result = run(*arguments, "-o", tmp_path / "m")
            assert f"drew {texts} of 12 rows" in result.err
            assert (json.loads(result.out)["texts"], json.loads(result.out)["labels"]) == (texts, 3)

    def test_another_seed_draws_other_rows(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        losses = []
        for place, seed in enumerate((1, 1, 2)):
            result = run(
                "train", toy, "-o", tmp_path / f"m{place}", "--model", tiny("bert"), *QUICK,
                "--shots", 1, "--seed", seed, "--json",
            )  # fmt: skip
            losses.append(json.loads(result.out)["loss"])
        assert losses[0] == losses[1] != losses[2]

    def test_training_goes_on_from_a_saved_classifier_as_it_is(
        self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path
    ) -> None:
        first = MaskMatcher.from_pretrained(
            tiny("bert"), LABELS, task="sentiment", prompt="{text} {mask} yes", similarity="dot"
        )
        first.save_pretrained(tmp_path / "first")
        result = run("train", toy, "-o", tmp_path / "second", "--model", tmp_path / "first", *QUICK)
        assert result.code == 0, result.err
        assert MaskMatcher.from_pretrained(tmp_path / "second").config == first.config

    def test_checkpoints_and_resume(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        arguments = ["train", toy, "--model", tiny("bert"), *QUICK, "--checkpoints", tmp_path / "c"]
        assert run(*arguments, "-o", tmp_path / "one").code == 0
        assert list((tmp_path / "c").glob("checkpoint-*"))
        assert run(*arguments, "-o", tmp_path / "two", "--resume").code == 0
        fails(run(*arguments[:-1], tmp_path / "nowhere", "-o", tmp_path / "three", "--resume"), "checkpoint")

    def test_several_labels_a_text(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        rows = [{"text": text, "label": [label, "money"]} for text, label in zip(TEXTS, TRUTH, strict=True)]
        (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
        arguments = ["train", tmp_path / "rows.jsonl", "-o", tmp_path / "m", "--model", tiny("bert")]
        assert run(*arguments, *QUICK, "--dev", tmp_path / "rows.jsonl").code == 0
        answer = run("predict", tmp_path / "m", "--text", "refund", "-k", 2).rows()[0]
        matcher = MaskMatcher.from_pretrained(tmp_path / "m")
        assert answer["labels"] == matcher.predict(["refund"])[0]
        assert len(answer["top_k"]) == 2
        assert run("evaluate", tmp_path / "m", tmp_path / "rows.jsonl").code == 0

    def test_rows_without_a_label_are_rows_of_several_labels(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        rows = [{"text": text, "label": [label]} for text, label in zip(TEXTS, TRUTH, strict=True)]
        rows += [{"text": "it was wrapped in a newspaper", "label": []}]
        (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
        result = run(
            "train", tmp_path / "rows.jsonl", "-o", tmp_path / "m", "--model", tiny("bert"), *QUICK, "--json",
            "--dev", tmp_path / "rows.jsonl",
        )  # fmt: skip
        assert json.loads(result.out)["texts"] == 13
        assert json.loads(run("evaluate", tmp_path / "m", tmp_path / "rows.jsonl", "--json").out)["rows"] == 13

    def test_several_labels_can_be_asked_for(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        options = ["--multi-label", "--threshold", "0.25", "--device", "cpu"]
        assert run("train", toy, "-o", tmp_path / "m", "--model", tiny("bert"), *QUICK, *options).code == 0
        config = MaskMatcher.from_pretrained(tmp_path / "m").config
        assert (config.multi_label, config.threshold) == (True, 0.25)

    @pytest.mark.parametrize("labels", [None, '{"0": "refund", "1": "card lost", "2": "exchange rate"}'])
    def test_numbers_meet_however_files_write_them(
        self, run: Run, tiny: Tiny, tmp_path: Path, labels: str | None
    ) -> None:
        numbers = [LABELS.index(label) for label in TRUTH]
        as_texts = write_csv(tmp_path / "rows.csv", TEXTS, numbers)
        as_numbers = tmp_path / "rows.jsonl"
        lines = [json.dumps({"text": text, "label": n}) for text, n in zip(TEXTS, numbers, strict=True)]
        as_numbers.write_text("\n".join(lines))
        options: list[object] = []
        if labels is not None:
            (tmp_path / "labels.json").write_text(labels)
            options = ["--labels", tmp_path / "labels.json"]
        accuracies = set()
        for train, dev in ((as_texts, as_numbers), (as_numbers, as_texts)):
            folder = tmp_path / train.suffix
            result = run(
                "train", train, "--dev", dev, "-o", folder, "--model", tiny("bert"), *QUICK, *options, "--json"
            )
            assert result.code == 0, result.err
            accuracies.add(json.loads(result.out)["dev"]["accuracy"])
            ids = [label["id"] for label in json.loads(run("labels", "show", folder, "--json").out)]
            assert ids == ([0, 1, 2] if labels is not None or train is as_numbers else ["0", "1", "2"])
        assert len(accuracies) == 1
        assert accuracies.pop() > 0

    def test_pairs_with_named_columns(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        (tmp_path / "pairs.csv").write_text("one,two,label\na b,a b,same\nc d,e f,different\n")
        columns = ["--field", "text=one", "--field", "text_b=two"]
        trained = run(
            "train", tmp_path / "pairs.csv", "-o", tmp_path / "m", "--model", tiny("bert"), "--task",
            "paraphrase", *QUICK, *columns,
        )  # fmt: skip
        assert trained.code == 0, trained.err
        predicted = run("predict", tmp_path / "m", tmp_path / "pairs.csv", *columns)
        assert {row["label"] for row in predicted.rows()} <= {"same", "different"}
        fails(run("predict", tmp_path / "m", "--text", "only one"), "text_b")


def test_a_training_that_diverged_is_not_saved(run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
    wild = [*QUICK, "--learning-rate", "1e30"]
    result = run("train", toy, "-o", tmp_path / "m", "--model", tiny("bert"), *wild)
    fails(result, "Training diverged", "choose a learning rate below 1e+30")
    assert not (tmp_path / "m").exists()


class TestTrainRefusals:
    @pytest.fixture
    def train(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
        """Runs train; a run that gets as far as the training itself fails the test."""

        def too_late(*_: Any, **__: Any) -> None:
            raise AssertionError("the training began")

        monkeypatch.setattr("maskmatch.training.fit.train", too_late)

        def call(rows: object = toy, *arguments: object) -> Result:
            output = [] if "-o" in arguments else ["-o", tmp_path / "new"]
            result = run("train", rows, "--model", tiny("bert"), *output, *arguments)
            assert not (tmp_path / "new").exists()
            return result

        return call

    def test_files(self, train: Run, toy: Path, tmp_path: Path) -> None:
        fails(train("nowhere.csv"), "nowhere.csv")
        fails(train(tmp_path), tmp_path)
        fails(train(toy, "--dev", "nowhere.csv"), "nowhere.csv")
        fails(train(toy, "--text-field", "body"), "body")
        fails(train(toy, "--encoding", "klingon"), "klingon")
        (tmp_path / "bad.csv").write_text("text,label\nfine,a\n,b\nfine,\n")
        message = fails(train(tmp_path / "bad.csv"), "bad.csv", "line 3", "line 4", "--skip-bad-rows")
        assert "text" in message
        (tmp_path / "bad.jsonl").write_text('{"text": "fine", "label": "a"}\n{"text": \n')
        fails(train(tmp_path / "bad.jsonl"), "bad.jsonl", "line 2")
        (tmp_path / "latin.csv").write_bytes("text,label\ncafé,a\n".encode("latin-1"))
        fails(train(tmp_path / "latin.csv"), "line 2", "--encoding")
        (tmp_path / "one.csv").write_text("text,label\na,x\nb,x\n")
        fails(train(tmp_path / "one.csv"), "fewer than two labels", "'x'")

    def test_outputs(self, train: Run, toy: Path, tmp_path: Path) -> None:
        foreign = tmp_path / "thesis"
        foreign.mkdir()
        (foreign / "thesis.tex").write_text("precious")
        fails(train(toy, "-o", foreign), foreign, "not a saved classifier")
        fails(train(toy, "-o", toy), toy)
        fails(train(toy, "-o", toy / "model"), toy)
        assert (foreign / "thesis.tex").read_text() == "precious"

    def test_settings(self, train: Run, toy: Path) -> None:
        fails(train(toy, "--labels", "refund,card lost"), "'exchange rate' (4 rows)")
        is_wrong_usage(train(toy, "--task", "topics"), "'topics'")
        is_wrong_usage(train(toy, "--method", "magic"), "'magic'")
        is_wrong_usage(train(toy, "--similarity", "euclid"), "'euclid'")
        is_wrong_usage(train(toy, "--prompt", "no mask {text}"), "mask")
        is_wrong_usage(train(toy, "--epochs", "0"), "epochs is 0")
        is_wrong_usage(train(toy, "--learning-rate", "0"), "learning_rate is 0")
        is_wrong_usage(train(toy, "--fraction", "1.5"), "1.5")
        is_wrong_usage(train(toy, "--resume"), "checkpoints")
        fails(train(toy, "--labels", "nowhere.json"), "nowhere.json")
        fails(train(toy, "--labels", toy.parent), toy.parent, "is a folder")
        fails(train(toy, "--device", "abacus"), "'abacus'")
        fails(train(toy, "--threshold", "0.3"), "several labels")

    def test_usage(self, train: Run, toy: Path, run: Run) -> None:
        is_wrong_usage(train(toy, "--shots", "1", "--fraction", "0.5"), "--shots", "--fraction")
        is_wrong_usage(train(toy, "--shots", "0"), "--shots")
        is_wrong_usage(train(toy, "--multi-label", "--threshold", "1.5"), "--threshold")
        is_wrong_usage(train(toy, "--multi-label", "--threshold", "0.5", "--dev", toy), "dev data decides")
        is_wrong_usage(train(toy, "--field", "text"), "'text' is not FIELD=COLUMN")
        is_wrong_usage(train(toy, "--field", "=x"), "FIELD=COLUMN")
        is_wrong_usage(train(toy, "--no-such-option"), "--no-such-option")
        is_wrong_usage(train(toy, "--format", "xls"), "xls")
        is_wrong_usage(run("train", toy), "--output")
        is_wrong_usage(run("no-such-command"), "no-such-command")


class TestOverwriting:
    """A classifier with other labels is replaced only if the user says so."""

    def train(self, run: Run, rows: Path, tiny: Tiny, output: Path, *more: object) -> Result:
        return run("train", rows, "-o", output, "--model", tiny("bert"), *QUICK, *more)

    def test_other_labels_need_a_word(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        output = tmp_path / "m"
        assert self.train(run, toy, tiny, output).code == 0
        before = (output / "maskmatch.json").read_bytes()
        two = write_csv(tmp_path / "two.csv", TEXTS[:8], TRUTH[:8])
        fails(self.train(run, two, tiny, output), "only the old one has 'exchange rate'", "--overwrite")
        assert (output / "maskmatch.json").read_bytes() == before
        assert self.train(run, toy, tiny, output).code == 0, "the same labels"
        assert self.train(run, two, tiny, output, "--overwrite").code == 0

    def test_a_saved_classifier_keeps_its_labels(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        output = tmp_path / "m"
        assert self.train(run, toy, tiny, output).code == 0
        two = write_csv(tmp_path / "two.csv", TEXTS[:8], TRUTH[:8])
        assert run("train", two, "-o", output, "--model", output, *QUICK).code == 0, "it still has all three"
