"""The command line: results on standard output, words on standard error, exit codes that mean something."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from cli_tools import Run, Tiny, fails
from maskmatch import MaskMatcher
from maskmatch.cli import main
from toy_data import TEXTS

if TYPE_CHECKING:
    from pathlib import Path


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
            "heavy = {'torch', 'transformers', 'numpy', 'sklearn', 'pandas', 'rich', 'maskmatch.cli.train'}\n"
            "heavy &= set(sys.modules)\n"
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
        predict = f"{sys.executable} -m maskmatch predict {model} -"
        command = f"yes {TEXTS[3]} | head -3000 | {predict} | head -1; echo ${{PIPESTATUS[2]}}"
        result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=False)
        answer, code = result.stdout.splitlines()
        assert json.loads(answer)["label"] == "refund"
        assert code == "141"
        assert "Traceback" not in result.stderr
        assert "BrokenPipe" not in result.stderr


class TestTasks:
    def test_they_are_listed_with_their_prompts(self, run: Run) -> None:
        rows = [line.split("\t") for line in run("tasks").out.splitlines()]
        assert {row[0] for row in rows[1:]} >= {
            "topic", "sentiment", "nli", "paraphrase", "word-in-context", "relation", "entity-typing",
            "stance", "intent", "question", "emotion",
        }  # fmt: skip
        data = json.loads(run("tasks", "--json").out)
        assert {"name", "description", "fields", "prompt", "label_prompt", "paraphrases", "metric"} <= data[0].keys()
        relation = dict(zip(rows[0], next(row for row in rows if row[0] == "relation"), strict=True))
        assert relation["metric"] == "relation-micro-f1"
        assert "{head} {mask} {tail}: {text}" in relation["paraphrases"]
        assert data[0]["prompts_read"] == [data[0]["prompt"]]

    def test_of_pairs_they_tell_what_is_read(self, run: Run, tiny: Tiny) -> None:
        nli = next(task for task in json.loads(run("tasks", "--json").out) if task["name"] == "nli")
        matcher = MaskMatcher.from_pretrained(tiny("bert"), task="nli")
        assert nli["prompts_read"] == [prompt.template for prompt in matcher.config.prompts]
        rows = [line.split("\t") for line in run("tasks").out.splitlines()]
        row = dict(zip(rows[0], next(row for row in rows if row[0] == "nli"), strict=True))
        assert row["input prompt"] == " | ".join(nli["prompts_read"])
        assert nli["prompt"] in row["paraphrases"]


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

        monkeypatch.setattr("maskmatch.matcher.MaskMatcher.from_pretrained", denied)
        fails(run("classify", "--device", "cpu", "--labels", "a,b", "--text", "x"), "/some/where: Permission denied")

    def test_an_interruption_is_no_failure_of_ours(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("maskmatch.matcher.MaskMatcher.from_pretrained", interrupted)
        result = run("classify", "--device", "cpu", "--labels", "a,b", "--text", "x")
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
            assert re.search(r"Usage: .*\bmaskmatch\b", result.out)  # or python -m maskmatch
            assert result.err == ""
