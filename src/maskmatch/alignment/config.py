"""The settings of an alignment."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class AlignmentConfig:
    """How to align.

    Args:
        steps: Steps in which mask states are pulled to the frozen encoder's own vectors; they need no labels.
        matching_steps: Steps that also match texts with the names of their labels, where label sets are given.
        rank: The rank of what is added to each matrix of the encoder.
        learning_rate: The peak learning rate; it rises over the first tenth and falls to zero.
        draws: How many draws make a step. A draw is some texts and names, or some texts and names of one label set.
        texts: Texts a draw.
        names: Names a draw; of a label set, at most as many labels.
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
    texts: int = 10
    names: int = 14
    anchor: float = 1.0
    seed: int = 0
    checkpoints: str | Path | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        for name in ("steps", "rank", "draws", "texts", "names"):
            least = 2 if name in ("texts", "names") else 1
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise MaskMatchError(f"{name} is {value!r}; it has to be a whole number of at least {least}.")

    @property
    def recipe(self) -> dict[str, Any]:
        """What the result hangs on, besides the data."""
        return {name: value for name, value in asdict(self).items() if name not in ("checkpoints", "resume")}
