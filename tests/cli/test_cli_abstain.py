"""``maskmatch abstain``, and ``--abstain`` of other commands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from maskmatch import MaskMatcher
from toy_data import LABELS, TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli_tools import Run

    Tiny = Callable[..., Path]


@pytest.fixture
def folder(tiny: Tiny, tmp_path: Path) -> Path:
    return MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False).save_pretrained(tmp_path / "model")


@pytest.fixture
def dev(folder: Path, tmp_path: Path) -> Path:
    """Rows with the labels that the classifier predicts."""
    texts = TEXTS * 10
    labels = MaskMatcher.from_pretrained(folder, verbose=False).predict(texts)
    path = tmp_path / "dev.jsonl"
    rows = zip(texts, labels, strict=True)
    path.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows))
    return path


def test_the_probability_is_chosen_and_saved(run: Run, folder: Path, dev: Path) -> None:
    before = (folder / "maskmatch.json").read_bytes()
    found = json.loads(run("abstain", folder, dev, "--right", "0.9", "--dry-run", "--json").out)
    assert (folder / "maskmatch.json").read_bytes() == before
    result = run("abstain", folder, dev, "--right", "0.9")
    assert result.code == 0, result.err
    assert "It answers from a probability of" in result.out
    assert MaskMatcher.from_pretrained(folder).config.abstain == found["threshold"]


def test_answers_below_are_null_or_have_a_name(run: Run, folder: Path) -> None:
    text = ("--text", "money back please")
    assert json.loads(run("predict", folder, *text).out)["label"] in LABELS
    answer = json.loads(run("predict", folder, *text, "--abstain", "1").out)
    assert answer["label"] is None
    assert answer["top_k"][0]["label"] in LABELS
    assert json.loads(run("predict", folder, *text, "--abstain", "1", "--none-label", "other").out)["label"] == "other"
    names = ("--labels", ", ".join(LABELS), "--model", folder)
    assert json.loads(run("classify", *text, *names, "--abstain", "1").out)["label"] is None


def test_the_report_names_coverage(run: Run, folder: Path, dev: Path) -> None:
    report = json.loads(run("evaluate", folder, dev, "--abstain", "0.4", "--json").out)
    assert report["abstain"] == 0.4
    assert report["risk_coverage"][-1]["coverage"] == 1.0


def test_wrong_usage(run: Run, folder: Path, dev: Path, tmp_path: Path) -> None:
    assert run("abstain", folder, dev, "--right", "1.5").code == 2
    assert run("predict", folder, "--text", "a", "--abstain", "2").code == 2
    result = run("abstain", tmp_path / "none", dev)
    assert result.code == 1
    assert "Traceback" not in result.err
    result = run("abstain", folder, dev, "--right", "0.999")
    assert result.code == 1
    assert "no threshold can be shown to be right in 99.9%" in result.err
