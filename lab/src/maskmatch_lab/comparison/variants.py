"""Variants: a method with a name and with its own settings of the classifier and of training."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from maskmatch.config.methods import ANY_TEXT_METHODS, Method, find_method
from maskmatch.config.training import TrainingConfig
from maskmatch.errors import MaskMatchError
from maskmatch_lab.comparison.baselines import BASELINES, FROZEN
from maskmatch_lab.comparison.cell_key import variant_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from maskmatch.config.tasks import Task
    from maskmatch_lab.comparison.label_changes import LabelChange
    from maskmatch_lab.comparison.unlabelled import Unlabelled

MATCHER_OPTIONS = ("model", "prompt", "label_prompt", "similarity", "masks", "phrase_join", "max_length", "debias")
RESERVED = ("seed", "checkpoints", "resume")
"""Settings of training that the comparison itself sets."""


@dataclass(frozen=True)
class Variant:
    """A method with its settings, as a comparison runs it.

    Args:
        name: Its name in tables.
        method: The method, by name or as a Method of your own.
        matcher: Its own arguments of ``MaskMatcher.from_pretrained``: ``model``, ``prompt``, ``label_prompt``,
            ``similarity``, ``masks``, ``phrase_join``, ``max_length``, ``debias``.
        training: Its own fields of ``TrainingConfig``.
        epoch_factor: A factor of the usual number of epochs.
        labels: Its change of a dataset's labels; None: the labels as they are.
        unlabelled: The unlabelled texts that it learns from, if any.
        baseline: The baseline that it is, instead of the method; see :mod:`maskmatch_lab.comparison.baselines`.
    """

    name: str
    method: str | Method = "mask-matching"
    matcher: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    epoch_factor: float = 1.0
    labels: LabelChange | None = None
    unlabelled: Unlabelled | None = None
    baseline: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", find_method(self.method))
        if not self.name.strip():
            raise MaskMatchError("A method of the comparison has no name; give each a name of its own.")
        _check_names(self.name, self.matcher, MATCHER_OPTIONS)
        allowed = [name for name in TrainingConfig.__dataclass_fields__ if name not in RESERVED]
        _check_names(self.name, self.training, allowed)
        if not self.epoch_factor > 0:
            raise MaskMatchError(f"The epoch factor of {self.name!r} is {self.epoch_factor}; it must be above 0.")
        self.config(1, seed=0)  # raises if a value is wrong, before any work is done

    @classmethod
    def of(cls, value: str | Method | Variant) -> Variant:
        """A variant from the name of a method; a Variant is returned as it is."""
        if isinstance(value, Variant):
            return value
        if isinstance(value, str) and value in BASELINES:
            return cls(value, FROZEN, baseline=value)
        method = find_method(value)
        return cls(method.name, method)

    @property
    def reads_labels(self) -> bool:
        """Whether it can predict labels that it was not trained on."""
        return self.baseline is None and self.row.reads_labels

    @property
    def row(self) -> Method:
        """The method's row of the table of methods."""
        assert isinstance(self.method, Method)
        return self.method

    def config(self, texts: int, seed: int, *, labels_with_centroids: int = 0) -> TrainingConfig:
        """The settings of training, without open ones.

        Args:
            texts: The number of training texts.
            seed: The seed.
            labels_with_centroids: The number of labels whose vectors shift towards their training texts.
        """
        config = (
            TrainingConfig()
            .changed(
                {"calibrate": False, **self.training, "seed": seed}
            )  # it takes as long again, and changes no answer
            .resolved(self.row, texts, labels_with_centroids)
        )
        assert config.epochs is not None
        return replace(config, epochs=self.epoch_factor * config.epochs)

    def tuned(self, learning_rate: float, epoch_factor: float) -> Variant:
        """The variant with another learning rate and another number of epochs."""
        training = {**self.training, "learning_rate": learning_rate}
        return replace(self, training=training, epoch_factor=epoch_factor)

    def to_json(self) -> dict[str, Any]:
        """Everything but the encoder, as plain JSON."""
        return variant_key(self)


def usual_methods(tasks: Sequence[Task]) -> list[str]:
    """The methods that work on texts of every task, and the one that all of these tasks have as their default."""
    own = {task.method for task in tasks}
    return list(dict.fromkeys([*ANY_TEXT_METHODS, *(own if len(own) == 1 else ())]))


def variants_of(methods: Sequence[str | Method | Variant]) -> list[Variant]:
    """The variants of a comparison; raise if two have the same name."""
    variants = [Variant.of(method) for method in methods]
    if not variants:
        raise MaskMatchError("There is no method to compare; name at least one, such as mask-matching.")
    names = [variant.name for variant in variants]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise MaskMatchError(f"The method {twice!r} is named twice; name each once.")
    return variants


def _check_names(name: str, options: Mapping[str, Any], allowed: Sequence[str]) -> None:
    unknown = [option for option in options if option not in allowed]
    if unknown:
        raise MaskMatchError(f"{name!r} cannot set {unknown[0]!r}; it can set {', '.join(allowed)}.")
