"""Whether training has left weights that are numbers, and has learned."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

from maskmatch.errors import TrainingDivergedError

if TYPE_CHECKING:
    from torch import nn
    from transformers import TrainerState, TrainingArguments

logger = logging.getLogger("maskmatch")

LOSS_RISE = 0.1
"""By how much the mean loss of the second half of a run has to be above that of the first to be told of."""

LEAST_STEPS = 10
"""With fewer steps a rise says nothing: each of them has texts of its own."""


def holds_numbers(model: nn.Module) -> bool:
    """Whether all weights are numbers."""
    return all(bool(parameter.isfinite().all()) for parameter in model.parameters())


def check_learned(model: nn.Module, args: TrainingArguments, state: TrainerState) -> None:
    """Refuse weights that are no numbers any more, and tell of a loss that rose."""
    lower = f"choose a learning rate below {args.learning_rate:g}"
    losses = [entry["loss"] for entry in state.log_history if "loss" in entry]
    ended_well = args.load_best_model_at_end or all(map(math.isfinite, losses[-1:]))
    if not ended_well or not holds_numbers(model):
        checkpoints = "" if args.save_only_model or args.save_strategy == "no" else ", and other checkpoints"
        raise TrainingDivergedError(
            f"Training diverged: its loss or weights are no numbers any more, so nothing can be read with them; {lower}"
            f"{checkpoints}."
        )
    if args.load_best_model_at_end:
        if not all(map(math.isfinite, losses)):
            logger.warning("Training diverged, and weights from before that were kept, by the dev data; %s.", lower)
        return
    half = len(losses) // 2
    if half and state.global_step >= LEAST_STEPS:
        first, last = (sum(part) / len(part) for part in (losses[:half], losses[half:]))
        if last > first + LOSS_RISE:
            logger.warning("The loss rose in training, from %.2f to %.2f on average; %s.", first, last, lower)
