"""Self-training: train on the unlabelled texts of which the adapted classifier is most confident.

Each round predicts labels for the unlabelled texts, takes the most confident texts of each label, trains on them and on
the examples if there are any, and adapts again. Every round starts from the same weights, so that a wrong label of one
round can be corrected in the next.
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.data import Examples
from maskmatch.errors import MaskMatchError
from maskmatch.labels.targets import row_labels
from maskmatch.prediction.runtimes.torch import torch_pipeline
from maskmatch.training.adapt import adapt_bank, check_adaptable
from maskmatch.training.balance import without_skew
from maskmatch.training.dev import DevData
from maskmatch.training.fit import Fitted, calibrated, fit_bank
from maskmatch.training.held_out import restorer

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from numpy.typing import NDArray

    from maskmatch.config.training import TrainingConfig, TrainingSummary
    from maskmatch.model.model_bank import ModelBank
    from maskmatch.prediction.answers import Predictions
    from maskmatch.training.adapt import AdaptationSummary, DrawnTexts

logger = logging.getLogger("maskmatch")

ROUNDS = 3
"""The most rounds."""

EPOCHS = 1.0
"""Passes over the texts in a round: more would learn wrong labels by heart."""

LEAST_CHANGE = 0.01
"""Stop if a smaller share of the texts gets another label than in the round before."""

CONFIDENT = 0.5
"""Which share of the texts of a label is trained on, the most confident ones."""

MOST_ROWS = 1000
"""About how many texts are trained on, the same number per label where there are enough; more with very many labels."""

LEAST_PER_LABEL = 3
"""How many texts a label gets at least, if there are as many."""


@dataclass(frozen=True)
class SelfTrainingSummary:
    """The result of self-training.

    Attributes:
        kept: Whether the trained weights are used. Without dev data they are, unless training failed.
        rounds: How many rounds there were.
        rows: How many unlabelled texts were trained on in the last round.
        changed: The share of texts that got another label in the last round.
        dev: The score on dev before and after, if dev data was given.
        seconds: How long it took.
        problem: Why training failed, if it did.
    """

    kept: bool
    rounds: int
    rows: int
    changed: float
    dev: tuple[float, float] | None
    seconds: float
    problem: str | None = None

    def __str__(self) -> str:
        if self.problem is not None:
            return f"Self-training failed, so it is not used: {self.problem}"
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds} rounds"
        what = f"Self-training took {rounds} with {self.rows} confident texts in {self.seconds:.0f} s"
        if self.dev is None:
            return f"{what}."
        before, after = self.dev
        verdict = "it is used" if self.kept else "it is not used"
        return f"{what}; {verdict}: the score on dev is {before:.4f} without it and {after:.4f} with it."


@dataclass(frozen=True)
class LearnedFromTexts:
    """What a classifier learned from unlabelled texts: its bank, a summary, and the training if it was self-trained."""

    bank: ModelBank
    summary: AdaptationSummary
    training: TrainingSummary | None = None


def learn_from_texts(
    bank: ModelBank,
    texts: DrawnTexts,
    *,
    dev: Any = None,
    force: bool = False,
    trained: bool = False,
    self_training: bool = False,
    config: TrainingConfig,
    examples: Examples | None = None,
) -> LearnedFromTexts:
    """Adapt a classifier to unlabelled texts, and train it on confident ones if that is asked for.

    Args:
        bank: The model and its labels; it stays as it is, but its encoder may be trained.
        texts: The unlabelled texts.
        dev: Labelled rows that decide, or None.
        force: Whether to adapt even if the texts do not speak for it.
        trained: Whether the classifier was trained.
        self_training: Whether to train on confident texts.
        config: How to train, and the seed of all draws.
        examples: Labelled rows to train on beside confident texts.
    """
    check_adaptable(bank.config, bank.known_labels)
    if self_training and trained and examples is None and dev is None:
        raise MaskMatchError(
            "This classifier was trained, and self-training would replace what it learned from its examples; call "
            "fit(texts, labels, unlabeled=…, self_training=True), or give dev data, which decide."
        )
    bank = bank.copy()
    rows = None if dev is None else DevData(dev, bank)
    summary = adapt_bank(bank, texts, dev=rows, force=force, seed=config.seed, trained=trained)
    if not summary.adapted and self_training:
        logger.warning("Self-training is left out, because the classifier was not adapted.")
    if not summary.adapted or not self_training:
        return LearnedFromTexts(bank, summary)
    started = time.perf_counter()
    before = None if summary.dev is None else summary.dev[1]
    try:
        fitted, found = self_train(bank, texts, examples=examples, dev=rows, before=before, config=config)
    except MaskMatchError as error:  # the weights are what they were
        seconds = round(time.perf_counter() - started, 2)
        fitted, found = None, SelfTrainingSummary(False, 0, 0, 0.0, None, seconds, str(error))
        logger.warning("%s", found)
    summary = replace(summary, self_training=found)
    if fitted is None:
        return LearnedFromTexts(bank, summary)
    held = None if dev is None else DevData(dev, fitted.bank).held_out()
    bank, training = calibrated(fitted.bank, fitted.summary, held, seed=config.seed)
    return LearnedFromTexts(bank, summary, training)


def self_train(
    bank: ModelBank,
    texts: DrawnTexts,
    *,
    examples: Examples | None,
    dev: DevData | None,
    before: float | None,
    config: TrainingConfig,
) -> tuple[Fitted | None, SelfTrainingSummary]:
    """Train an adapted classifier on its confident texts. Without success, its weights are as they were.

    Args:
        bank: The adapted bank.
        texts: The unlabelled texts that it was adapted to.
        examples: Labelled rows to train on, too.
        dev: Labelled rows that decide whether the result is used, or None.
        before: The score of the adapted classifier on dev.
        config: How to train; the number of epochs is that of self-training.
    """
    started = time.perf_counter()
    config = replace(
        config, epochs=EPOCHS, checkpoints=None, resume=False, patience=None, calibrate=False, keep_texts=False
    )
    own = _own_rows(bank, examples, config)
    config = replace(config, max_skew=0.0)  # the rows of the user are chosen, and confident texts are balanced
    predicted = _predicted(bank, texts)
    rounds, scores = 0, None
    with _restoring(bank) as restore:
        for _ in range(ROUNDS):
            rounds += 1
            rows = confident_rows(predicted, len(bank.known_labels))
            restore()
            chosen = _with_confident(own, texts, predicted, rows)
            fitted = fit_bank(bank, chosen, dev=None, config=config, callbacks=(), trained=True)
            adapt_bank(fitted.bank, texts, force=True, seed=config.seed, trained=True)
            earlier, predicted = predicted, _predicted(fitted.bank, texts)
            changed = float(np.mean([old != new for old, new in zip(earlier.labels, predicted.labels, strict=True)]))
            if changed < LEAST_CHANGE:
                break
        if dev is not None and before is not None:
            labels = torch_pipeline(fitted.bank).predict(dev.prompts).labels
            scores = before, round(dev.metrics(labels)["score"], 4)
        kept = scores is None or scores[1] >= scores[0]
        if not kept:
            restore()
    seconds = round(time.perf_counter() - started, 2)
    summary = SelfTrainingSummary(kept, rounds, len(rows), round(changed, 4), scores, seconds)
    note = f"{len(rows)} of the training texts are unlabelled ones with their predicted labels (self-training)."
    noted = replace(fitted.summary, notes=[*fitted.summary.notes, note])
    return (replace(fitted, summary=noted) if kept else None), summary


def confident_rows(predicted: Predictions, labels: int) -> NDArray[np.int64]:
    """The rows to train on: of each predicted label the most confident ones, and not many more than of the others."""
    assert predicted.confidence is not None
    by_label: dict[Hashable, list[int]] = {}
    for row in np.argsort(-predicted.confidence, kind="stable").tolist():
        by_label.setdefault(predicted.labels[row], []).append(row)
    most = max(LEAST_PER_LABEL, MOST_ROWS // labels)
    chosen = [rows[: min(most, max(LEAST_PER_LABEL, round(CONFIDENT * len(rows))))] for rows in by_label.values()]
    return np.sort(np.concatenate(chosen))


def _predicted(bank: ModelBank, texts: DrawnTexts) -> Predictions:
    pipeline = torch_pipeline(bank)
    return pipeline.predict(pipeline.tokenize(texts.texts))


def _own_rows(bank: ModelBank, examples: Examples | None, config: TrainingConfig) -> Examples:
    """The examples of the user, as `fit` trains on them, and of the labels, with the labels' ids."""
    labels = bank.known_labels
    own = Examples([], [])
    if examples is not None:
        own = replace(examples, labels=row_labels(examples, labels, False)).with_weight()
        own = without_skew(own, config, quiet=True)
    more = [(text, label.id) for label in labels.labels for text in label.examples]
    return _followed_by(own, [text for text, _ in more], [label for _, label in more])


def _followed_by(rows: Examples, texts: Sequence[Any], labels: Sequence[Any]) -> Examples:
    """Rows with others behind them, which count in full."""
    weights = None if rows.weights is None else [*rows.weights, *[1.0] * len(texts)]
    return Examples([*rows.texts, *texts], [*(rows.labels or ()), *labels], weights=weights)


def _with_confident(own: Examples, texts: DrawnTexts, predicted: Predictions, rows: NDArray[np.int64]) -> Examples:
    """The rows of a round: examples, and confident texts with their predicted labels."""
    places = rows.tolist()
    return _followed_by(own, [texts.texts[row] for row in places], [predicted.labels[row] for row in places])


@contextmanager
def _restoring(bank: ModelBank) -> Iterator[Any]:
    """A function that makes the classifier what it was; it is called if the block fails."""
    restore = restorer(bank)
    try:
        yield restore
    except BaseException:
        restore()
        raise
