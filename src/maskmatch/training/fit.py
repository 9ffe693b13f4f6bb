"""Fit: from labelled rows to a trained classifier, with everything that comes before and after the training loop."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from transformers import set_seed

from maskmatch.errors import MaskMatchError, TrainingDivergedError
from maskmatch.labels.centroids import NO_CENTROIDS
from maskmatch.labels.targets import check_trainable, has_several, label_set_of, row_labels, target_array
from maskmatch.prediction.answers import warn_about_texts
from maskmatch.prompts.windows import all_windows
from maskmatch.training.balance import balance_of, without_skew
from maskmatch.training.calibration import ADDED_OFFSET, HeldOut, expected_temperature, fit_calibration, fit_curve
from maskmatch.training.data import (
    WINDOWS_TRAINED,
    TrainingData,
    centroids_and_scope,
    fit_offset,
    kept_texts,
    training_data,
)
from maskmatch.training.dev import DevData
from maskmatch.training.held_out import cross_fitted, held_out_rows, row_separability, score_rows
from maskmatch.training.loop import ONE_TRAINING, train

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from transformers import TrainerCallback

    from maskmatch.config.training import TrainingConfig, TrainingSummary
    from maskmatch.data import Examples
    from maskmatch.labels import LabelSet
    from maskmatch.model.model_bank import ModelBank
    from maskmatch.prompts import TokenizedPrompts


@dataclass(frozen=True)
class Fitted:
    """Result of a training run: the bank with the trained model and labels, and a summary."""

    bank: ModelBank
    summary: TrainingSummary


def fit_bank(
    bank: ModelBank,
    examples: Examples,
    *,
    dev: Any,
    config: TrainingConfig,
    callbacks: Sequence[TrainerCallback],
    trained: bool,
    out_of_scope: Sequence[Any] = (),
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
        out_of_scope: Texts that no label fits.
    """
    assert examples.labels is not None
    given, bank = bank, _for_rows(bank, examples.labels, trained)
    multi_label = bank.config.multi_label
    labels, known = _checked_rows(bank, examples, config)
    texts, rows = known.texts, known.labels or []
    if config.example_share and not bank.config.uses_centroids:
        raise MaskMatchError(
            "example_share needs a method that reads label prompts by themselves, with as many masks as the input "
            "prompt, and one label per text; leave it out."
        )
    with_centroids = len(set(rows)) if bank.config.uses_centroids else 0
    config = config.resolved(bank.config.method, _rows_trained(bank, texts), with_centroids)
    labels = labels.without_examples  # training rows replace the examples
    others = _checked_extras(bank, config, out_of_scope)
    # Rows of folds would not be new to a model that was trained on them before.
    blind = config.calibrate and dev is None and not trained
    out = held_out_rows(rows, multi_label, config.seed) if blind else []
    train_on = partial(_trained, bank, labels, trained=trained)
    with ONE_TRAINING, _restored_on_error(given):
        held, separable = None, None
        if blind and not out:
            separable = row_separability(bank, texts, rows)
            held = cross_fitted(bank, texts, rows, config, lambda kept, fold: train_on(known.select(kept), fold)[0])
        kept = known.select(sorted(set(range(len(rows))) - set(out)))
        training, summary, evaluate = train_on(kept, config, dev=dev, callbacks=callbacks, others=others)
        if out:
            held = score_rows(training, [texts[row] for row in out], [rows[row] for row in out], "held out")
        if evaluate is not None and config.calibrate:
            held = evaluate.held_out()
        if config.calibrate:
            training, summary = calibrated(
                training, summary, held, seed=config.seed, evaluate=evaluate, separable=separable
            )
        if config.keep_texts:
            training.learn(texts=kept_texts(training, kept.texts, kept.labels or []))
    return Fitted(training, summary)


def _checked_rows(bank: ModelBank, examples: Examples, config: TrainingConfig) -> tuple[LabelSet, Examples]:
    """The labels, and the rows to train on with the classifier's ids of their labels."""
    several = bank.config.multi_label
    if several and (config.class_weight is not None or config.logit_adjustment):
        name = "logit_adjustment" if config.class_weight is None else "class_weight"
        raise MaskMatchError(f"{name} needs one label per text; with several, give sample_weight.")
    known = replace(examples, labels=row_labels(examples, bank.labels, several))
    weighted = known.with_weight()
    check_trainable(weighted.labels or [], bank.labels, several)
    labels = bank.labels
    if labels is None:  # a label whose rows have no weight is known all the same
        labels = label_set_of(known.labels or [], examples.label_names, several)
    return labels, weighted if several else without_skew(weighted, config)


def _checked_extras(bank: ModelBank, config: TrainingConfig, out_of_scope: Sequence[Any]) -> TokenizedPrompts | None:
    """Texts out of scope in their prompts; raise before training if they, or kept texts, do not fit the settings."""
    similarity = bank.config.similarity
    if config.keep_texts and not (bank.config.uses_centroids and not similarity.mask_join.late):
        raise MaskMatchError(
            "keep_texts needs one label per text, and a method that reads texts and label prompts alike; leave it out."
        )
    if not out_of_scope:
        return None
    if not config.example_share or similarity.mask_join.late or not similarity.row.unit_norm:
        raise MaskMatchError(
            "Texts out of scope need one label per text, a method that reads texts and label prompts alike, cosine "
            "similarity and example_share above 0; leave these rows out."
        )
    return bank.tokenize(out_of_scope)


