"""The progress of a training, as a callback of transformers' Trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

if TYPE_CHECKING:
    from collections.abc import Callable


class _Watcher(TrainerCallback):
    def __init__(self, report: Callable[[float], None]) -> None:
        self._report = report

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._report(state.global_step / max(1, state.max_steps))


def watcher(report: Callable[[float], None]) -> TrainerCallback:
    """A callback that reports which share of the steps is done."""
    return _Watcher(report)
