"""The settings of training, and what training did."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, get_args

from maskmatch.choices import LabelEncoding
from maskmatch.errors import MaskMatchError
from maskmatch.settings import added_setting

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from maskmatch.methods import Method

USUAL_STEPS, FEW_STEPS = 100, 40
"""How many steps suffice, and how many where a few training texts have a share in the vectors of their labels."""

FEW_TEXTS = 10
"""For how many texts a label few steps suffice; with more of them, more can be learned, so it takes more steps."""

LEAST_EPOCHS = 3
MOST_EPOCHS = 50
"""A handful of texts is learned by heart long before: more passes cost time and bring nothing."""

EXAMPLE_SHARE = 0.6
"""The share of very many training texts in the vector of their label, unless the user says otherwise."""

MAX_TOKENS = 8_192
"""Tokens of texts a step: 32 texts of 256, which is what the default encoder reads of a text at most."""

WHOLE_NUMBERS = ("batch_size", "max_tokens", "seed", "patience")


@dataclass(frozen=True)
class TrainingConfig:
    """How to train.

    Args:
        epochs: Passes over the training data. None: 3 to 50, enough for 100 steps; where training texts have a share in
            the vectors of their labels, for 40 steps with up to 10 texts a label, rising to 100 with 25.
        learning_rate: The peak learning rate of the encoder; it rises over the first tenth and falls to zero. None:
            what suits the method.
        head_rate: How many times faster what is not pretrained learns: a label matrix, a head, a temperature.
        batch_size: Texts a step; the labels come on top.
        max_tokens: Tokens of texts a step at most: where texts are so long that ``batch_size`` of them might be more, a
            step takes fewer, and every step about as many tokens. It bounds the memory of long texts.
        weight_decay: Weight decay of the encoder's matrices.
        hold: How much the vectors of texts and labels are held where the encoder put them before training (one minus
            their cosine is added to the loss, so many times). It keeps what the encoder knows, which few examples
            would overwrite. 0: not at all.
        example_share: The share that very many training texts of a label would have in its vector after training: it
            moves towards their mean, by n / (n + 1) of this share with n texts. 0: a label's vector is what the encoder
            reads of its name, as in the paper. None: 0.6 where the method can.
        label_encoding: ``"full"``: every step reads all labels; ``"sampled"``: it reads those that matter to its texts
            and some of the others, and takes all further vectors from the last time they were read, so that what it
            reads does not grow with the number of labels; ``"auto"``: the first up to 500 label texts.
        dropout: Whether the encoder is disturbed in training as it was when it was pretrained. Without, a run of few
            steps gets further. None: as suits the method, which is without for ``pair-matching`` alone.
        seed: Same seed, same result.
        patience: With dev data: stop after this many looks at it (ten a run) without a gain. None: never
            early. In both cases the weights that did best on dev are kept.
        checkpoints: A folder for checkpoints, ten a run, to resume from.
        resume: Go on from the last checkpoint in that folder.
        arguments: Any further ``transformers.TrainingArguments``: loggers, mixed precision, gradient
            accumulation, …
    """

    epochs: float | None = None
    learning_rate: float | None = None
    head_rate: float = 10.0
    batch_size: int = 32
    weight_decay: float = 0.01
    hold: float = 0.0
    max_tokens: int = added_setting(MAX_TOKENS)
    label_encoding: LabelEncoding = "auto"
    example_share: float | None = added_setting(None)
    dropout: bool | None = added_setting(None)
    seed: int = 0
    patience: int | None = None
    checkpoints: str | Path | None = None
    resume: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (
            "epochs",
            "learning_rate",
            "head_rate",
            "batch_size",
            "max_tokens",
            "weight_decay",
            "hold",
            "example_share",
            "seed",
            "patience",
        ):
            value = getattr(self, name)
            if value is None and name in ("epochs", "learning_rate", "example_share", "patience"):
                continue
            kind, number = (Integral, "whole number") if name in WHOLE_NUMBERS else (Real, "number")
            zero = name in ("weight_decay", "hold", "example_share", "seed")
            if not isinstance(value, kind) or not 0 <= float(value) < math.inf or (value == 0 and not zero):
                bound = "from 0 on" if zero else "above 0"
                raise MaskMatchError(f"{name} is {value!r}; it has to be a {number} {bound}.")
            if hasattr(value, "item"):  # a number of numpy, which can neither seed nor be saved as JSON
                object.__setattr__(self, name, value.item())
        if self.example_share is not None and self.example_share > 1:
            raise MaskMatchError(f"example_share is {self.example_share}; a share is at most 1.")
        if self.label_encoding not in get_args(LabelEncoding):
            choices = ", ".join(get_args(LabelEncoding))
            raise MaskMatchError(f"label_encoding is {self.label_encoding!r}; choose one of {choices}.")
        if getattr(self.dropout, "ndim", None) == 0:  # a value of numpy, which cannot be saved as JSON
            object.__setattr__(self, "dropout", self.dropout.item())  # type: ignore[union-attr]
        if self.dropout is not None and not isinstance(self.dropout, bool):
            raise MaskMatchError(f"dropout is {self.dropout!r}; it has to be True, False or None.")
        if self.seed >= 2**32:
            raise MaskMatchError(f"seed is {self.seed}; it has to be below 2**32.")
        if self.resume and self.checkpoints is None:
            raise MaskMatchError("To resume, name the folder of the checkpoints.")

    def changed(self, options: Mapping[str, Any]) -> TrainingConfig:
        """The same settings but for those that are given."""
        unknown = set(options) - set(self.__dataclass_fields__)
        if unknown:
            raise MaskMatchError(
                f"fit takes no {', '.join(sorted(unknown))}; it takes {', '.join(self.__dataclass_fields__)}."
            )
        return replace(self, **options)

    def resolved(self, method: Method, texts: int, moving_labels: int) -> TrainingConfig:
        """The same settings with what was left open spelled out.

        Args:
            method: What is trained.
            texts: The number of training texts.
            moving_labels: How many labels have training texts that their vectors can move towards; 0 where none can.
        """
        epochs, share = self.epochs, self.example_share
        if share is None and moving_labels:
            share = EXAMPLE_SHARE
        if epochs is None:
            steps_an_epoch = math.ceil(max(1, texts) / self.batch_size)
            steps: float = USUAL_STEPS
            if share and moving_labels:
                steps = min(USUAL_STEPS, FEW_STEPS * max(1.0, texts / moving_labels / FEW_TEXTS))
            epochs = max(LEAST_EPOCHS, min(MOST_EPOCHS, math.ceil(steps / steps_an_epoch)))
        rate = method.learning_rate if self.learning_rate is None else self.learning_rate
        return replace(self, epochs=epochs, learning_rate=rate, example_share=share)


@dataclass(frozen=True)
class TrainingSummary:
    """What a training run did."""

    texts: int
    labels: int
    steps: int
    epochs: float
    seconds: float
    loss: float
    cut: int
    """How many training texts were longer than the model reads."""
    dev: dict[str, float] | None
    """The dev figures of the weights that were kept."""
    config: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    """What a reader of the figures should know, in sentences."""
