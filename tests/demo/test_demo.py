"""The demo: its questions, and a run on a tiny encoder."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from maskmatch import MaskMatcher, MaskMatchError, load_examples
from maskmatch.cli import main
from maskmatch.demo import NEW_LABEL, demo_rows, run_demo


class TestQuestions:
    def test_twenty_intents_with_eight_and_five_questions(self) -> None:
        train, test = demo_rows("train"), demo_rows("test")
        intents = set(train.labels or ())
        assert len(intents) == 20
        assert Counter(train.labels) == dict.fromkeys(intents, 8)
        assert Counter(test.labels) == dict.fromkeys(intents, 5)

    def test_the_new_label_is_not_in_the_training_data(self) -> None:
        unseen = demo_rows("new_label")
        assert set(unseen.labels or ()) == set(NEW_LABEL)
        assert set(NEW_LABEL).isdisjoint(demo_rows("train").labels or ())

    def test_no_question_appears_twice(self) -> None:
        rows = [*demo_rows("train").texts, *demo_rows("test").texts, *demo_rows("new_label").texts]
        plain = ["".join(filter(str.isalnum, str(text).casefold())) for text in rows]
        assert len(set(plain)) == len(rows) == 265


@pytest.fixture
def on_tiny(tiny_default: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the embedded encoder by a tiny one, and train for one epoch."""
    fit = MaskMatcher.fit

    def short(*arguments: Any, **options: Any) -> MaskMatcher:
        return fit(*arguments, **{"epochs": 1, **options})

    monkeypatch.setattr(MaskMatcher, "fit", short)


@pytest.mark.usefixtures("on_tiny")
class TestRun:
    def test_progress_lines_and_files(self, tmp_path: Path) -> None:
        lines: list[str] = []
        result = run_demo(tmp_path / "demo", log=lines.append)
        progress = "\n".join(lines)
        for words in (
            "20 intents",
            f"{result.zero_shot:.0%} accuracy on 100 test questions",
            "dapted to all 260 questions, without their labels",
            f"no training: {result.adapted:.0%} accuracy.",
            "Training on 160 questions, 8 per intent",
            f"{result.trained:.0%} accuracy.",
            "'gift vouchers'",
            f"{round(result.new_label * 5)} of 5 questions",
            "maskmatch predict",
        ):
            assert words in progress, words
        matcher = MaskMatcher.from_pretrained(result.model)
        assert len(matcher.labels or ()) == 21
        assert "gift vouchers" in (matcher.labels or ())
        assert "<html" in Path(result.report).read_text(encoding="utf-8")
        assert load_examples(tmp_path / "demo" / "data" / "test.jsonl") == demo_rows("test")

    def test_a_second_run_has_the_same_result_and_replaces_the_first(self, tmp_path: Path) -> None:
        first, again = (run_demo(tmp_path, log=lambda _: None) for _ in range(2))
        assert (again.zero_shot, again.trained) == (first.zero_shot, first.trained)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "model", "report"]

    def test_a_folder_with_other_files_raises_before_the_work(self, tmp_path: Path) -> None:
        (tmp_path / "model").mkdir()
        (tmp_path / "model" / "thesis.tex").write_text("precious")
        lines: list[str] = []
        with pytest.raises(MaskMatchError, match="has other files"):
            run_demo(tmp_path, log=lines.append)
        assert lines == []

    def test_as_a_command(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys, "argv", ["maskmatch", "demo", "-o", str(tmp_path / "demo"), "--json"])
        with pytest.raises(SystemExit) as caught:
            main()
        assert not caught.value.code
        captured = capsys.readouterr()
        assert json.loads(captured.out)["model"] == str(tmp_path / "demo" / "model")
        assert "20 intents" in captured.err
