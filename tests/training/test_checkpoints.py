"""Checkpoints: what a crash, a damaged file or a full disk leaves behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from maskmatch import MaskMatcher, MaskMatchError
from maskmatch.training.checkpoints import SEAL_FILE
from toy_data import LABELS, TEXTS, TRUTH

Tiny = Callable[..., Path]

SHORT = {"learning_rate": 1e-2, "batch_size": 4, "epochs": 4}  # 12 steps


def same_weights(one: MaskMatcher, other: MaskMatcher) -> bool:
    left, right = (matcher.model.state_dict() for matcher in (one, other))
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize(
    "part", ["optimizer.pt", "scheduler.pt", "trainer_state.json", "rng_state.pth", "model.safetensors", "seal"]
)
def test_a_damaged_checkpoint_is_skipped(
    tiny: Tiny, tmp_path: Path, part: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, TRUTH, checkpoints=tmp_path, **SHORT)
    newest = max(tmp_path.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    damaged = newest / (SEAL_FILE if part == "seal" else part)
    damaged.write_bytes(damaged.read_bytes()[:-20])
    again = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    again.fit(TEXTS, TRUTH, checkpoints=tmp_path, resume=True, **SHORT)
    assert f"{newest.name} is incomplete or damaged" in caplog.text
    assert same_weights(first, again)


def test_a_run_that_was_killed_in_its_first_checkpoint_starts_again(tiny: Tiny, tmp_path: Path) -> None:
    whole = MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, TRUTH, checkpoints=tmp_path / "whole", **SHORT)
    for resume in (False, True):
        folder = tmp_path / str(resume)
        folder.mkdir()
        shutil.copy(tmp_path / "whole" / "maskmatch-run.json", folder)
        (folder / "checkpoint-2").mkdir()
        (folder / "checkpoint-2" / "model.safetensors").write_bytes(b"half")
        again = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        again.fit(TEXTS, TRUTH, checkpoints=folder, resume=resume, **SHORT)
        assert same_weights(whole, again)


def test_a_full_disk_is_a_sentence(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(MaskMatchError, match=r"a checkpoint could not be written.*No space left"):
        MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, TRUTH, checkpoints=tmp_path, **SHORT)
