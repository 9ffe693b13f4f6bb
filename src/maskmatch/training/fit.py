"""Fit: from labelled rows to a trained classifier, with everything that comes before and after the training loop."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from transformers import set_seed

from maskmatch.errors import MaskMatchError, TrainingDivergedError
from maskmatch.labels.targets import check_trainable, has_several, label_set_of, row_labels
from maskmatch.model.centroids import NO_CENTROIDS
from maskmatch.prediction.pipeline import warn_truncated
from maskmatch.training.data import TrainingData, fit_offset, training_centroids, training_data
from maskmatch.training.dev import DevData
from maskmatch.training.loop import train

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from transformers import TrainerCallback

    from maskmatch.config.training import TrainingConfig, TrainingSummary
    from maskmatch.data import Examples
    from maskmatch.model.label_bank import LabelBank


@dataclass(frozen=True)
class Fitted:
    """Result of a training run: the bank with the trained model and labels, and a summary."""

    bank: LabelBank
    summary: TrainingSummary


def fit_bank(
    bank: LabelBank,
    examples: Examples,
    *,
    dev: Any,
    config: TrainingConfig,
    callbacks: Sequence[TrainerCallback],
    trained: bool,
) -> Fitted:
    """Train on labelled rows. The encoder is trained in place; the returned bank may be another one.

    If the rows or settings are wrong, the bank stays as it was.

    Args:
        bank: The model and its labels; without labels, those of the rows are taken.
        examples: The rows.
        dev: Rows to choose the best checkpoint by, or None.
        config: How to train.
        callbacks: Callbacks of transformers' Trainer.
        trained: Whether the model was trained before.
    """
    assert examples.labels is not None
    given, bank = bank, _for_rows(bank, examples.labels, trained)
    multi_label = bank.config.multi_label
    rows = row_labels(examples, bank.labels, multi_label)
    check_trainable(rows, bank.labels, multi_label)
    labels = label_set_of(rows, examples.label_names, multi_label) if bank.labels is None else bank.labels
    if config.example_share and not bank.config.uses_centroids:
        raise MaskMatchError(
            "example_share needs a method that reads label prompts by themselves, with as many masks as the input "
            "prompt, and one label per text; leave it out."
        )
    with_centroids = len(set(rows)) if bank.config.uses_centroids else 0
    config = config.resolved(bank.config.method, len(rows), with_centroids)
    with _restored_on_error(given):
        training = bank.copy()
        set_seed(config.seed)  # before anything is drawn, such as a label matrix
        training.start_training(labels.without_examples, trained=trained)  # training rows replace the examples
        data = training_data(training, examples.texts, rows, hold=config.hold, label_encoding=config.label_encoding)
        warn_truncated(data.texts, training.config.max_length)
        evaluate = None if dev is None else DevData(dev, training)
        if evaluate is not None:
            warn_truncated(evaluate.prompts, training.config.max_length)
        training.mark_trained()  # before dev is evaluated: its probabilities must be those of the finished classifier
        summary = replace(train(training.model, data, config, evaluate, callbacks), notes=training.notes)
        if config.example_share:
            summary = _add_centroids(training, data, summary, evaluate)
        if multi_label and summary.dev is None:
            fit_offset(training, data)
        elif multi_label and summary.dev is not None:
            tuned = replace(training.config, threshold=summary.dev["threshold"])
            return Fitted(training.with_config(tuned), summary)
    return Fitted(training, summary)


def _for_rows(bank: LabelBank, labels: Sequence[Any], trained: bool) -> LabelBank:
    """The bank; one for several labels per text if the rows have several."""
    if bank.config.multi_label or not has_several(labels):
        return bank
    if trained:
        raise MaskMatchError("This classifier was trained with one label per text; these rows have several.")
    return bank.with_config(replace(bank.config, multi_label=True))


@contextmanager
def _restored_on_error(bank: LabelBank) -> Iterator[None]:
    """Keep the bank of the caller as it was if rows or settings are wrong: a copy is trained.

    The encoder is shared: if training diverged or was interrupted, the bank is no longer what it was.
    """
    try:
        yield
    except TrainingDivergedError:
        bank.mark_diverged()
        raise
    except MaskMatchError:  # nothing was trained
        raise
    except BaseException:  # interrupted: the encoder has other weights now
        bank.set_centroids(NO_CENTROIDS)
        bank.set_adaptation(None)
        raise


def _add_centroids(
    bank: LabelBank, data: TrainingData, summary: TrainingSummary, evaluate: DevData | None
) -> TrainingSummary:
    """Shift label vectors towards the centroids of their training texts, unless that does harm on dev."""
    started = time.perf_counter()
    bank.set_centroids(training_centroids(bank, data, summary.config["example_share"]))
    if evaluate is not None and summary.dev is not None:
        shifted = evaluate()
        if shifted["score"] >= summary.dev["score"]:
            summary = replace(summary, dev=shifted)
        else:
            summary = replace(summary, config={**summary.config, "example_share": 0.0})
            bank.set_centroids(NO_CENTROIDS)
    return replace(summary, seconds=round(summary.seconds + time.perf_counter() - started, 2))
