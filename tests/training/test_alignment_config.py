"""The settings of an alignment, and its model card."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from maskmatch.config.training import TrainingSummary
from maskmatch.errors import MaskMatchError
from maskmatch.model.adapter import Adapter
from maskmatch.training.alignment import AlignmentConfig
from maskmatch.training.alignment.card import alignment_card


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("steps", [0, -1, 1.5, "3", None, True]),
        ("matching_steps", [-1, 0.5, "3", None]),
        ("rank", [0, 2.0, "16"]),
        ("draws", [0, None]),
        ("texts_a_draw", [1, "10"]),
        ("names_a_draw", [1, 1.5]),
        ("learning_rate", [0, -1e-3, float("nan"), float("inf"), "fast", None]),
        ("anchor", [-0.1, float("nan"), float("inf"), "x", None]),
        ("seed", [-1, 2**32, 0.5, "x", None]),
    ],
)
def test_invalid_settings_raise(name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(MaskMatchError, match=f"^{name} is "):
            AlignmentConfig(**{name: value})


def test_resuming_needs_checkpoints() -> None:
    with pytest.raises(MaskMatchError, match="name the folder of the checkpoints"):
        AlignmentConfig(resume=True)


def test_numpy_numbers_become_python_numbers() -> None:
    given = {"steps": np.int64(5), "learning_rate": np.float32(0.5), "seed": np.int64(3)}
    config = AlignmentConfig(**given)  # type: ignore[arg-type]
    assert (config.steps, config.learning_rate, config.seed) == (5, 0.5, 3)
    assert {type(config.steps), type(config.seed)} == {int}
    assert config == AlignmentConfig(steps=5, learning_rate=0.5, seed=3)


def test_changed_settings_and_unknown_ones() -> None:
    config = AlignmentConfig(steps=5).changed({"rank": 2})
    assert (config.steps, config.rank) == (5, 2)
    with pytest.raises(MaskMatchError, match="no setting 'speed'"):
        config.changed({"speed": 3, "epochs": 1})


def test_the_recipe_has_all_settings_that_the_result_depends_on() -> None:
    config = AlignmentConfig(steps=5, checkpoints="folder")
    assert AlignmentConfig(**config.recipe) == AlignmentConfig(steps=5)
    assert set(AlignmentConfig.__dataclass_fields__) - set(config.recipe) == {"checkpoints", "resume"}


class TestCard:
    def card(self, *sources: str) -> str:
        adapter = Adapter("some/encoder", "digest", {"layer": (torch.zeros(4, 16), torch.zeros(16, 4))})
        training = TrainingSummary(9, 3, steps=7, epochs=1, seconds=12.3, loss=0.5, cut=0, dev=None, config={})
        return alignment_card(adapter, AlignmentConfig(steps=7, rank=4, seed=11), training, sources)

    def test_the_card_names_encoder_data_and_settings(self) -> None:
        card = self.card("the first source", "the second source")
        header, body = card.removeprefix("---\n").split("\n---\n", 1)
        assert "base_model: some/encoder" in header
        assert "library_name: maskmatch" in header
        for words in ("rank 4", "`some/encoder`", "- the first source\n- the second source", "7 steps in 12 seconds"):
            assert words in body
        assert "| seed | 11 |" in body
        assert "| learning rate | 0.001 |" in body

    def test_without_sources_there_is_no_section_for_them(self) -> None:
        assert "Training data" not in self.card()
