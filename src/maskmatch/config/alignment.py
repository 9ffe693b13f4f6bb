"""The settings of an alignment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskmatch.config.settings import Settings, setting
from maskmatch.config.training import TrainingConfig


@dataclass(frozen=True)
class AlignmentConfig(Settings):
    """How to align."""

    steps: int = setting(
        150, at_least=1, help="Steps without labels: mask states are pulled to the vectors of the frozen encoder."
    )
    matching_steps: int = setting(
        350, at_least=0, help="Steps that also match texts with the names of their labels, if label sets are given."
    )
    rank: int = setting(16, at_least=1, help="The rank of the adapter's matrices.")
    learning_rate: float = setting(
        1e-3, above=0, help="The peak learning rate, after a warm-up of a tenth and before a linear decay to zero."
    )
    draws: int = setting(
        3, at_least=1, help="Draws per step. A draw is some texts and names, or texts and names of one label set."
    )
    texts_a_draw: int = setting(12, at_least=2, help="Texts per draw.")
    names_a_draw: int = setting(20, at_least=2, help="Names per draw; of a label set, at most as many labels.")
    anchor: float = setting(
        3.0, at_least=0, help="Weight of the frozen encoder's vectors beside the matching of names."
    )
    seed: int = setting(0, at_least=0, below=2**32, help="Same seed, same result.")
    checkpoints: Path | str | None = setting(
        None, given=Path | None, identity=False, help="A folder for checkpoints, ten per run, to resume from."
    )
    resume: bool = setting(False, identity=False, help="Resume from the last checkpoint.")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.training()

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
        """What the result depends on, besides the data."""
        return self.identity()
