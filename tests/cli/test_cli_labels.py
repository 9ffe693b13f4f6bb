"""``maskmatch labels``: what is shown, added, renamed and removed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cli_tools import Result, Run, Tiny, fails, is_wrong_usage
from maskmatch import MaskMatcher
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from pathlib import Path


class TestLabels:
    def ids(self, result: Result) -> list[Any]:
        assert result.code == 0, result.err
        return [label["id"] for label in json.loads(result.out)]

    def test_show(self, run: Run, model: Path) -> None:
        table = run("labels", "show", model).out.splitlines()
        assert table[0].split("\t") == ["label", "reads", "description", "phrases", "words", "examples"]
        assert [row.split("\t")[0] for row in table[1:]] == sorted(LABELS)
        assert self.ids(run("labels", "show", model, "--json")) == sorted(LABELS)

    def test_add_rename_remove(self, run: Run, own: Path) -> None:
        added = run("labels", "add", own, "chargeback", "--description", "money taken back", "--phrase",
                    "dispute", "--word", "stolen", "--json")  # fmt: skip
        assert json.loads(added.out)[-1] == {
            "id": "chargeback",
            "name": "chargeback",
            "description": "money taken back",
            "phrases": ["dispute"],
            "words": ["stolen"],
        }
        assert len(run("predict", own, "--text", "x", "-k", 9).rows()[0]["top_k"]) == 4
        assert self.ids(run("labels", "add", own, "one", "two", "--json"))[-2:] == ["one", "two"]
        assert self.ids(run("labels", "rename", own, "chargeback", "dispute", "--json")) == ["dispute"]
        assert self.ids(run("labels", "show", own, "--json")) == [*sorted(LABELS), "dispute", "one", "two"]
        gone = self.ids(run("labels", "remove", own, "one", "dispute", "two", "--json"))
        assert gone == ["one", "dispute", "two"]
        assert self.ids(run("labels", "show", own, "--json")) == sorted(LABELS)
        assert [row["label"] for row in run("predict", own, "-", stdin="\n".join(TEXTS)).rows()] == TRUTH

    def test_numbers_are_found(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        MaskMatcher.from_pretrained(tiny("bert"), {3: "refund", 4: "card"}).save_pretrained(tmp_path / "m")
        assert self.ids(run("labels", "rename", tmp_path / "m", "3", "money", "--json")) == [3]
        assert "3\tmoney\t\t\t\t" in run("labels", "show", tmp_path / "m").out.splitlines()
        assert self.ids(run("labels", "remove", tmp_path / "m", "4", "--json")) == [4]

    def test_refusals(self, run: Run, own: Path, tmp_path: Path, tiny: Tiny) -> None:
        before = (own / "maskmatch.json").read_bytes()
        fails(run("labels", "show", tmp_path), "not a saved classifier")
        fails(run("labels", "add", own, "refund"), "There is already a label 'refund'")
        fails(run("labels", "rename", own, LABELS[0], LABELS[1]), f"There is already a label {LABELS[1]!r}")
        fails(run("labels", "rename", own, "parcel", "box"), "'parcel'")
        fails(run("labels", "remove", own, "parcel"), "'parcel'")
        fails(run("labels", "remove", own, *LABELS), "Every label")
        is_wrong_usage(run("labels", "add", own, "a", "b", "--description", "x"), "single name")
        is_wrong_usage(run("labels", "add", own), "Missing argument")
        assert (own / "maskmatch.json").read_bytes() == before
        matrix = MaskMatcher.from_pretrained(tiny("bert"), method="fine-tuning").fit(TEXTS, TRUTH, epochs=1)
        matrix.save_pretrained(tmp_path / "matrix")
        fails(run("labels", "add", tmp_path / "matrix", "parcel"), "fine-tuning")
