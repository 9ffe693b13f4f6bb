"""``maskmatch labels diff``."""

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


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    pairs = zip(TEXTS, TRUTH, strict=True)
    path.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in pairs))
    return path


def test_a_classifier_and_other_labels(run: Run, tiny: Tiny, rows: Path, tmp_path: Path) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
    folder = matcher.save_pretrained(tmp_path / "model")
    before = (folder / "maskmatch.json").read_bytes()
    new = ", ".join([*LABELS, "parcel"])
    result = run("labels", "diff", folder, new, rows, "--truth", "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    expected = matcher.preview(TEXTS, TRUTH, add=["parcel"]).to_dict()
    assert found == json.loads(json.dumps(expected))
    assert (folder / "maskmatch.json").read_bytes() == before, "nothing is saved"


def test_names_on_both_sides_and_a_page(run: Run, tiny: Tiny, rows: Path, tmp_path: Path) -> None:
    page = tmp_path / "diff.html"
    old, new = ", ".join(LABELS), ", ".join(LABELS[:2])
    result = run("labels", "diff", old, new, rows, "--model", tiny("bert"), "-o", page)
    assert result.code == 0, result.err
    assert "get another label" in result.out
    assert "accuracy" not in result.out, "the truth was not asked for"
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_what_labels_show_prints_is_read_back(run: Run, tiny: Tiny, rows: Path, tmp_path: Path) -> None:
    folder = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False).save_pretrained(tmp_path / "model")
    listed = tmp_path / "labels.tsv"
    listed.write_text(run("labels", "show", folder).out)
    assert "0 of 12 texts get another label" in run("labels", "diff", folder, listed, rows).out


def test_wrong_usage(run: Run, tiny: Tiny, rows: Path, tmp_path: Path) -> None:
    unlabelled = tmp_path / "texts.txt"
    unlabelled.write_text("no labels here\n")
    for code, arguments in ((1, ["missing.jsonl"]), (2, [rows, "-o", "page.pdf"]), (1, [unlabelled, "--truth"])):
        result = run("labels", "diff", "a, b", "a, c", *arguments, "--model", tiny("bert"))
        assert result.code == code, result.err
        assert "Traceback" not in result.err
