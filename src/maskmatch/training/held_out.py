"""Rows that the model is not trained on, to calibrate it by: dev rows, rows held out, or rows of folds."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError, TrainingDivergedError
from maskmatch.labels.calibration import Calibration
from maskmatch.labels.targets import target_array
from maskmatch.prediction.pipeline import encode_prompts
from maskmatch.prediction.runtimes.torch import TorchRuntime, torch_pipeline
from maskmatch.progress import progress_for
from maskmatch.training.calibration import MOST_SCORES, HeldOut, fit_calibration, fit_curve, separability

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from maskmatch.config.training import TrainingConfig
    from maskmatch.model.model_bank import ModelBank

logger = logging.getLogger("maskmatch")

MANY_ROWS, HELD_SHARE, MOST_HELD = 1_500, 0.1, 300
"""From this many training rows on, a tenth of them, at most 300, is held out. With fewer, all are needed to train."""

FOLDS, FEW_FOLDS, FEW_ROWS = 5, 3, 64
"""In how many folds rows are split, and in how many if there are few rows, so that it takes less time."""

ENOUGH = 30
"""How many rows of folds are enough: further folds are not trained."""

ENOUGH_TO_CALIBRATE = 100
"""With fewer rows, users are warned."""

MOST_COMPARED = 500
"""How many training rows are compared with each other at most."""

MOST_SCORED = 2_000
"""How many dev rows are scored at most."""


def held_out_rows(rows: Sequence[Any], multi_label: bool, seed: int) -> list[int]:
    """The rows to hold out of training, a tenth of them, so that every label keeps two; none if there are few."""
    if len(rows) < MANY_ROWS:
        return []
    most = min(MOST_HELD, round(HELD_SHARE * len(rows)))
    order = np.random.default_rng(seed).permutation(len(rows)).tolist()
    return sorted(_without_last_rows(rows, order, multi_label)[:most])


def _without_last_rows(rows: Sequence[Any], order: Sequence[int], multi_label: bool) -> list[int]:
    """The rows, in this order, that can be left out one after the other so that every label keeps two rows."""
    left: Counter[Any] = Counter(label for row in rows for label in (row if multi_label else [row]))
    found = []
    for row in order:
        own = rows[row] if multi_label else [rows[row]]
        if all(left[label] > 2 for label in own):
            left.subtract(own)
            found.append(row)
    return found


def fold_rows(rows: Sequence[Any], multi_label: bool, seed: int) -> list[list[int]]:
    """The rows of each fold to train without, until there are enough. A label with one row keeps it.

    With several labels per text, a fold may have all rows of a label.
    """
    count = FEW_FOLDS if len(rows) < FEW_ROWS else FOLDS
    order = np.random.default_rng(seed).permutation(len(rows)).tolist()
    folds: list[list[int]] = [[] for _ in range(count)]
    seen: dict[Any, int] = defaultdict(int)
    for number, row in enumerate(order):
        if multi_label:
            folds[number % count].append(row)
            continue
        seen[rows[row]] += 1
        folds[(seen[rows[row]] - 1) % count].append(row)
    if not multi_label:
        folds = [[row for row in fold if seen[rows[row]] > 1] for fold in folds]
    chosen: list[list[int]] = []
    for fold in folds:
        if fold and sum(map(len, chosen)) < ENOUGH:
            chosen.append(sorted(fold))
    return chosen


def row_separability(bank: ModelBank, texts: Sequence[Any], rows: Sequence[Any]) -> float | None:
    """How similar the texts of a label are before training; None with several labels per text, or labels in context."""
    if bank.config.multi_label or bank.config.labels_in_context:
        return None
    some = np.sort(np.random.default_rng(0).permutation(len(texts))[:MOST_COMPARED]).tolist()
    prompts = bank.tokenize([texts[row] for row in some])
    vectors = encode_prompts(TorchRuntime(bank.model), prompts, bank.tokenizer.vocabulary.pad_id)  # (n, masks, dim)
    numbers = {label: number for number, label in enumerate(dict.fromkeys(rows))}
    return separability(vectors.reshape(len(some), -1), np.array([numbers[rows[row]] for row in some]))


def score_rows(bank: ModelBank, texts: Sequence[Any], rows: Sequence[Any], source: str) -> HeldOut:
    """The scores of labelled rows, without calibration."""
    plain, before = bank.copy(), bank.calibration
    # The offset of labels that were added after training is part of the scores.
    plain.learn(calibration=None if before is None else Calibration(added=before.added))
    labels, several = plain.known_labels, plain.config.multi_label
    most = min(MOST_SCORED, max(1, MOST_SCORES // len(labels)))
    some = np.sort(np.random.default_rng(0).permutation(len(texts))[:most]).tolist()
    pipeline = torch_pipeline(plain)
    if pipeline.scorer.by_lead:
        raise MaskMatchError(
            "Without training, no similarity says that one of several labels applies, so there is nothing to "
            "calibrate; train the classifier, or set the threshold."
        )
    scores = pipeline.scores(plain.tokenize([texts[row] for row in some]))
    if several:
        known = [[id_ for id_ in rows[row] if id_ in labels] for row in some]
        return HeldOut(scores, target_array(known, labels, True), source)
    targets = np.array([labels.position(rows[row]) if rows[row] in labels else -1 for row in some], np.int64)
    return HeldOut(scores, targets, source)


def cross_fitted(
    bank: ModelBank,
    texts: Sequence[Any],
    rows: Sequence[Any],
    config: TrainingConfig,
    train: Callable[[Sequence[int], TrainingConfig], ModelBank],
) -> HeldOut | None:
    """The scores of rows by classifiers that were trained without them; None if there are too few rows.

    The weights are the same afterwards.

    Args:
        bank: The model and its labels, before training.
        texts: The texts.
        rows: Their labels.
        config: How to train.
        train: Trains on the rows with these numbers, and returns the bank.
    """
    folds = fold_rows(rows, bank.config.multi_label, config.seed)
    if not folds:
        return None
    quiet = replace(config, checkpoints=None, resume=False, patience=None)
    parts: list[HeldOut] = []
    for number, fold in enumerate(folds, 1):
        logger.info("Calibration: training without fold %d of %d.", number, len(folds))
        out = set(fold)
        kept = [row for row in range(len(rows)) if row not in out]
        with restoring(bank), progress_for(f"calibration, fold {number} of {len(folds)}"):
            try:
                trained = train(kept, quiet)
            except TrainingDivergedError:  # the classifier itself may still be trained well
                logger.warning("Training without fold %d diverged; it is left out of the calibration.", number)
                continue
            parts.append(score_rows(trained, [texts[row] for row in fold], [rows[row] for row in fold], "folds"))
    return _joined(parts) if parts else None


def calibrate_bank(bank: ModelBank, texts: Sequence[Any], rows: Sequence[Any]) -> ModelBank:
    """A bank that is calibrated on labelled rows; texts are encoded once."""
    labels, several = bank.known_labels, bank.config.multi_label
    held = score_rows(bank, texts, rows, "dev")
    if not (held.targets.any() if several else (held.targets >= 0).any()):
        raise MaskMatchError("None of these rows has a label of the classifier, so they cannot calibrate it.")
    unknown = 0 if several else int((held.targets < 0).sum())
    if unknown:
        logger.warning("%d of %d rows have a label that the classifier lacks; they are left out.", unknown, len(held))
    if len(held) - unknown < ENOUGH_TO_CALIBRATE:
        logger.warning(
            "%d rows are few to calibrate on; %d or more are better.", len(held) - unknown, ENOUGH_TO_CALIBRATE
        )
    if several:
        found, usual = fit_curve(held, list(labels))
        bank = bank.with_config(replace(bank.config, threshold=usual))
    else:
        bank = bank.copy()
        before = bank.calibration
        found = fit_calibration(held, list(labels), added=0.0 if before is None else before.added)
    if bank.config.abstain:
        logger.warning("The probability from which it answers was chosen before calibration; choose it again.")
    bank.learn(calibration=found)
    return bank


def _joined(parts: Sequence[HeldOut]) -> HeldOut:
    scores: NDArray[np.float32] = np.concatenate([part.scores for part in parts])
    return HeldOut(scores, np.concatenate([part.targets for part in parts]), parts[0].source)


@contextmanager
def restoring(bank: ModelBank) -> Iterator[None]:
    """Make the weights what they were when the block ends, whatever happens in it."""
    restore = restorer(bank)
    try:
        yield
    finally:
        restore()


def restorer(bank: ModelBank) -> Callable[[], None]:
    """A function that makes a classifier what it is now, its weights included."""
    if bank.model.diverged:
        raise MaskMatchError("The training of this classifier diverged, so there are no weights to keep.")
    model, learned = bank.model, bank.learned
    untrained = model.similarity.untrained
    state = {name: value.detach().clone() for name, value in model.state_dict().items()}

    def restore() -> None:
        model.load_state_dict(state)
        model.diverged, model.similarity.untrained = False, untrained
        bank.learn(**vars(learned))

    return restore
