"""The settings of training, and the result of a training run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from maskmatch.config.settings import Settings, setting
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from maskmatch.config.methods import Method

LabelEncoding = Literal["auto", "full", "sampled"]
ClassWeight = Literal["balanced"]

DEFAULT_STEPS, FEW_STEPS = 100, 40
"""How many steps are enough; and how many if centroids of a few training texts shift the label vectors."""

FEW_TEXTS = 10
"""Up to this many texts per label, FEW_STEPS are enough; with more texts there is more to learn."""

MIN_EPOCHS = 3
MAX_EPOCHS = 50
"""More passes over a handful of texts cost time and gain nothing: the model knows them by heart."""

MAX_SKEW = 2.0
"""How many times as many rows as the median label a label may have in any case, if labels have few rows."""

CENTROID_WEIGHT = 0.6
"""The default weight of the centroid of very many training texts in the vector of their label."""

MAX_TOKENS = 8_192
"""Tokens of texts per step: 32 texts of 256 tokens, the default maximum length."""


CALIBRATED_ON = {
    "dev": "on dev rows",
    "held out": "on rows held out of training",
    "folds": "on training rows, each by a classifier that was trained without it",
    "datasets": "on public datasets of this kind of task, for label names alone",
    "prior": "by what is usual for this number of training rows",
}
"""How probabilities were calibrated, in words."""


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """How to train."""

    epochs: float | None = setting(
        None,
        above=0,
        help="Passes over the training data. Default: 3 to 50, enough for 100 steps; for 40 steps if centroids shift "
        "the label vectors and there are at most 10 texts per label.",
    )
    learning_rate: float | None = setting(
        None,
        above=0,
        help="The peak learning rate of the encoder, after a warm-up of a tenth of the steps and before a linear decay "
        "to zero. Default: the method's.",
    )
    head_rate: float = setting(
        10.0, above=0, help="How many times faster new parameters learn: a label matrix, a head, a temperature."
    )
    batch_size: int = setting(32, above=0, help="Texts per step; the labels come on top.")
    weight_decay: float = setting(0.01, at_least=0, help="Weight decay of the encoder's matrices.")
    hold: float = setting(
        0.0,
        at_least=0,
        help="Weight of a loss that keeps the vectors of texts and labels near those before training (one minus their "
        "cosine). It preserves what the encoder knows, which few examples would overwrite.",
    )
    max_tokens: int = setting(
        MAX_TOKENS,
        above=0,
        help="The maximum number of tokens of texts per step. Steps take fewer long texts, which bounds memory.",
    )
    label_encoding: LabelEncoding = setting(
        "auto",
        help="Which labels a step encodes: full, all of them; sampled, the texts' own, the hardest wrong ones and a "
        "random sample, with cached vectors for the rest; auto, full up to 500 label texts.",
    )
    example_share: float | None = setting(
        None,
        at_least=0,
        at_most=1,
        help="The weight of the centroid of very many training texts in the vector of their label after training; with "
        "n texts it is n / (n + 1) of this. 0: the name alone, as in the paper. Default: 0.6 where the method can.",
    )
    class_weight: ClassWeight | None = setting(
        None,
        help="balanced: rows count less the more rows their label has, so that all labels count the same. Default: "
        "every row that is trained on counts the same, see max_skew.",
    )
    max_skew: float = setting(
        MAX_SKEW,
        at_least=0,
        help="The limit for a large label, as a multiple of the rows of the median label. A label above it that also "
        "has a third of all rows is trained on with fewer rows and less weight, as it would drown the others. Above 10 "
        "rows per label the limit rises. 0: no limit.",
    )
    logit_adjustment: float = setting(
        0.0,
        at_least=0,
        help="How far the loss compensates for labels with more rows than others: so many times the logarithm of a "
        "label's share of the rows is added to its logits. 1 is usual.",
    )
    dropout: bool | None = setting(
        None,
        help="Whether the encoder is trained with dropout. Very short runs get further without. Default: with, except "
        "for pair-matching.",
    )
    calibrate: bool = setting(
        True,
        identity=False,
        help="Calibrate probabilities: on dev rows if there are any; else on rows held out of training; or, with few "
        "rows, by training also without parts of them, which takes about twice as long.",
    )
    keep_texts: bool = setting(
        False,
        identity=False,
        help="Keep the training texts and their vectors with the classifier, so that explanations show similar ones.",
    )
    seed: int = setting(0, at_least=0, below=2**32, help="Same seed, same result.")
    patience: int | None = setting(
        None,
        above=0,
        help="With dev data: stop after this many evaluations (ten per run) without improvement. Default: never stop "
        "early. The best checkpoint on dev is used in both cases.",
    )
    checkpoints: Path | str | None = setting(
        None, given=Path | None, identity=False, help="A folder for checkpoints, ten per run, to resume from."
    )
    resume: bool = setting(False, identity=False, help="Resume from the last checkpoint.")
    arguments: Mapping[str, Any] = setting(
        factory=dict,
        option=False,
        help="Further transformers.TrainingArguments: loggers, mixed precision, gradient accumulation, …",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resume and self.checkpoints is None:
            raise MaskMatchError("To resume, name the folder of the checkpoints.")

    def resolved(self, method: Method, texts: int, labels_with_centroids: int) -> TrainingConfig:
        """The same settings with defaults that depend on the method and the data filled in.

        Args:
            method: The method to train.
            texts: The number of training texts.
            labels_with_centroids: How many labels have training texts whose centroid can shift them; 0 if none can.
        """
        epochs, weight = self.epochs, self.example_share
        if weight is None and labels_with_centroids:
            weight = CENTROID_WEIGHT
        if epochs is None:
            steps_per_epoch = math.ceil(max(1, texts) / self.batch_size)
            steps: float = DEFAULT_STEPS
            if weight and labels_with_centroids:
                steps = min(DEFAULT_STEPS, FEW_STEPS * max(1.0, texts / labels_with_centroids / FEW_TEXTS))
            epochs = max(MIN_EPOCHS, min(MAX_EPOCHS, math.ceil(steps / steps_per_epoch)))
        rate = method.learning_rate if self.learning_rate is None else self.learning_rate
        return replace(self, epochs=epochs, learning_rate=rate, example_share=weight)


@dataclass(frozen=True)
class TrainingSummary:
    """Result of a training run."""

    texts: int
    labels: int
    steps: int
    epochs: float
    seconds: float
    loss: float
    cut: int
    """How many training texts were truncated."""
    dev: dict[str, float] | None
    """The metrics on dev of the best checkpoint."""
    config: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    """What a reader of the metrics should know, in sentences."""
    calibrated_on: str | None = None
    """How probabilities were calibrated: a key of ``CALIBRATED_ON``; None: they were not."""
