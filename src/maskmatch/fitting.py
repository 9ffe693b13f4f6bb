"""Fitting: from labelled rows to a trained scorer, with everything that belongs to it before and after training."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from transformers import set_seed

from maskmatch.dev_data import DevData
from maskmatch.errors import MaskMatchError, TrainingDivergedError
from maskmatch.label_examples import NO_CENTRES
from maskmatch.prediction import tell_cut
from maskmatch.targets import check_trainable, has_several, label_set_of, row_labels
from maskmatch.training import train
from maskmatch.training_data import TrainingData, find_centres, settle_offset, training_data

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from transformers import TrainerCallback

    from maskmatch.data import Examples
    from maskmatch.labels import LabelSet
    from maskmatch.scorer import Scorer
    from maskmatch.training_config import TrainingConfig, TrainingSummary


@dataclass(frozen=True)
class Fitted:
    """What became of a scorer and its labels."""

    scorer: Scorer
    labels: LabelSet
    summary: TrainingSummary


def fit_scorer(
    scorer: Scorer,
    labels: LabelSet | None,
    examples: Examples,
    *,
    dev: Any,
    config: TrainingConfig,
    callbacks: Sequence[TrainerCallback],
    trained: bool,
) -> Fitted:
    """Train a scorer on labelled rows. Its encoder is trained in place; the scorer that comes back may be another one.

    If rows or settings are refused, the scorer is as it was.

    Args:
        scorer: What to train.
        labels: Its labels; None: those of the rows.
        examples: The rows.
        dev: Rows to choose the best weights by, or None.
        config: How to train.
        callbacks: Callbacks of transformers' Trainer.
        trained: Whether it was trained before.
    """
    with _undone_if_refused(scorer, trained):
        scorer, rows = _with_labels_of(scorer, labels, examples, trained)
        if labels is None:
            labels = label_set_of(rows, examples.label_names, scorer.config.multi_label)
        labels = labels.without_examples  # the training rows take their place
        if config.example_share and not scorer.config.moves_labels:
            raise MaskMatchError(
                "Training texts cannot have a share in label vectors here: it takes a method that reads label prompts "
                "by themselves, with as many masks as the input prompt, and one label a text. Leave example_share out."
            )
        moving = len(set(rows)) if scorer.config.moves_labels else 0
        config = config.resolved(scorer.config.method, len(rows), moving)
        set_seed(config.seed)  # before anything is drawn, such as a label matrix
        if not trained:
            scorer.forget_model()  # what an earlier call may have drawn does not follow the seed
        data = training_data(
            scorer, examples.texts, rows, labels, hold=config.hold, label_encoding=config.label_encoding
        )
        tell_cut(data.texts, scorer.config.max_length)
        evaluate = None if dev is None else DevData(dev, scorer, labels)
        if evaluate is not None:
            tell_cut(evaluate.prompts, scorer.config.max_length)
        scorer.take_centres(NO_CENTRES)  # those of other weights
        try:
            summary = replace(train(scorer.model(labels), data, config, evaluate, callbacks), notes=scorer.notes)
        finally:
            scorer.forget_labels()
        if config.example_share:
            summary = _move_labels(scorer, labels, data, summary, evaluate)
        if scorer.config.multi_label:
            if summary.dev is None:
                settle_offset(scorer, data, labels)
            else:
                scorer = scorer.with_config(replace(scorer.config, threshold=summary.dev["threshold"]))
        return Fitted(scorer, labels, summary)


@contextmanager
def _undone_if_refused(scorer: Scorer, trained: bool) -> Iterator[None]:
    """Leave a scorer as it was if rows or settings are refused, and without old vectors if training is interrupted."""
    centres = scorer.centres
    try:
        yield
    except TrainingDivergedError:
        scorer.give_up()
        raise
    except MaskMatchError:  # nothing was trained
        scorer.take_centres(centres)
        if not trained:
            scorer.forget_model()
        raise
    except BaseException:  # the encoder is no longer what it was, whichever scorer it was trained by
        scorer.take_centres(NO_CENTRES)
        scorer.forget_labels()
        raise


def _with_labels_of(
    scorer: Scorer, labels: LabelSet | None, examples: Examples, trained: bool
) -> tuple[Scorer, list[Any]]:
    """The labels of training rows, checked, and the scorer that suits their number a text."""
    assert examples.labels is not None
    if has_several(examples.labels) and not scorer.config.multi_label:
        if trained:
            raise MaskMatchError("This classifier was trained with one label a text; these rows have several.")
        scorer = scorer.with_config(replace(scorer.config, multi_label=True))
    rows = row_labels(examples, labels, scorer.config.multi_label)
    check_trainable(rows, labels, scorer.config.multi_label)
    return scorer, rows


def _move_labels(
    scorer: Scorer, labels: LabelSet, data: TrainingData, summary: TrainingSummary, evaluate: DevData | None
) -> TrainingSummary:
    """Let training texts move the vectors of their labels, unless that does harm on dev data."""
    started = time.perf_counter()
    scorer.take_centres(find_centres(scorer, data, labels, summary.config["example_share"]))
    if evaluate is not None and summary.dev is not None:
        moved = evaluate()
        if moved["score"] >= summary.dev["score"]:
            summary = replace(summary, dev=moved)
        else:
            summary = replace(summary, config={**summary.config, "example_share": 0.0})
            scorer.take_centres(NO_CENTRES)
    return replace(summary, seconds=round(summary.seconds + time.perf_counter() - started, 2))
