"""``maskmatch compare``: what it prints, writes, refuses, and goes on with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path  # noqa: TC003 - also at run time
from typing import TYPE_CHECKING, Any

import pytest

from cli_tools import Run, Tiny, fails, is_wrong_usage
from comparison_tools import all_splits, rows, write_dataset
from maskmatch_lab.comparison import hub

if TYPE_CHECKING:
    from cli_tools import Result

QUICK = ["--epochs", "1", "--batch-size", "16"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    all_splits(tmp_path / "data" / "shop")
    all_splits(tmp_path / "data" / "bank", zipped=False)
    return tmp_path / "data"


def test_two_files(run: Run, tiny: Tiny, data: Path, tmp_path: Path) -> None:
    train, test = data / "bank" / "train.jsonl", data / "bank" / "test.jsonl"
    how = ["--methods", "mask-matching,fine-tuning", "--seeds", 2, "--shots", 1, "--zero-shot", "--model", tiny("bert")]
    result = run("compare", train, test, *how, "--task", "intent", *QUICK, "-o", tmp_path / "out")
    assert result.code == 0, result
    lines = result.out.splitlines()
    assert lines[0].split("\t")[:4] == ["dataset", "regime", "method", "seeds"]
    assert [line.split("\t")[:4] for line in lines[1:4]] == [
        ["bank", "zero-shot", "mask-matching", "1"],
        ["bank", "1 shot", "mask-matching", "2"],
        ["bank", "1 shot", "fine-tuning", "2"],
    ]
    assert "* fine-tuning learns a vector per label and cannot predict zero-shot: left out there." in lines
    assert "5/5 ran bank, fine-tuning, 1 shot, seed 1" in result.err
    written = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert written["command"].startswith("maskmatch compare ")
    assert "--shots 1" in written["command"]
    assert (tmp_path / "out" / "report.html").is_file()

    again = run("compare", train, test, *how, "--task", "intent", *QUICK, "-o", tmp_path / "out", "--json")
    assert again.code == 0
    assert "ran" not in [line.split()[1] for line in again.err.splitlines() if "/5 " in line]
    found = json.loads(again.out)
    assert [row["method"] for row in found["significance"]] == ["fine-tuning"]
    assert found["table"] == written["table"]


def test_named_datasets_with_tasks_and_a_draw_of_test_rows(
    run: Run, tiny: Tiny, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASKMATCH_DATA", str(data))
    named = ["--datasets", "shop:intent,bank", "--methods", "semantic-matching", "--zero-shot", "--test-rows", 5]
    result = run("compare", *named, "--model", tiny("bert"), "-o", tmp_path / "out", "--json")
    assert result.code == 0, result
    found = json.loads(result.out)
    assert [(each["name"], each["task"], each["measured"]) for each in found["datasets"]] == [
        ("shop", "intent", 5),
        ("bank", "topic", 5),
    ]
    assert any("fixed draw of 5 test rows" in note for note in found["notes"])


def test_tuning_and_its_settings(run: Run, tiny: Tiny, data: Path, tmp_path: Path) -> None:
    where = ["--data", data, "--datasets", "shop:intent", "--methods", "mask-matching", "--model", tiny("bert")]
    where += ["--shots", 2, "--seeds", 1, "-o", tmp_path / "out"]
    file = tmp_path / "settings.json"
    tuned = run("compare", *where, "--tune", file, "--learning-rates", "0.001,0.01", "--epoch-factors", "1", *QUICK)
    assert tuned.code == 0, tuned
    assert "The same budget for every method: 2 settings" in tuned.out
    assert json.loads(file.read_text(encoding="utf-8"))["budget"]["learning_rates"] == [0.001, 0.01]
    assert not (tmp_path / "out" / "results.json").exists()
    monkey = {**json.loads(file.read_text(encoding="utf-8"))}
    monkey["settings"]["mask-matching"]["epoch_factor"] = 0.02
    file.write_text(json.dumps(monkey), encoding="utf-8")
    result = run("compare", *where, "--settings", file)
    assert result.code == 0, result
    assert "tuned on dev with 2 runs per method, the same for all" in result.out
    assert '"$MASKMATCH_DATA"' in json.loads((tmp_path / "out/results.json").read_text(encoding="utf-8"))["command"]
    wrong = run("compare", *where[:4], "--methods", "fine-tuning", "-o", tmp_path / "x", "--settings", file)
    fails(wrong, "no entry for 'fine-tuning'")


def test_the_papers_datasets(run: Run, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, config: str | None, split: str) -> list[dict[str, Any]]:
        texts, labels = rows(30, len(split))
        return [{"text": text, "label": label} for text, label in zip(texts, labels, strict=True)]

    monkeypatch.setattr(hub, "load_split", load)
    how = ["--datasets", "agnews", "--methods", "mask-matching", "--seeds", 1, *QUICK, "-o", tmp_path / "out", "--json"]
    result = run("compare", "--paper", tiny("bert"), *how)
    assert result.code == 0, result
    assert "loading agnews (fancyzhx/ag_news)" in result.err
    found = json.loads(result.out)
    assert found["regimes"] == ["10% of train", "full data"]
    assert found["datasets"][0]["dev"] == 3


def test_the_papers_datasets_without_a_hub(
    run: Run, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))

    def refuse(*_: Any) -> None:
        raise ConnectionError("no route to the hub")

    monkeypatch.setattr(hub, "load_split", refuse)
    result = run("compare", "--paper", tiny("bert"), "--datasets", "mrpc", "-o", tmp_path / "out")
    assert result.code == 1
    assert result.err.splitlines()[-1].startswith("maskmatch: The dataset nyu-mll/glue (mrpc), split train, could not")
    assert "hub must be reachable" in result.err


def test_wrong_usage(run: Run, data: Path, tmp_path: Path) -> None:
    out = ["-o", tmp_path / "out"]
    train = data / "bank" / "train.jsonl"
    is_wrong_usage(run("compare", *out), "TRAIN and TEST")
    is_wrong_usage(run("compare", train, *out), "both")
    is_wrong_usage(run("compare", train, train, "--datasets", "bank", *out), "give either TRAIN and TEST")
    is_wrong_usage(run("compare", "--datasets", "bank", *out), "--data")
    is_wrong_usage(run("compare", "--data", data, "--datasets", "bank", "--dev", train, *out), "--use-dev")
    is_wrong_usage(run("compare", "--paper", "x", "--model", "y", *out), "already names the encoder")
    is_wrong_usage(run("compare", train, train), "--output")
    is_wrong_usage(run("compare", train, train, "--seeds", 0, *out), "--seeds")
    is_wrong_usage(
        run("compare", train, train, "--tune", "x", "--learning-rates", "a,b", *out), "not a list of numbers"
    )
    is_wrong_usage(run("compare", train, train, "--settings", "x", "--tune", "y", *out), "settings")


def test_failures_are_one_sentence(run: Run, tiny: Tiny, data: Path, tmp_path: Path) -> None:
    train = data / "bank" / "train.jsonl"
    out = ["-o", tmp_path / "out", "--model", tiny("bert")]
    fails(run("compare", train, train, "--methods", "magic", *out), "no method 'magic'", "mask-matching")
    fails(run("compare", train, train, "--methods", "fine-tuning", "--zero-shot", *out), "without training")
    is_wrong_usage(run("compare", train, train, "--fraction", 1.5, *out), "fraction is 1.5")
    fails(run("compare", train, train, "--reference", "fine-tuning", "--methods", "mask-matching", *out), "reference")
    fails(run("compare", "--data", data, "--datasets", "none", *out), "no dataset 'none'")
    fails(run("compare", "--data", data, "--datasets", "bank:magic", *out), "has no known task")
    fails(run("compare", "--data", data, "--datasets", ",", *out), "No dataset is named")
    write_dataset(data / "half", train=rows(6, 0))
    fails(run("compare", "--data", data, "--datasets", "half", *out), "lacks test.jsonl")
    fails(run("compare", "--data", data, "--datasets", "bank", "--settings", tmp_path / "no", *out), "cannot be read")
    fails(run("compare", tmp_path / "no.csv", train, *out), "no.csv")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    quick = ["--methods", "mask-matching", "--zero-shot", "--model", tiny("bert")]
    fails(run("compare", train, train, *quick, "-o", tmp_path / "file"), "file", "cannot be created")


@pytest.mark.skipif(sys.platform == "win32", reason="a process is killed as on Unix")
def test_a_process_that_is_killed_leaves_whole_cells(run: Run, tiny: Tiny, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = [
        "compare",
        "--data",
        data,
        "--datasets",
        "bank",
        "--methods",
        "mask-matching",
        "--shots",
        1,
        "--seeds",
        30,
    ]
    arguments += ["--model", tiny("bert"), *QUICK, "-o", out]
    command = [sys.executable, "-m", "maskmatch", *map(str, arguments)]
    with subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while len(list(out.glob("cells/*.json"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
    kept = list(out.glob("cells/[!.]*.json"))
    assert 2 <= len(kept) < 30
    for file in kept:
        assert json.loads(file.read_text(encoding="utf-8"))["format"] == 1
    assert not (out / "results.json").exists()
    arguments[arguments.index("--seeds") + 1] = len(kept) + 1  # no need to wait for all of them
    result: Result = run(*arguments)
    assert result.code == 0, result
    told = [line.split()[1] for line in result.err.splitlines() if f"/{len(kept) + 1} " in line]
    assert told == ["kept"] * len(kept) + ["ran"]
