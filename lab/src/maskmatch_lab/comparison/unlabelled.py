"""Unlabelled texts that a variant learns from."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Unlabelled:
    """How a variant learns from unlabelled texts. They are drawn by the seed from the dataset's unlabelled texts.

    Args:
        texts: How many; all if there are fewer.
        force: Whether to adapt even if the texts do not speak for it.
        self_training: Whether to train on confident texts, too.
    """

    texts: int
    force: bool = False
    self_training: bool = False

    def __post_init__(self) -> None:
        if self.texts < 1:
            raise MaskMatchError(f"The number of unlabelled texts is {self.texts}; it must be 1 or more.")

    def draw(self, pool: Sequence[Any], seed: int) -> list[Any]:
        """The texts of a cell."""
        drawn = random.Random(seed).sample(range(len(pool)), min(self.texts, len(pool)))
        return [pool[place] for place in drawn]
