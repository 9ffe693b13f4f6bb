"""The comparison of Ray's answers with those of one process finds what differs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from maskmatch_lab.benchmarks.ray import compare

if TYPE_CHECKING:
    from pathlib import Path


def answer(row: int, label: str, probability: float) -> dict[str, Any]:
    return {"row": row, "label": label, "top_k": [{"label": label, "probability": probability}]}


def written(folder: Path, mine: list[dict[str, Any]], expected: list[dict[str, Any]]) -> dict[str, Any]:
    (folder / "answers").mkdir()
    pq.write_table(pa.Table.from_pylist([{**row, "error": None} for row in mine]), folder / "answers" / "a.parquet")
    (folder / "expected.jsonl").write_text("\n".join(map(json.dumps, expected)))
    return compare(folder / "answers", folder / "expected.jsonl")


def test_the_same_answers_in_another_order(tmp_path: Path) -> None:
    rows = [answer(0, "a", 0.5), answer(1, "b", 0.75)]
    found = written(tmp_path, rows[::-1], rows)
    assert found["every_row_once"]
    assert (found["same_label"], found["same_answer"], found["largest_difference"]) == (2, 2, 0.0)


def test_a_row_twice_and_another_answer(tmp_path: Path) -> None:
    mine = [answer(0, "a", 0.5), answer(0, "a", 0.5), answer(1, "a", 0.5)]
    found = written(tmp_path, mine, [answer(0, "a", 0.5), answer(1, "b", 0.75)])
    assert not found["every_row_once"]
    assert (found["same_label"], found["same_answer"], found["largest_difference"]) == (1, 1, 0.25)
