"""The settings of an alignment."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError
from maskmatch.training_config import TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LEAST = {"steps": 1, "matching_steps": 0, "rank": 1, "draws": 1, "texts_a_draw": 2, "names_a_draw": 2}
"""How much of something there has to be."""


@dataclass(frozen=True)
class AlignmentConfig:
    """How to align.

    Args:
        steps: Steps in which mask states are pulled to the frozen encoder's own vectors; they need no labels.
        matching_steps: Steps that also match texts with the names of their labels, where label sets are given.
        rank: The rank of what is added to each matrix of the encoder.
        learning_rate: The peak learning rate; it rises over the first tenth and falls to zero.
        draws: How many draws make a step. A draw is some texts and names, or some texts and names of one label set.
        texts_a_draw: How many texts a draw holds.
        names_a_draw: How many names; of a label set, at most as many labels.
        anchor: How much the frozen encoder's vectors count beside the matching of names.
        seed: Same seed, same result.
        checkpoints: A folder for checkpoints, ten a run, to resume from.
        resume: Go on from the last checkpoint in that folder.
    """

    steps: int = 150
    matching_steps: int = 350
    rank: int = 16
    learning_rate: float = 1e-3
    draws: int = 3
    texts_a_draw: int = 12
    names_a_draw: int = 20
    anchor: float = 3.0
    seed: int = 0
    checkpoints: str | Path | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise MaskMatchError(f"{name} is {value!r}; it has to be a whole number of at least {least}.")
            object.__setattr__(self, name, int(value))
        anchor: Any = self.anchor
        if not isinstance(anchor, Real) or not 0 <= float(anchor) < math.inf:
            raise MaskMatchError(f"anchor is {anchor!r}; it has to be a number from 0 on.")
        if self.learning_rate is None:  # there is no method whose own rate would suit
            raise MaskMatchError("learning_rate is None; it has to be a number above 0.")
        checked = self.training()
        for name in ("learning_rate", "seed"):
            object.__setattr__(self, name, getattr(checked, name))

    def changed(self, options: Mapping[str, Any]) -> AlignmentConfig:
        """The same settings but for those that are given."""
        unknown = set(options) - set(self.__dataclass_fields__)
        if unknown:
            raise MaskMatchError(
                f"align takes no {', '.join(sorted(unknown))}; it takes {', '.join(self.__dataclass_fields__)}."
            )
        return replace(self, **options)

    def training(self) -> TrainingConfig:
        """The settings of the training loop, which checks those that it shares."""
        return TrainingConfig(
            epochs=1,
            batch_size=1,
            learning_rate=self.learning_rate,
            weight_decay=0.0,
            seed=self.seed,
            checkpoints=self.checkpoints,
            resume=self.resume,
            arguments={"gradient_accumulation_steps": self.draws, "train_sampling_strategy": "sequential"},
        )

    @property
    def recipe(self) -> dict[str, Any]:
        """What the result hangs on, besides the data."""
        return {name: value for name, value in asdict(self).items() if name not in ("checkpoints", "resume")}
