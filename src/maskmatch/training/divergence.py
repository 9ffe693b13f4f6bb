"""Divergence: whether training left finite weights, and whether the loss rose."""

from __future__ import annotations

import logging
import math
from itertools import pairwise
from typing import TYPE_CHECKING

from maskmatch.errors import TrainingDivergedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import nn
    from transformers import TrainerState, TrainingArguments

logger = logging.getLogger("maskmatch")

LOSS_RISE = 0.1
"""Warn if the mean loss of the second half of a run is above that of the first by more than this."""

MIN_STEPS = 10
"""In fewer steps a rise means nothing: each step has other texts."""


def all_finite(model: nn.Module) -> bool:
    """Whether no weight is NaN or inf."""
    return all(bool(parameter.isfinite().all()) for parameter in model.parameters())


def check_learned(model: nn.Module, args: TrainingArguments, state: TrainerState, stages: Sequence[int] = ()) -> None:
    """Raise if weights are NaN or inf, and warn if the loss rose.

    Args:
        model: The trained model.
        args: The settings of the run.
        state: The state of the run, with its losses.
        stages: The steps at which another loss begins: losses are compared within a stage.
    """
    lower = f"choose a learning rate below {args.learning_rate:g}"
    losses = [entry["loss"] for entry in state.log_history if "loss" in entry]
    ended_well = args.load_best_model_at_end or all(map(math.isfinite, losses[-1:]))
    if not ended_well or not all_finite(model):
        checkpoints = "" if args.save_only_model or args.save_strategy == "no" else ", and other checkpoints"
        raise TrainingDivergedError(
            f"Training diverged: its loss or weights are NaN or inf, so the classifier cannot be used; {lower}"
            f"{checkpoints}."
        )
    if args.load_best_model_at_end:
        if not all(map(math.isfinite, losses)):
            logger.warning("Training diverged; the best checkpoint on dev from before is used; %s.", lower)
        return
    history = [(entry["step"], entry["loss"]) for entry in state.log_history if "loss" in entry]
    bounds = [0, *stages, state.global_step]
    for start, end in pairwise(bounds):
        own = [loss for step, loss in history if start < step <= end]
        half = len(own) // 2
        if not half or end - start < MIN_STEPS:
            continue
        first, last = (sum(part) / len(part) for part in (own[:half], own[half:]))
        if last > first + LOSS_RISE:
            logger.warning("The loss rose in training, from %.2f to %.2f on average; %s.", first, last, lower)
