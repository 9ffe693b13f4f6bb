"""Dev data: the rows by which the best checkpoint, and with several labels per text the threshold, are chosen."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.data import Examples, is_table, take_examples
from maskmatch.errors import MaskMatchError
from maskmatch.evaluation import best_threshold, measure, multi_label_accuracy, multi_label_micro_f1
from maskmatch.labels.targets import labels_in, row_labels, target_array
from maskmatch.prediction.answers import labels_above
from maskmatch.prediction.runtimes.torch import torch_pipeline
from maskmatch.training.divergence import all_finite
from maskmatch.training.held_out import score_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.model.model_bank import ModelBank
    from maskmatch.training.calibration import HeldOut

logger = logging.getLogger("maskmatch")

WORST_SCORE = -1.0
"""The score of weights that are NaN or inf."""


def take_dev(dev: Any, config: MatcherConfig) -> Examples:
    """The rows of dev data: ``(texts, labels)``, or a table that holds both. Rows are returned as they are."""
    if isinstance(dev, Examples):
        return dev
    if not is_table(dev) and not (isinstance(dev, (tuple, list)) and len(dev) == 2):
        raise MaskMatchError("dev is (texts, labels), or a data frame that holds both.")
    texts, truth = (dev, None) if is_table(dev) else dev
    try:
        return take_examples(texts, truth, config.fields, multi_label=config.multi_label)
    except MaskMatchError as error:
        raise MaskMatchError(f"In the dev data: {error}") from None


class DevData:
    """Dev rows, checked and tokenized once; calling it evaluates the weights of now.

    Args:
        dev: What :func:`take_dev` takes.
        bank: The model and its labels.
    """

    def __init__(self, dev: Any, bank: ModelBank) -> None:
        examples = take_dev(dev, bank.config)
        labels, multi_label = bank.known_labels, bank.config.multi_label
        self._bank = bank
        try:
            self._rows = row_labels(examples, labels, multi_label)
            self.prompts = bank.tokenize(examples.texts)
            self._texts = examples.texts
        except MaskMatchError as error:
            raise MaskMatchError(f"In the dev data: {error}") from None
        unknown = [id_ for id_ in labels_in(self._rows, multi_label) if id_ not in labels]
        named = ", ".join(repr(id_) for id_ in unknown[:3]) + (", …" if len(unknown) > 3 else "")
        if len(unknown) == len(labels_in(self._rows, multi_label)):
            raise MaskMatchError(
                f"The classifier has none of the labels of the dev data ({named}); give dev rows with its labels."
            )
        if unknown:
            logger.warning("The classifier lacks labels of the dev data, whose rows count as wrong: %s.", named)

    def held_out(self) -> HeldOut:
        """The scores of the rows by the weights of now, to calibrate by."""
        return score_rows(self._bank, self._texts, self._rows, "dev")

    def finished(self, bank: ModelBank) -> dict[str, float]:
        """With several labels per text: the metrics of a finished classifier, with its own thresholds."""
        micro = multi_label_micro_f1(self._rows, torch_pipeline(bank).predict(self.prompts).labels)
        return {"score": micro, "micro_f1": micro, "threshold": bank.config.threshold}

    def __call__(self) -> dict[str, float]:
        """Metrics of the weights of now, with "score" as the one to choose by."""
        with self._bank.model.evaluating():  # all of it, so that labels are encoded once
            if not self._is_finite():
                return {"score": WORST_SCORE}  # so that an earlier checkpoint is chosen, if there is one
            if self._bank.config.multi_label:
                return self._threshold_metrics()
            return self.metrics(torch_pipeline(self._bank).predict(self.prompts).labels)

    def _is_finite(self) -> bool:
        """Whether weights and label vectors are finite: very large weights overflow on the way to a vector."""
        if not all_finite(self._bank.model):
            return False
        return self._bank.config.labels_in_context or bool(np.isfinite(self._bank.vectors()).all())

    def metrics(self, labels: Sequence[Any]) -> dict[str, float]:
        """The task's metric as "score" and by its name, and accuracy, of predicted labels: one per text."""
        predicted = [(label,) for label in labels]
        truth = [(row,) for row in self._rows]
        names = self._bank.known_labels.names_by_id
        measured = measure(truth, predicted, names, usual=self._bank.config.task.metric)
        metrics = {measured.metric.name: measured.score, "accuracy": multi_label_accuracy(truth, predicted)}
        return {"score": measured.score, **metrics}

    def _threshold_metrics(self) -> dict[str, float]:
        """The best threshold for the rows, and its micro-F1."""
        labels = self._bank.known_labels
        matrix = torch_pipeline(self._bank).probabilities(self.prompts)
        threshold = best_threshold(target_array(self._rows, labels, multi_label=True), matrix)
        micro = multi_label_micro_f1(self._rows, labels_above(matrix, labels, threshold))
        return {"score": micro, "micro_f1": micro, "threshold": threshold}
