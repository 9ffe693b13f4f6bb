"""What is compared: a method under a name, with whatever settings of classifier and training it differs by."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError
from maskmatch.methods import ANY_TEXT_METHODS, Method, find_method
from maskmatch.settings import added_setting, as_json
from maskmatch.training_config import TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from maskmatch.comparison.label_changes import LabelChange
    from maskmatch.tasks import Task

MATCHER_OPTIONS = ("model", "prompt", "label_prompt", "similarity", "masks", "phrase_join", "max_length", "debias")
OWN_BUSINESS = ("seed", "checkpoints", "resume")
"""Settings of training that the comparison itself decides on."""


@dataclass(frozen=True)
class Variant:
    """One of the things that a comparison compares.

    Args:
        name: What tables call it.
        method: The method, by name or as a Method of your own.
        matcher: Arguments of ``MaskMatcher.from_pretrained`` that it differs by: ``model``, ``prompt``,
            ``label_prompt``, ``similarity``, ``masks``, ``max_length``, ``debias``.
        training: Fields of ``TrainingConfig`` that it differs by.
        epoch_factor: How many times the usual number of epochs it trains.
        labels: What it makes of a dataset's labels; None: it reads them as they are.
    """

    name: str
    method: str | Method = "mask-matching"
    matcher: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    epoch_factor: float = 1.0
    labels: LabelChange | None = added_setting(None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", find_method(self.method))
        if not self.name.strip():
            raise MaskMatchError("A method of the comparison has no name; give each a name of its own.")
        _refuse_unknown(self.name, self.matcher, MATCHER_OPTIONS)
        allowed = [name for name in TrainingConfig.__dataclass_fields__ if name not in OWN_BUSINESS]
        _refuse_unknown(self.name, self.training, allowed)
        if not self.epoch_factor > 0:
            raise MaskMatchError(f"The epoch factor of {self.name!r} is {self.epoch_factor}; it has to be above 0.")
        self.config(1, seed=0)  # refuses wrong values before any work is done

    @classmethod
    def of(cls, value: str | Method | Variant) -> Variant:
        """A method by its name, or as it is."""
        if isinstance(value, Variant):
            return value
        method = find_method(value)
        return cls(method.name, method)

    @property
    def row(self) -> Method:
        """The method's row of the table of methods."""
        assert isinstance(self.method, Method)
        return self.method

    def config(self, texts: int, seed: int, *, moving_labels: int = 0) -> TrainingConfig:
        """How to train, with everything spelled out.

        Args:
            texts: The number of training texts.
            seed: The seed.
            moving_labels: How many labels have training texts that their vectors can move towards; 0 where none can.
        """
        config = TrainingConfig().changed({**self.training, "seed": seed}).resolved(self.row, texts, moving_labels)
        assert config.epochs is not None
        return replace(config, epochs=self.epoch_factor * config.epochs)

    def tuned(self, learning_rate: float, epoch_factor: float) -> Variant:
        """The same with another learning rate and another number of epochs."""
        training = {**self.training, "learning_rate": learning_rate}
        return replace(self, training=training, epoch_factor=epoch_factor)

    def to_json(self) -> dict[str, Any]:
        """All that it is but for its encoder, as plain JSON."""
        changed = {} if self.labels is None else {"labels": self.labels.name}
        return {
            "name": self.name,
            "method": as_json(self.row),
            "matcher": as_json({name: value for name, value in self.matcher.items() if name != "model"}),
            "training": as_json(self.training),
            "epoch_factor": self.epoch_factor,
            **changed,
        }


def usual_methods(tasks: Sequence[Task]) -> list[str]:
    """The methods that suit the texts of every task, and the one that all of these tasks have as their own."""
    own = {task.method for task in tasks}
    return list(dict.fromkeys([*ANY_TEXT_METHODS, *(own if len(own) == 1 else ())]))


def variants_of(methods: Sequence[str | Method | Variant]) -> list[Variant]:
    """What to compare, each under a name of its own."""
    variants = [Variant.of(method) for method in methods]
    if not variants:
        raise MaskMatchError("There is no method to compare; name at least one, such as mask-matching.")
    names = [variant.name for variant in variants]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise MaskMatchError(f"The method {twice!r} is named twice; name each once.")
    return variants


def _refuse_unknown(name: str, options: Mapping[str, Any], allowed: Sequence[str]) -> None:
    unknown = [option for option in options if option not in allowed]
    if unknown:
        raise MaskMatchError(f"{name!r} cannot differ by {unknown[0]!r}; it can by {', '.join(allowed)}.")
