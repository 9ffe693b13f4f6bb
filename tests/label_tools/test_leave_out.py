"""Leave labels out of training, add them, and evaluate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from maskmatch import MaskMatcher, MaskMatchError, leave_labels_out
from maskmatch.config.training import TrainingConfig
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli_tools import Run

    Tiny = Callable[..., Path]

QUICK = TrainingConfig(epochs=1, calibrate=False)


def test_seen_and_unseen_labels_are_told_apart(tiny: Tiny) -> None:
    rows = TEXTS, TRUTH
    found = leave_labels_out(
        rows, rows, model=tiny("bert"), share=0.34, draws=2, reference=True, training=QUICK, verbose=False
    )
    assert len(found.draws) == 2
    for draw in found.draws:
        (left,) = draw.left_out
        assert left in LABELS
        matcher = MaskMatcher.from_pretrained(tiny("bert"), [name for name in LABELS if name != left], verbose=False)
        kept = [(text, label) for text, label in zip(TEXTS, TRUTH, strict=True) if label != left]
        seed = found.draws.index(draw)
        matcher.fit([text for text, _ in kept], [label for _, label in kept], training=QUICK, seed=seed)
        matcher.add_labels([left])
        guesses = matcher.predict(TEXTS)
        by_hand = [guess == true for guess, true in zip(guesses, TRUTH, strict=True) if true == left]
        assert draw.unseen == pytest.approx(sum(by_hand) / len(by_hand), abs=1e-4)
        assert 0 <= draw.harmonic_mean <= 1
        assert draw.all_trained is not None
    assert "labels left out" in str(found)
    assert found.to_dict()["draws"][0]["left_out"]


def test_errors(tiny: Tiny, tmp_path: Path) -> None:
    rows = TEXTS, TRUTH
    with pytest.raises(MaskMatchError, match="between 0 and 1"):
        leave_labels_out(rows, rows, model=tiny("bert"), share=1.5)
    with pytest.raises(MaskMatchError, match="two must stay"):
        leave_labels_out(rows, rows, model=tiny("bert"), share=0.8)
    with pytest.raises(MaskMatchError, match="learns its labels"):
        leave_labels_out(rows, rows, model=tiny("bert"), method="fine-tuning")
    trained = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False).fit(TEXTS, TRUTH, training=QUICK)
    folder = trained.save_pretrained(tmp_path / "model")
    with pytest.raises(MaskMatchError, match="was trained with all of its labels"):
        leave_labels_out(rows, rows, model=folder)


def test_the_command(run: Run, tiny: Tiny, tmp_path: Path) -> None:
    data = tmp_path / "rows.jsonl"
    rows = zip(TEXTS, TRUTH, strict=True)
    data.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows))
    names = ", ".join(LABELS)
    how = ("--leave-labels-out", "0.34", "--train", data, "--draws", "1", "--model", tiny("bert"), "--shots", "2")
    result = run("evaluate", names, data, *how, "--json")
    assert result.code == 0, result.err
    assert len(json.loads(result.out)["draws"]) == 1
    assert run("evaluate", names, data, "--leave-labels-out", "0.3", "--model", tiny("bert")).code == 2
    assert run("evaluate", names, data, *how[2:]).code == 2
    assert run("evaluate", names, data, "--leave-labels-out", "7", *how[2:]).code == 2


def test_names_alone_are_evaluated(run: Run, tiny: Tiny, tmp_path: Path) -> None:
    data = tmp_path / "rows.jsonl"
    rows = zip(TEXTS, TRUTH, strict=True)
    data.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows))
    report = json.loads(run("evaluate", ", ".join(LABELS), data, "--model", tiny("bert"), "--json").out)
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
    assert report["accuracy"] == pytest.approx(matcher.evaluate(TEXTS, TRUTH).accuracy)
    missing = run("evaluate", tmp_path / "nothing", data)
    assert missing.code == 1
    assert "There is no folder" in missing.err
