"""The calibration of the default encoder without training: by method and kind of task."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.labels.calibration import Calibration
from maskmatch.model.encoder import DEFAULT_MODEL

if TYPE_CHECKING:
    from maskmatch.config.matcher import MatcherConfig

FILE = Path(__file__).with_suffix(".json")
"""A table of calibrations by method and task. ``python -m maskmatch_lab.benchmarks.default_calibration`` writes it."""


def default_calibration(source: str, config: MatcherConfig) -> Calibration | None:
    """The calibration of a new classifier; None if the encoder, or what it is used for, was not calibrated.

    Args:
        source: The name of the encoder.
        config: Its settings. Those that change scores must have the values that the table was fitted with.
    """
    usual = config.method.similarity
    task = [config.task.prompt], [config.task.label_prompt]
    same_prompts = task == tuple([each.template for each in part] for part in (config.prompts, config.label_prompts))
    same = config.similarity == usual and config.debias == "none" and not config.multi_label and same_prompts
    if source != DEFAULT_MODEL or not same or config.labels_in_context:
        return None
    row = _table().get(config.method.name, {}).get(config.task.name)
    return None if row is None else Calibration.from_json(row, ())


@cache
def _table() -> dict[str, Any]:
    if not FILE.exists():
        return {}
    table: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))["methods"]
    return table
