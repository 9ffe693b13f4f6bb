"""Settings are declared once: command line, JSON, the identity of a run and the docs follow from the declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from maskmatch import MaskMatchError, TrainingConfig
from maskmatch.cli.groups import Options, SettingsOf, grouped
from maskmatch.config.alignment import AlignmentConfig
from maskmatch.config.matcher import MatcherConfig, classifier_options
from maskmatch.config.methods import Method
from maskmatch.config.settings import Settings, declared, reference_table, setting
from maskmatch.config.similarity import MASK_JOINS, PHRASE_JOINS, SIMILARITIES, SimilarityConfig
from maskmatch.config.tasks import Task

ALL = (TrainingConfig, AlignmentConfig, MatcherConfig, SimilarityConfig, Method, Task)


@dataclass(frozen=True)
class Extended(TrainingConfig):
    """A config with a made-up setting."""

    sparkle: float = setting(0.25, above=0, help="How much it sparkles.")


def run_with_options(config: type[Settings], *arguments: str) -> tuple[Any, dict[str, Any]]:
    taken: dict[str, Any] = {}

    def command(*, options: Any) -> None:
        taken.update(options)

    command.__annotations__["options"] = Annotated[Options, SettingsOf(lambda: declared(config))]

    app = typer.Typer()
    app.command()(grouped(command))
    return CliRunner().invoke(app, [*arguments]), taken


class TestAMadeUpSetting:
    def test_is_an_option_of_the_command_line(self) -> None:
        result, taken = run_with_options(Extended, "--sparkle", "0.5")
        assert result.exit_code == 0, result.output
        assert taken["sparkle"] == 0.5
        shown = " ".join(run_with_options(Extended, "--help")[0].output.replace("│", " ").split())
        assert "--sparkle" in shown
        assert "How much it sparkles." in shown

    def test_is_in_the_json(self) -> None:
        assert Extended(sparkle=2.0).to_json()["sparkle"] == 2.0

    def test_is_part_of_the_identity_of_a_run(self) -> None:
        assert Extended().identity() != Extended(sparkle=2.0).identity()

    def test_has_a_row_in_the_docs(self) -> None:
        assert "| `sparkle` | a number above 0 | `0.25` | How much it sparkles. |" in reference_table(Extended)

    def test_is_checked(self) -> None:
        with pytest.raises(MaskMatchError, match=r"sparkle is -1; it must be a number above 0\."):
            Extended(sparkle=-1)

    def test_a_typo_gets_a_hint(self) -> None:
        with pytest.raises(MaskMatchError, match=r"no setting 'sparkel'.*Did you mean 'sparkle'"):
            Extended().changed({"sparkel": 1.0})


@pytest.mark.parametrize("config", ALL)
def test_every_field_is_a_declared_setting_with_help(config: type[Settings]) -> None:
    fields = config.__dataclass_fields__  # type: ignore[attr-defined]
    assert [each.field.name for each in declared(config)] == list(fields)
    assert all(len(each.setting.help) > 10 for each in declared(config))


@pytest.mark.parametrize("name", ["head_rate", "weight_decay", "hold", "dropout", "max_tokens", "arguments"])
def test_whatever_changes_the_result_is_part_of_the_identity(name: str) -> None:
    other: Any = {"dropout": False, "arguments": {"adam_beta1": 0.5}, "max_tokens": 7}.get(name, 0.123)
    assert TrainingConfig().identity() != TrainingConfig(**{name: other}).identity()


@pytest.mark.parametrize("name", ["checkpoints", "resume"])
def test_where_checkpoints_are_is_not(name: str) -> None:
    assert name not in TrainingConfig(checkpoints="somewhere", resume=True).identity()


def test_numbers_of_numpy_become_plain() -> None:
    config = TrainingConfig(seed=np.int64(3), learning_rate=np.float32(0.5), dropout=np.bool_(True))
    assert (type(config.seed), type(config.learning_rate), config.dropout) == (int, float, True)


def test_options_of_a_classifier_are_all_settings_of_config_and_similarity() -> None:
    names = [each.name for each in classifier_options()]
    assert (
        len(names) == len(set(names)) == len(list(declared(MatcherConfig))) - 1 + len(list(declared(SimilarityConfig)))
    )
    assert {"task", "prompt", "similarity", "temperature", "phrase_join", "threshold"} <= set(names)


class TestRowsWithATorchAndANumpyFunction:
    """Training and prediction compute the same."""

    @pytest.mark.parametrize("kind", SIMILARITIES)
    def test_similarities(self, kind: str) -> None:
        import torch

        vectors = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
        row = SIMILARITIES[kind]
        found, expected = row.numpy(vectors), row.torch(torch.from_numpy(vectors)).numpy()
        np.testing.assert_allclose(found, expected, atol=1e-6)
        assert row.unit_norm == bool(np.allclose(np.linalg.norm(found, axis=1), 1))

    @pytest.mark.parametrize("join", MASK_JOINS)
    def test_mask_joins(self, join: str) -> None:
        import torch

        vectors = np.random.default_rng(0).normal(size=(5, 2, 7)).astype(np.float32)
        row = MASK_JOINS[join]
        np.testing.assert_allclose(row.numpy(vectors), row.torch(torch.from_numpy(vectors)).numpy(), atol=1e-6)

    @pytest.mark.parametrize("join", PHRASE_JOINS)
    def test_phrase_joins(self, join: str) -> None:
        import torch

        rng = np.random.default_rng(0)
        scores = rng.normal(size=(5, 4, 3)).astype(np.float32)
        present = np.array([[True, True, True], [True, False, False], [True, True, False], [True, True, True]])
        row = PHRASE_JOINS[join]
        expected = row.torch(torch.from_numpy(scores), torch.from_numpy(present)).numpy()
        np.testing.assert_allclose(row.numpy(scores, present), expected, atol=1e-5)
