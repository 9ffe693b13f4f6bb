"""Dev data: the rows by which the best checkpoint, and with several labels per text the threshold, are chosen."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from maskmatch.data import is_table, take_examples
from maskmatch.errors import MaskMatchError
from maskmatch.evaluation import best_threshold, measure, multi_label_accuracy, multi_label_micro_f1
from maskmatch.labels.targets import labels_in, row_labels, target_array
from maskmatch.prediction.pipeline import labels_above
from maskmatch.prediction.runtimes.torch import torch_pipeline
from maskmatch.training.divergence import all_finite

if TYPE_CHECKING:
    from maskmatch.model.label_bank import LabelBank

logger = logging.getLogger("maskmatch")

WORST_SCORE = -1.0
"""The score of weights that are NaN or inf."""


class DevData:
    """Dev rows, checked and tokenized once; calling it evaluates the weights of now.

    Args:
        dev: ``(texts, labels)``, or a table that holds both.
        bank: The model and its labels.
    """

    def __init__(self, dev: Any, bank: LabelBank) -> None:
        if not is_table(dev) and not (isinstance(dev, (tuple, list)) and len(dev) == 2):
            raise MaskMatchError("dev is (texts, labels), or a data frame that holds both.")
        texts, truth = (dev, None) if is_table(dev) else dev
        labels, multi_label = bank.known_labels, bank.config.multi_label
        self._bank = bank
        try:
            examples = take_examples(texts, truth, bank.config.fields)
            self._rows = row_labels(examples, labels, multi_label)
            self.prompts = bank.tokenize(examples.texts)
        except MaskMatchError as error:
            raise MaskMatchError(f"In the dev data: {error}") from None
        known = [id_ in labels for id_ in labels_in(self._rows, multi_label)]
        if not any(known):
            raise MaskMatchError(
                "The classifier has none of the labels of the dev data; give dev rows with the labels of training."
            )
        if not all(known):
            logger.warning("The classifier lacks %d labels of the dev data; they count as wrong.", known.count(False))

    def __call__(self) -> dict[str, float]:
        """Metrics of the weights of now, with "score" as the one to choose by."""
        with self._bank.model.evaluating():  # all of it, so that labels are encoded once
            if not self._is_finite():
                return {"score": WORST_SCORE}  # so that an earlier checkpoint is chosen, if there is one
            return self._threshold_metrics() if self._bank.config.multi_label else self._metrics()

    def _is_finite(self) -> bool:
        """Whether weights and label vectors are finite: very large weights overflow on the way to a vector."""
        if not all_finite(self._bank.model):
            return False
        return self._bank.config.labels_in_context or bool(self._bank.vectors().isfinite().all())

    def _metrics(self) -> dict[str, float]:
        """The task's metric, and accuracy."""
        predicted = [(label,) for label in torch_pipeline(self._bank).predict(self.prompts).labels]
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
