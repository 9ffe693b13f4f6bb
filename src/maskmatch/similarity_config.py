"""The settings of a similarity, which need no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import get_args

from maskmatch.choices import MaskJoin, PhraseJoin, SimilarityKind
from maskmatch.errors import MaskMatchError
from maskmatch.settings import added_setting

FIRST_OFFSET: dict[SimilarityKind, float] = {"cosine": 0.5, "dot": 0.0}
"""From which similarity on a label applies, before there is anything to tell it by."""

STEEPNESS = 2.0
"""How fast a label's probability rises with its lead, where nothing has been learned yet."""


@dataclass(frozen=True)
class SimilarityConfig:
    """The similarity of two vectors, turned into a score.

    Args:
        kind: ``"dot"``: the raw dot product, as in the paper; ``"cosine"``: the cosine of their angle.
        temperature: What the similarity is divided by before the softmax.
        learn_temperature: Whether training adjusts the temperature.
        phrases: How the scores of a label's several phrases become one.
        masks: How the states at several masks are compared: ``"mean"``: their mean; ``"concat"``: one behind the other,
            so both prompts need the same number of masks; ``"late"``: each mask of the text with that mask of the label
            which suits it best, and the mean over the masks of the text.
    """

    kind: SimilarityKind = "cosine"
    temperature: float = 0.05
    learn_temperature: bool = False
    phrases: PhraseJoin = "mean"
    masks: MaskJoin = added_setting("mean")

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("similarity", self.kind, get_args(SimilarityKind)),
            ("join of phrases", self.phrases, get_args(PhraseJoin)),
            ("join of masks", self.masks, get_args(MaskJoin)),
        ):
            if value not in choices:
                raise MaskMatchError(f"There is no {name} {value!r}; choose one of {', '.join(choices)}.")
        if not (isinstance(self.temperature, (int, float)) and 0 < self.temperature < math.inf):
            raise MaskMatchError(f"The temperature is {self.temperature!r}; it has to be a number above 0.")

    @classmethod
    def of(cls, similarity: SimilarityKind | SimilarityConfig) -> SimilarityConfig:
        """A config from a kind alone: a dot product is not tempered, a cosine has its usual temperature."""
        if isinstance(similarity, SimilarityConfig):
            return similarity
        return cls(kind=similarity, temperature=1.0 if similarity == "dot" else 0.05)