def _rows_trained(bank: ModelBank, texts: Sequence[Any]) -> int:
    """How many rows a pass over the texts has: long texts may be read in several windows."""
    if bank.config.long_texts == "cut":
        return len(texts)
    return len(all_windows(bank.tokenize(texts), WINDOWS_TRAINED)[1])


def _trained(
    bank: ModelBank,
    labels: LabelSet,
    examples: Examples,
    config: TrainingConfig,
    *,
    trained: bool,
    dev: Any = None,
    callbacks: Sequence[TrainerCallback] = (),
    others: TokenizedPrompts | None = None,
) -> tuple[ModelBank, TrainingSummary, DevData | None]:
    """Train a copy of a bank on rows: the copy, a summary, and the dev data."""
    texts, rows = examples.texts, examples.labels or []
    training = bank.copy()
    set_seed(config.seed)  # before anything is drawn, such as a label matrix
    training.start_training(labels, trained=trained)
    balance = balance_of(target_array(rows, labels, training.config.multi_label), len(labels), config, examples.weights)
    data = training_data(training, texts, rows, hold=config.hold, label_encoding=config.label_encoding, balance=balance)
    warn_about_texts(data.whole, training.config.max_length)
    evaluate = None if dev is None else DevData(dev, training)
    if evaluate is not None:
        warn_about_texts(evaluate.prompts, training.config.max_length)
    training.mark_trained()  # before dev is evaluated: its probabilities must be those of the finished classifier
    summary = train(training.model, data, config, evaluate, callbacks)
    summary = replace(summary, texts=len(texts), notes=training.notes)
    if config.example_share:
        summary = _add_centroids(training, data, summary, evaluate, others)
    if training.config.multi_label and summary.dev is None:
        fit_offset(training, data)
    elif training.config.multi_label and summary.dev is not None:
        training = training.with_config(replace(training.config, threshold=summary.dev["threshold"]))
    return training, summary, evaluate


def calibrated(
    bank: ModelBank,
    summary: TrainingSummary,
    held: HeldOut | None,
    *,
    seed: int,
    evaluate: DevData | None = None,
    separable: float | None = None,
) -> tuple[ModelBank, TrainingSummary]:
    """Calibrate probabilities on rows that were not trained on. Without such rows, by what is usual for so few rows."""
    labels, config = bank.known_labels, bank.config
    if config.multi_label:
        if held is None or not held.targets.any():
            return bank, summary
        threshold = None if summary.dev is None else config.threshold
        found, usual = fit_curve(held, list(labels), threshold)
        bank = bank.with_config(replace(config, threshold=usual))
        bank.learn(calibration=found)
        dev = None if summary.dev is None or evaluate is None else evaluate.finished(bank)
        return bank, replace(summary, dev=dev, calibrated_on=found.source)
    if held is None:
        held = HeldOut(np.zeros((0, len(labels)), np.float32), np.zeros(0, np.int64), "prior")
    # A label without rows was seen in training all the same, and must not be taken for one that was added later.
    all_have_rows = len(bank.centroids) == len(labels)
    offset = ADDED_OFFSET if all_have_rows and config.similarity.row.unit_norm else 0.0
    of_training = held.source in ("folds", "prior")
    expected = expected_temperature(summary.texts, separable)
    found = fit_calibration(held, list(labels), expected=expected, loose=not of_training, added=offset, seed=seed)
    bank.learn(calibration=found)
    return bank, replace(summary, calibrated_on=found.source)


def _for_rows(bank: ModelBank, labels: Sequence[Any], trained: bool) -> ModelBank:
    """The bank; one for several labels per text if the rows have several."""
    if bank.config.multi_label or not has_several(labels):
        return bank
    if trained:
        raise MaskMatchError("This classifier was trained with one label per text; these rows have several.")
    return bank.with_config(replace(bank.config, multi_label=True))


@contextmanager
def _restored_on_error(bank: ModelBank) -> Iterator[None]:
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
        bank.forget()
        raise


def _add_centroids(
    bank: ModelBank,
    data: TrainingData,
    summary: TrainingSummary,
    evaluate: DevData | None,
    others: TokenizedPrompts | None = None,
) -> TrainingSummary:
    """Shift label vectors towards the centroids of their training texts, unless that does harm on dev."""
    started = time.perf_counter()
    centroids, scope = centroids_and_scope(bank, data, summary.config["example_share"], others)
    bank.learn(centroids=centroids, scope=scope)
    if evaluate is not None and summary.dev is not None:
        shifted = evaluate()
        if shifted["score"] >= summary.dev["score"]:
            summary = replace(summary, dev=shifted)
        else:
            summary = replace(summary, config={**summary.config, "example_share": 0.0})
            bank.learn(centroids=NO_CENTROIDS)
    return replace(summary, seconds=round(summary.seconds + time.perf_counter() - started, 2))
