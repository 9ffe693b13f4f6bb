"""The command line: results on standard output, words on standard error, exit codes that mean something."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from maskmatch import MaskMatcher
from maskmatch.cli import main
from toy_data import FAST, LABELS, TEXTS, TRUTH

Tiny = Callable[..., Path]

QUICK = ["--epochs", "2", "--learning-rate", "0.01", "--batch-size", "12"]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


class Stdin(io.TextIOWrapper):
    """Standard input: a pipe with some text in it, or a terminal."""

    def __init__(self, text: str | None) -> None:
        super().__init__(io.BytesIO((text or "").encode()), encoding="utf-8")
        self._terminal = text is None

    def isatty(self) -> bool:
        return self._terminal


Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line in this process; without ``stdin``, standard input is a terminal."""

    def call(*arguments: object, stdin: str | None = None) -> Result:
        monkeypatch.setattr(sys, "argv", ["maskmatch", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", Stdin(stdin))
        capfd.readouterr()
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capfd.readouterr()
        code = caught.value.code
        return Result(code if isinstance(code, int) else int(code is not None), captured.out, captured.err)

    return call


def fails(result: Result, *words: object) -> str:
    """Checks that a run failed with one sentence on standard error, and nothing else."""
    assert result.code == 1, result
    assert result.out == ""
    assert "Traceback" not in result.err
    lines = [line for line in result.err.splitlines() if not line.startswith("drew ")]
    assert len(lines) == 1, result.err
    assert lines[0].startswith("maskmatch: ")
    for word in words:
        assert str(word) in lines[0], lines[0]
    return lines[0]


def is_wrong_usage(result: Result, *words: str) -> None:
    assert result.code == 2, result
    assert result.out == ""
    assert "Traceback" not in result.err
    plain = " ".join(result.err.replace("│", " ").split())
    for word in words:
        assert word in plain, result.err


def write_csv(path: Path, texts: Sequence[str], labels: Sequence[object], header: str = "text,label") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header.split(","))
        writer.writerows(zip(texts, labels, strict=True))
    return path


@pytest.fixture(scope="module")
def model(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier that knows the toy set by heart; tests do not change it."""
    matcher = MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, TRUTH, **FAST)
    return matcher.save_pretrained(tmp_path_factory.mktemp("cli") / "model")


@pytest.fixture
def own(model: Path, tmp_path: Path) -> Path:
    """A copy of the classifier to be changed."""
    return Path(shutil.copytree(model, tmp_path / "own"))


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "toy.csv", TEXTS, TRUTH)


class TestProcess:
    """What only a process of its own shows."""

    def start(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        return subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=environment,
            timeout=120,
            check=False,
            **options,
        )

    def test_help_is_fast_because_nothing_heavy_is_imported(self) -> None:
        code = (
            "import sys\n"
            "from maskmatch.cli import main\n"
            "sys.argv = ['maskmatch', '--help']\n"
            "try:\n"
            "    main()\n"
            "except SystemExit as error:\n"
            "    code = error.code\n"
            "heavy = {'torch', 'transformers', 'numpy', 'sklearn', 'pandas'} & set(sys.modules)\n"
            "sys.stderr.write(repr((code, sorted(heavy))))\n"
        )
        result = self.start("-c", code)
        assert result.stderr == "(0, [])"
        for command in ("demo", "classify", "train", "predict", "evaluate", "labels", "tasks"):
            assert command in result.stdout

    def test_python_m_is_the_command_line(self) -> None:
        result = self.start("-m", "maskmatch", "--version")
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.startswith("maskmatch 0.")

    def test_results_and_words_go_their_own_ways(self, model: Path) -> None:
        good = self.start("-m", "maskmatch", "predict", str(model), "-", input="refund the parcel please\n")
        assert good.returncode == 0
        assert [json.loads(line)["label"] for line in good.stdout.splitlines()] == ["refund"]
        bad = self.start("-m", "maskmatch", "predict", str(model), "no-such-file.csv")
        assert bad.returncode == 1
        assert bad.stdout == ""
        assert bad.stderr.startswith("maskmatch: no-such-file.csv")
        assert bad.stderr.count("\n") == 1
        wrong = self.start("-m", "maskmatch", "predict", str(model), "--no-such-option")
        assert wrong.returncode == 2
        assert wrong.stdout == ""

    def test_a_reader_that_goes_away_is_no_reason_to_complain(self, model: Path) -> None:
        command = f"yes {TEXTS[3]} | head -3000 | {sys.executable} -m maskmatch predict {model} - | head -1"
        result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=False)
        assert json.loads(result.stdout)["label"] == "refund"
        assert "Traceback" not in result.stderr
        assert "BrokenPipe" not in result.stderr


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
        options += ["--text-field", "question", "--label-field", "topic"]
        result = run("train", rows, "-o", tmp_path / "m", "--model", tiny("bert"), *QUICK, *options)
        assert result.code == 0, result.err
        config = MaskMatcher.from_pretrained(tmp_path / "m").config
        assert (config.task.name, config.method.name) == ("intent", "semantic-matching")
        assert (config.prompt.template, config.similarity.kind, config.max_length) == (
            "{text} yes",
            "dot",
            40,
        )
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


class TestTrainRefusals:
    @pytest.fixture
    def train(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
        """Runs train; a run that gets as far as the training itself fails the test."""

        def too_late(*_: Any, **__: Any) -> None:
            raise AssertionError("the training began")

        monkeypatch.setattr("maskmatch.training.train", too_late)

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
        fails(train(toy, "-o", foreign), foreign, "no saved classifier")
        fails(train(toy, "-o", toy), toy)
        fails(train(toy, "-o", toy / "model"), toy)
        assert (foreign / "thesis.tex").read_text() == "precious"

    def test_settings(self, train: Run, toy: Path) -> None:
        fails(train(toy, "--labels", "refund,card lost"), "'exchange rate' (4 rows)")
        fails(train(toy, "--task", "topics"), "'topics'")
        fails(train(toy, "--method", "magic"), "'magic'")
        fails(train(toy, "--similarity", "euclid"), "'euclid'")
        fails(train(toy, "--prompt", "no mask {text}"), "mask")
        fails(train(toy, "--epochs", "0"), "epochs is 0")
        fails(train(toy, "--fraction", "1.5"), "1.5")
        fails(train(toy, "--resume"), "checkpoints")
        fails(train(toy, "--labels", "nowhere.json"), "nowhere.json")

    def test_usage(self, train: Run, toy: Path, run: Run) -> None:
        is_wrong_usage(train(toy, "--shots", "1", "--fraction", "0.5"), "--shots", "--fraction")
        is_wrong_usage(train(toy, "--shots", "0"), "--shots")
        is_wrong_usage(train(toy, "--field", "text"), "'text' is not FIELD=COLUMN")
        is_wrong_usage(train(toy, "--field", "=x"), "FIELD=COLUMN")
        is_wrong_usage(train(toy, "--no-such-option"), "--no-such-option")
        is_wrong_usage(train(toy, "--format", "xls"), "xls")
        is_wrong_usage(run("train", toy), "--output")
        is_wrong_usage(run("no-such-command"), "no-such-command")


class TestPredict:
    def test_texts_from_the_command_line(self, run: Run, model: Path) -> None:
        result = run("predict", model, "--text", TEXTS[0], "--text", TEXTS[4], "-k", 2)
        first, second = result.rows()
        assert (first["row"], first["label"]) == (0, "refund")
        assert (second["row"], second["label"]) == (1, "card lost")
        assert first["top_k"][0] == {"label": "refund", "probability": first["probability"]}
        assert len(first["top_k"]) == 2
        expected = MaskMatcher.from_pretrained(model).top_k([TEXTS[0]], 1)[0][0][1]
        assert first["probability"] == pytest.approx(expected, abs=1e-5)

    @pytest.mark.parametrize("argument", [[], ["-"]])
    def test_standard_input(self, run: Run, model: Path, argument: list[str]) -> None:
        lines = [TEXTS[0], json.dumps({"text": TEXTS[4]}), "", json.dumps(TEXTS[8])]
        result = run("predict", model, *argument, stdin="\n".join(lines))
        assert [row["label"] for row in result.rows()] == LABELS

    def test_files_of_several_kinds(self, run: Run, model: Path, tmp_path: Path) -> None:
        (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
        (tmp_path / "texts.json").write_text(json.dumps([{"text": text} for text in TEXTS]))
        write_csv(tmp_path / "texts.csv", TEXTS, range(12), header="text,number")
        write_csv(tmp_path / "odd", TEXTS, range(12), header="body,number")
        for arguments in (
            ["texts.txt"], ["texts.json"], ["texts.csv"], ["odd", "--format", "csv", "--text-field", "body"],
        ):  # fmt: skip
            result = run("predict", model, tmp_path / arguments[0], *arguments[1:])
            assert [row["label"] for row in result.rows()] == TRUTH, arguments

    def test_rows_are_numbered_through_over_chunks(
        self, run: Run, model: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import maskmatch.data

        original = maskmatch.data.iter_examples

        def small_chunks(*arguments: Any, **options: Any) -> Any:
            return original(*arguments, **{**options, "chunk_size": 5})

        monkeypatch.setattr(maskmatch.data, "iter_examples", small_chunks)
        rows = run("predict", model, "-", stdin="\n".join(TEXTS)).rows()
        assert [row["row"] for row in rows] == list(range(12))
        assert [row["label"] for row in rows] == TRUTH

    def test_bad_rows_can_be_left_out(self, run: Run, model: Path, tmp_path: Path) -> None:
        rows = tmp_path / "rows.csv"
        rows.write_text("text,x\nrefund,1\n,2\ncard lost,3\n")
        fails(run("predict", model, rows), "rows.csv, line 3")
        result = run("predict", model, rows, "--skip-bad-rows")
        assert result.code == 0
        assert len(result.rows()) == 2
        assert "left out: " in result.err
        assert "line 3" in result.err

    def test_long_texts_are_told_on_standard_error(self, run: Run, model: Path) -> None:
        result = run("predict", model, "--text", "refund " * 300)
        assert result.rows()[0]["label"] == "refund"

    def test_integer_and_tuple_labels_are_json(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        MaskMatcher.from_pretrained(tiny("bert"), {3: "refund", 4: "card"}).save_pretrained(tmp_path / "m")
        assert run("predict", tmp_path / "m", "--text", "refund").rows()[0]["label"] in (3, 4)

    def test_refusals(self, run: Run, model: Path, tiny: Tiny, tmp_path: Path) -> None:
        fails(run("predict", model, "nowhere.csv"), "nowhere.csv")
        fails(run("predict", tmp_path / "nowhere", "--text", "x"), "nowhere")
        fails(run("predict", tmp_path, "--text", "x"), tmp_path, "no saved classifier")
        fails(run("predict", tiny("bert"), "--text", "x"), "maskmatch.json")
        fails(run("predict", "no-such/model", "--text", "x"), "no-such/model")
        fails(run("predict", model, "-", stdin=""), "standard input")
        (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
        fails(run("predict", model, tmp_path / "rows.csv"), "text")

    def test_a_damaged_model(self, run: Run, own: Path) -> None:
        (own / "maskmatch.json").write_text("{")
        fails(run("predict", own, "--text", "x"), "maskmatch.json", "damaged")

    def test_usage(self, run: Run, model: Path, toy: Path) -> None:
        is_wrong_usage(run("predict", model), "FILE")  # at a terminal
        is_wrong_usage(run("predict", model, toy, "--text", "x"), "not both")
        is_wrong_usage(run("predict", model, "--text", "x", "-k", "0"), "--top-k")
        is_wrong_usage(run("predict", model, "--text", "x", "--batch-size", "0"), "--batch-size")
        is_wrong_usage(run("predict", model, toy, "--field", "text"), "FIELD=COLUMN")
        is_wrong_usage(run("predict"), "Missing argument")


class TestEvaluate:
    def test_text_json_and_files(self, run: Run, model: Path, toy: Path, tmp_path: Path) -> None:
        text = run("evaluate", model, toy)
        assert text.code == 0
        assert "accuracy" in text.out.lower()
        assert "exchange rate" in text.out
        data = json.loads(run("evaluate", model, toy, "--json").out)
        assert data["accuracy"] == 1.0
        assert [row["label"] for row in data["per_label"]] == sorted(LABELS)
        saved = run("evaluate", model, toy, "-o", tmp_path / "report", "--json")
        assert json.loads(saved.out)["rows"] == 12
        assert f"report saved in {tmp_path / 'report'}" in saved.err
        names = {path.name for path in (tmp_path / "report").iterdir()}
        assert names == {"report.html", "report.json", "report.txt"}

    def test_unknown_labels_count_as_wrong(self, run: Run, model: Path, tmp_path: Path) -> None:
        rows = write_csv(tmp_path / "rows.csv", TEXTS[:4], ["refund", "refund", "parcel", "parcel"])
        data = json.loads(run("evaluate", model, rows, "--json").out)
        assert data["accuracy"] == 0.5
        assert data["unseen"] == [{"label": "parcel", "rows": 2}]

    def test_numbers_are_labels_however_a_file_writes_them(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        numbers = [LABELS.index(label) for label in TRUTH]
        rows = write_csv(tmp_path / "rows.csv", TEXTS, numbers)
        lines = [json.dumps({"text": text, "label": n}) for text, n in zip(TEXTS, numbers, strict=True)]
        (tmp_path / "rows.jsonl").write_text("\n".join(lines))
        for name, labels in (("ints", numbers), ("texts", [str(number) for number in numbers])):
            matcher = MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, labels, **{**FAST, "epochs": 5})
            expected = matcher.evaluate(TEXTS, labels).accuracy
            assert expected > 0
            matcher.save_pretrained(tmp_path / name)
            for file in (rows, tmp_path / "rows.jsonl"):
                data = json.loads(run("evaluate", tmp_path / name, file, "--json").out)
                assert data["unseen"] == []
                assert data["accuracy"] == expected

    def test_refusals(self, run: Run, model: Path, toy: Path, tmp_path: Path) -> None:
        fails(run("evaluate", model, "nowhere.csv"), "nowhere.csv")
        fails(run("evaluate", tmp_path, toy), "no saved classifier")
        (tmp_path / "texts.csv").write_text("text\nrefund\n")
        fails(run("evaluate", model, tmp_path / "texts.csv"), "label")
        fails(run("evaluate", model, toy, "-o", toy), toy)
        is_wrong_usage(run("evaluate", model), "Missing argument")


class TestLabels:
    def ids(self, result: Result) -> list[Any]:
        assert result.code == 0, result.err
        return [label["id"] for label in json.loads(result.out)]

    def test_show(self, run: Run, model: Path) -> None:
        table = run("labels", "show", model).out.splitlines()
        assert table[0].split("\t") == ["label", "reads", "description", "phrases"]
        assert [row.split("\t")[0] for row in table[1:]] == sorted(LABELS)
        assert self.ids(run("labels", "show", model, "--json")) == sorted(LABELS)

    def test_add_rename_remove(self, run: Run, own: Path) -> None:
        added = run("labels", "add", own, "chargeback", "--description", "money taken back", "--phrase",
                    "dispute", "--json")  # fmt: skip
        assert json.loads(added.out)[-1] == {
            "id": "chargeback",
            "name": "chargeback",
            "description": "money taken back",
            "phrases": ["dispute"],
        }
        assert len(run("predict", own, "--text", "x", "-k", 9).rows()[0]["top_k"]) == 4
        assert self.ids(run("labels", "add", own, "one", "two", "--json"))[-2:] == ["one", "two"]
        renamed = self.ids(run("labels", "rename", own, "chargeback", "dispute", "--json"))
        assert renamed == [*sorted(LABELS), "dispute", "one", "two"]
        left = self.ids(run("labels", "remove", own, "one", "dispute", "two", "--json"))
        assert left == sorted(LABELS) == self.ids(run("labels", "show", own, "--json"))
        assert [row["label"] for row in run("predict", own, "-", stdin="\n".join(TEXTS)).rows()] == TRUTH

    def test_numbers_are_found(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        MaskMatcher.from_pretrained(tiny("bert"), {3: "refund", 4: "card"}).save_pretrained(tmp_path / "m")
        assert self.ids(run("labels", "rename", tmp_path / "m", "3", "money", "--json")) == ["money", 4]
        assert self.ids(run("labels", "remove", tmp_path / "m", "4", "--json")) == ["money"]

    def test_refusals(self, run: Run, own: Path, tmp_path: Path, tiny: Tiny) -> None:
        before = (own / "maskmatch.json").read_bytes()
        fails(run("labels", "show", tmp_path), "no saved classifier")
        fails(run("labels", "add", own, "refund"), "'refund'")
        fails(run("labels", "rename", own, "parcel", "box"), "'parcel'")
        fails(run("labels", "remove", own, "parcel"), "'parcel'")
        fails(run("labels", "remove", own, *LABELS), "Every label")
        is_wrong_usage(run("labels", "add", own, "a", "b", "--description", "x"), "single name")
        is_wrong_usage(run("labels", "add", own), "Missing argument")
        assert (own / "maskmatch.json").read_bytes() == before
        matrix = MaskMatcher.from_pretrained(tiny("bert"), method="fine-tuning").fit(TEXTS, TRUTH, epochs=1)
        matrix.save_pretrained(tmp_path / "matrix")
        fails(run("labels", "add", tmp_path / "matrix", "parcel"), "fine-tuning")


class TestClassify:
    def test_label_names_are_enough(self, run: Run, tiny: Tiny) -> None:
        options = ["--model", tiny("bert"), "--labels", "refund, card lost", "-k", 9]
        row = run("classify", *options, "--text", "where is it").rows()[0]
        expected = MaskMatcher.from_pretrained(tiny("bert"), ["refund", "card lost"]).predict(["where is it"])
        assert [row["label"]] == expected
        assert len(row["top_k"]) == 2
        piped = run("classify", *options, stdin="where is it\nwhere is it\n").rows()
        assert [each["label"] for each in piped] == expected * 2

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("labels.txt", "refund\ncard lost\n"),
            ("labels.json", '{"refund": "money back", "card lost": ["gone"]}'),
            ("labels.csv", "label,description,phrases\nrefund,money back,\ncard lost,,gone|stolen\n"),
        ],
    )
    def test_label_files(self, run: Run, tiny: Tiny, tmp_path: Path, name: str, content: str) -> None:
        (tmp_path / name).write_text(content)
        result = run("classify", "--model", tiny("bert"), "--labels", tmp_path / name, "--text", "x")
        assert {pair["label"] for pair in result.rows()[0]["top_k"]} == {"refund", "card lost"}

    def test_a_saved_classifier_with_other_labels_keeps_its_prompts(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, prompt="{text} {mask} yes", similarity="dot")
        matcher.save_pretrained(tmp_path / "m")
        row = run("classify", "--model", tmp_path / "m", "--labels", "money,parcel", "--text", "x").rows()[0]
        expected = MaskMatcher.from_pretrained(tmp_path / "m", ["money", "parcel"]).top_k(["x"], 1)[0][0]
        assert (row["label"], row["probability"]) == (expected[0], pytest.approx(expected[1], abs=1e-5))

    def test_refusals(self, run: Run, tiny: Tiny) -> None:
        model = ["--model", tiny("bert")]
        fails(run("classify", *model, "--labels", "a,a", "--text", "x"), "'a'")
        fails(run("classify", *model, "--labels", " , ", "--text", "x"), "no labels")
        fails(run("classify", *model, "--labels", "a,b", "nowhere.csv"), "nowhere.csv")
        fails(run("classify", "--model", "./nowhere", "--labels", "a,b", "--text", "x"), "./nowhere")
        fails(run("classify", *model, "--labels", "a,b", "--text", "x", "--method", "fine-tuning"), "fit")
        is_wrong_usage(run("classify", *model, "--text", "x"), "--labels")
        is_wrong_usage(run("classify", *model, "--labels", "a,b"), "FILE")


class TestTasks:
    def test_they_are_listed_with_their_prompts(self, run: Run) -> None:
        rows = [line.split("\t") for line in run("tasks").out.splitlines()]
        assert {row[0] for row in rows[1:]} >= {
            "topic", "sentiment", "nli", "paraphrase", "word-in-context", "relation", "entity-typing",
            "stance", "intent", "question", "emotion",
        }  # fmt: skip
        data = json.loads(run("tasks", "--json").out)
        assert {"name", "description", "fields", "prompt", "label_prompt"} <= data[0].keys()


def test_results_are_utf_8_whatever_the_system_says(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, encoding="latin-1"))
    monkeypatch.setattr(sys, "argv", ["maskmatch", "labels", "add", str(own), "Übermäßig 🙂", "--json"])
    with pytest.raises(SystemExit) as caught:
        main()
    sys.stdout.flush()
    assert not caught.value.code
    assert json.loads(output.getvalue().decode("utf-8"))[-1]["id"] == "Übermäßig 🙂"


class TestFailures:
    def test_an_error_of_the_system_is_one_sentence(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def denied(*_: Any, **__: Any) -> None:
            raise PermissionError(13, "Permission denied", "/some/where")

        monkeypatch.setattr("maskmatch.classifier.MaskMatcher.from_pretrained", denied)
        fails(run("classify", "--labels", "a,b", "--text", "x"), "/some/where: Permission denied")

    def test_an_interruption_is_no_failure_of_ours(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("maskmatch.classifier.MaskMatcher.from_pretrained", interrupted)
        result = run("classify", "--labels", "a,b", "--text", "x")
        assert result.code == 130
        assert result.out == ""
        assert "Traceback" not in result.err

    @pytest.mark.parametrize(
        "command",
        ["", "demo", "classify", "train", "predict", "evaluate", "labels", "labels add", "tasks"],
    )
    def test_every_command_has_help(self, run: Run, command: str) -> None:
        for option in ("--help", "-h"):
            result = run(*command.split(), option)
            assert result.code == 0
            assert "Usage: maskmatch" in result.out
            assert result.err == ""
