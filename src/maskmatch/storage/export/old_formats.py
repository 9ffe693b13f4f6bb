"""Exports of formats up to 6: their label vectors are ready to be compared, and so cannot be edited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.labels.layout import LabelLayout
from maskmatch.labels.scope import SCOPE, Scope
from maskmatch.prediction.label_scorer import LabelScorer
from maskmatch.prediction.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.labels import LabelSet
    from maskmatch.labels.calibration import Calibration
    from maskmatch.prediction.pipeline import Runtime
    from maskmatch.prompts import PromptTokenizer

FIXED = "This export was made by an earlier version, which did not read labels"
"""Why labels of these exports cannot be edited."""


def old_pipeline(
    config: MatcherConfig,
    tokenizer: PromptTokenizer,
    labels: LabelSet,
    runtime: Runtime,
    *,
    arrays: Mapping[str, NDArray[Any]],
    numbers: Mapping[str, Any],
    calibration: Calibration | None,
) -> Pipeline:
    """The pipeline of an export of an older format; LookupError, TypeError or ValueError if it is damaged."""
    scale, offset = numbers["scale"], numbers["offset"]
    untrained = numbers.get("untrained", offset == config.similarity.row.offset)  # exports of format 1 and 2
    scorer = LabelScorer(
        arrays["vectors"],
        LabelLayout(arrays["present"].sum(axis=1)),
        config.similarity,
        scale,
        offset,
        untrained,
        config.labels_in_context,
        arrays.get("origin"),
        arrays.get("neighbours"),
        arrays.get("bias"),
    )
    if len(scorer) != len(labels) or scorer.vectors.shape[int(scorer.in_context)] != scorer.layout.size:
        raise MaskMatchError("it does not hold the vectors of the labels.")
    spread = {name.removeprefix(SCOPE): each for name, each in arrays.items() if name.startswith(SCOPE)}
    background = arrays.get("background")
    names = None if background is None else background.astype(np.float32)
    return Pipeline(
        config,
        tokenizer,
        labels,
        scorer,
        runtime,
        runtime if config.labels_in_context else None,
        calibration=calibration,
        scope=Scope.from_arrays(spread) if spread else None,
        background=None if names is None else lambda: names,
    )
