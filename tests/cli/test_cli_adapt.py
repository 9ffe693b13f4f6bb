"""``maskmatch adapt``, ``classify --adapt`` and ``train --unlabeled``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from maskmatch import MaskMatcher
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli_tools import Run

    Tiny = Callable[..., Path]

NAMES = ", ".join(LABELS)


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"{text} {number}\n" for number in range(20) for text in TEXTS))
    return path


def test_names_and_texts_become_a_classifier(run: Run, tiny: Tiny, texts: Path, tmp_path: Path) -> None:
    result = run("adapt", NAMES, texts, "-o", tmp_path / "model", "--model", tiny("bert"), "--force")
    assert result.code == 0, result.err
    assert "Adapted to 240 different texts of 240" in result.out
    matcher = MaskMatcher.from_pretrained(tmp_path / "model")
    assert list(matcher.labels or ()) == LABELS
    assert matcher.bank.adaptation is not None


def test_a_saved_classifier_in_its_own_folder(run: Run, tiny: Tiny, texts: Path, tmp_path: Path) -> None:
    folder = MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "model")
    result = run("adapt", folder, texts, "-o", folder, "--force", "--json")
    assert json.loads(result.out)["adapted"] is True
    assert MaskMatcher.from_pretrained(folder).bank.adaptation is not None


def test_another_classifier_is_not_replaced(run: Run, tiny: Tiny, texts: Path, tmp_path: Path) -> None:
    """It may have been trained, and the labels are the same."""
    folder = MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "model")
    before = (folder / "maskmatch.json").read_bytes()
    result = run("adapt", NAMES, texts, "-o", folder, "--model", tiny("bert"))
    assert result.code == 1
    assert "holds a classifier already" in result.err
    assert (folder / "maskmatch.json").read_bytes() == before
    assert run("adapt", NAMES, texts, "-o", folder, "--model", tiny("bert"), "--overwrite").code == 0


def test_dev_rows_decide(run: Run, tiny: Tiny, texts: Path, tmp_path: Path) -> None:
    dev = tmp_path / "dev.jsonl"
    rows = [{"text": text, "label": label} for text, label in zip(TEXTS, TRUTH, strict=True)]
    dev.write_text("\n".join(map(json.dumps, rows)))
    result = run("adapt", NAMES, texts, "-o", tmp_path / "m", "--model", tiny("bert"), "--dev", dev, "--json")
    found = json.loads(result.out)
    assert found["adapted"] == (found["dev"][1] >= found["dev"][0])


def test_classify_learns_from_its_own_texts(run: Run, tiny: Tiny, texts: Path) -> None:
    options = ["--labels", NAMES, texts, "--model", tiny("bert")]
    plain, adapted = (run("classify", *options, *more).out.splitlines() for more in ([], ["--adapt"]))
    assert len(plain) == len(adapted) == 240
    assert plain != adapted


def test_train_with_unlabelled_texts(run: Run, tiny: Tiny, texts: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        "\n".join(json.dumps({"text": text, "label": label}) for text, label in zip(TEXTS, TRUTH, strict=True))
    )
    options = ["--model", tiny("bert"), "--epochs", "1", "--unlabeled", texts, "--json"]
    result = run("train", rows, "-o", tmp_path / "model", *options)
    assert json.loads(result.out)["adaptation"]["texts"] == 240


@pytest.mark.parametrize(
    ("source", "file", "said"),
    [
        (NAMES, "missing.txt", "missing.txt"),
        ("by-text", "texts.txt", "is the only label"),
        (NAMES, "empty.txt", "no rows"),
    ],
)
@pytest.mark.usefixtures("texts")
def test_wrong_input(run: Run, tmp_path: Path, source: str, file: str, said: str) -> None:
    (tmp_path / "empty.txt").write_text("")
    result = run("adapt", source, tmp_path / file, "-o", tmp_path / "model")
    assert result.code == 1
    assert said in result.err
    assert not (tmp_path / "model").exists()


def test_self_training(run: Run, tiny: Tiny, texts: Path, tmp_path: Path) -> None:
    arguments = ("--model", tiny("bert"), "--force", "--self-training", "--json")
    result = run("adapt", NAMES, texts, "-o", tmp_path / "model", *arguments)
    assert result.code == 0, result.err
    found = json.loads(result.out)["self_training"]
    assert found["kept"] is True
    assert found["rounds"] >= 1
    rows = tmp_path / "rows.jsonl"
    pairs = zip(TEXTS, TRUTH, strict=True)
    rows.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in pairs))
    result = run("train", rows, "-o", tmp_path / "trained", "--model", tiny("bert"), "--self-training")
    assert result.code == 2
    assert "needs unlabelled texts" in result.err
