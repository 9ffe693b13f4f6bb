"""Training that leaves no numbers, or a loss that rises: what is refused, what is kept, what is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from torch import nn
from transformers import TrainerCallback, TrainerState, TrainingArguments

from maskmatch import MaskMatcher
from maskmatch.errors import TrainingDivergedError
from maskmatch.training.divergence import check_learned
from toy_data import FAST, LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Tiny = Callable[..., Path]

SHORT = {"learning_rate": 1e-2, "batch_size": 4, "epochs": 4}  # 12 steps
WILD = {**SHORT, "learning_rate": 1e30}


@pytest.mark.parametrize("method", ["mask-matching", "fine-tuning"])
def test_weights_that_are_no_numbers_are_refused(tiny: Tiny, method: str, tmp_path: Path) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method=method).fit(TEXTS, TRUTH, **SHORT)
    with pytest.raises(TrainingDivergedError, match=r"choose a learning rate below 1e\+30\.$"):
        matcher.fit(TEXTS, TRUTH, **WILD)
    for call in (lambda: matcher.predict(TEXTS), lambda: matcher.save_pretrained(tmp_path / "model")):
        with pytest.raises(TrainingDivergedError, match="load it anew"):
            call()
    assert not (tmp_path / "model").exists()


def test_the_rate_is_the_one_that_was_used_and_checkpoints_are_named(tiny: Tiny, tmp_path: Path) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    with pytest.raises(TrainingDivergedError, match=r"below 1e\+25, and other checkpoints"):
        matcher.fit(TEXTS, TRUTH, checkpoints=tmp_path, arguments={"learning_rate": 1e25}, **SHORT)


@pytest.mark.parametrize("several", [False, True])
def test_weights_from_before_are_kept_by_dev_data(tiny: Tiny, several: bool, caplog: pytest.LogCaptureFixture) -> None:
    class RunAway(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, optimizer: Any = None, **_: Any) -> None:
            for group in optimizer.param_groups if state.global_step > 6 else ():
                group["lr"] = 1e30

    truth = [[label] for label in TRUTH] if several else TRUTH
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    matcher.fit(TEXTS, truth, dev=(TEXTS, truth), callbacks=[RunAway()], **SHORT)
    assert "the best checkpoint on dev from before is used" in caplog.text
    assert np.isfinite(matcher.predict_proba(TEXTS)).all()
    assert matcher.training_ is not None
    assert matcher.training_.dev is not None
    assert matcher.training_.dev["score"] > 0


def test_a_loss_that_rose_is_told(tiny: Tiny, caplog: pytest.LogCaptureFixture) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, TRUTH, **FAST)
    matcher.fit(TEXTS, TRUTH, **SHORT)  # there is nothing more to learn, so it may go up and down
    assert not caplog.records
    wild = {**SHORT, "learning_rate": 5.0}
    MaskMatcher.from_pretrained(tiny("bert"), LABELS, similarity="dot").fit(TEXTS, TRUTH, **wild)
    assert "The loss rose in training" in caplog.text
    assert "choose a learning rate below 5." in caplog.text


def test_numbers_that_overflow_when_they_are_read_are_refused_too(tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    with pytest.raises(TrainingDivergedError, match="loss or weights"):
        matcher.fit(TEXTS, TRUTH, **{**SHORT, "learning_rate": 1e18})


def test_a_run_that_logs_nothing_is_no_run_whose_loss_rose(tiny: Tiny, caplog: pytest.LogCaptureFixture) -> None:
    for arguments in ({"logging_strategy": "no"}, {"logging_steps": 500}):
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        matcher.fit(TEXTS, TRUTH, arguments=arguments, **SHORT)
        assert matcher.training_ is not None
    assert not caplog.records


@pytest.mark.parametrize(("stages", "told"), [((), True), ((20,), False), ((10,), True)])
def test_losses_are_compared_within_a_stage(stages: Any, told: bool, caplog: pytest.LogCaptureFixture) -> None:
    """The loss of the second stage is higher, but falls."""
    losses = [1.0 - step / 100 for step in range(20)] + [5.0 - step / 100 for step in range(20)]
    state = TrainerState(log_history=[{"step": step + 1, "loss": loss} for step, loss in enumerate(losses)])
    state.global_step = len(losses)
    check_learned(nn.Linear(1, 1), TrainingArguments("unused"), state, stages)
    assert ("The loss rose" in caplog.text) == told
