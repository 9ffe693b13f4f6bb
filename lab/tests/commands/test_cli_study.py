"""``maskmatch study``: what it lists, runs, writes and refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cli_tools import Run, Tiny, fails, is_wrong_usage
from comparison_tools import all_splits
from maskmatch_lab.studies import STUDIES

if TYPE_CHECKING:
    from pathlib import Path


def test_the_list(run: Run) -> None:
    result = run("study", "--list")
    assert result.code == 0
    assert [line.split("\t")[0] for line in result.out.splitlines()] == ["study", *STUDIES]
    listed = json.loads(run("study", "--list", "--json").out)
    assert [each["name"] for each in listed] == list(STUDIES)
    assert all(each["question"].endswith("?") and each["cut"] for each in listed)


def test_a_quick_run_says_its_conclusion(run: Run, tiny: Tiny, tmp_path: Path) -> None:
    all_splits(tmp_path / "data" / "shop")
    how = ["--data", tmp_path / "data", "--datasets", "shop:intent", "--model", tiny("bert"), "--quick"]
    result = run("study", "label-readout", *how, "-o", tmp_path / "out")
    assert result.code == 0, result
    assert result.out.startswith("Is the mask the best read-out of a label")
    assert "* This was a quick run" in result.out
    assert "ran shop, text mask, label mask, zero-shot, seed 0" in result.err
    written = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert written["command"].startswith("maskmatch study label-readout")
    assert (tmp_path / "out" / "conclusion.txt").read_text(encoding="utf-8") == result.out
    again = run("study", "label-readout", *how, "-o", tmp_path / "out", "--json")
    assert json.loads(again.out)["conclusion"] == written["conclusion"]
    assert " ran " not in again.err


def test_what_is_refused(run: Run, tmp_path: Path) -> None:
    is_wrong_usage(run("study"), "name a study")
    is_wrong_usage(run("study", "prompts", "--data", tmp_path), "--output")
    fails(run("study", "unheard-of", "--data", tmp_path, "-o", tmp_path / "out"), "no study 'unheard-of'", "prompts")
    how = ["--data", tmp_path, "-o", tmp_path / "out", "--datasets"]
    fails(run("study", "prompts", *how, "shop"), "has no dataset 'shop'", "NAME:TASK")
    fails(run("study", "prompts", *how, "shop:intent"), "There is no dataset 'shop'")
    fails(run("study", "prompts", *how, "trec50@10"), "There is no dataset 'trec50'")
    (tmp_path / "maskmatch.json").write_text("{}")
    fails(run("study", "prompts", "--data", tmp_path, "-o", tmp_path), "holds a classifier")
