"""Dev data: the rows that the best weights, and with several labels a text the threshold, are chosen by."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from maskmatch.data import is_table
from maskmatch.divergence import holds_numbers
from maskmatch.errors import MaskMatchError
from maskmatch.evaluation import best_threshold, measure, multi_label_accuracy, multi_label_micro_f1
from maskmatch.inputs import take_examples
from maskmatch.prediction import labels_above
from maskmatch.targets import labels_in, row_labels, target_array

if TYPE_CHECKING:
    from maskmatch.labels import LabelSet
    from maskmatch.scorer import Scorer

logger = logging.getLogger("maskmatch")

WORSE_THAN_ANY = -1.0
"""The score of weights that are no numbers."""


class DevData:
    """Dev rows, checked and tokenised once; calling it measures the weights as they are.

    Args:
        dev: ``(texts, labels)``, or a table that holds both.
        scorer: The classifier's scorer.
        labels: The classifier's labels.
    """

    def __init__(self, dev: Any, scorer: Scorer, labels: LabelSet) -> None:
        if not is_table(dev) and not (isinstance(dev, (tuple, list)) and len(dev) == 2):
            raise MaskMatchError("dev is (texts, labels), or a data frame that holds both.")
        texts, truth = (dev, None) if is_table(dev) else dev
        self._scorer, self._labels = scorer, labels
        try:
            examples = take_examples(texts, truth, scorer.config.fields)
            self._rows = row_labels(examples, labels, scorer.config.multi_label)
            self.prompts = scorer.tokenize(examples.texts, labels)
        except MaskMatchError as error:
            raise MaskMatchError(f"In the dev data: {error}") from None
        known = [id_ in labels for id_ in labels_in(self._rows, scorer.config.multi_label)]
        if not any(known):
            raise MaskMatchError(
                "None of the labels of the dev data are the classifier's; give dev rows with the labels of training."
            )
        if not all(known):
            logger.warning("%d labels of the dev data are not the classifier's and count as wrong.", known.count(False))

    def __call__(self) -> dict[str, float]:
        """Figures of the weights as they are, with "score" as the one to go by."""
        self._scorer.forget_labels()
        if not self._reads_numbers():
            return {"score": WORSE_THAN_ANY}  # so that weights from before are kept, if there are any
        return self._threshold_figures() if self._scorer.config.multi_label else self._figures()

    def _reads_numbers(self) -> bool:
        """Whether weights are numbers, and what they read of labels too: very large ones overflow on the way."""
        if not holds_numbers(self._scorer.model(self._labels)):
            return False
        in_context = self._scorer.config.labels_in_context
        return in_context or bool(self._scorer.label_vectors(self._labels)[0].isfinite().all())

    def _figures(self) -> dict[str, float]:
        """The task's metric, and accuracy."""
        predicted = [(pairs[0][0],) for pairs in self._scorer.prediction(self._labels).best(self.prompts, 1)]
        truth = [(row,) for row in self._rows]
        measured = measure(truth, predicted, self._labels.readings, usual=self._scorer.config.task.metric)
        figures = {measured.metric.name: measured.score, "accuracy": multi_label_accuracy(truth, predicted)}
        return {"score": measured.score, **figures}

    def _threshold_figures(self) -> dict[str, float]:
        """The threshold that serves the rows best, and the micro-F1 that it gives."""
        matrix = self._scorer.prediction(self._labels).probability_matrix(self.prompts)
        threshold = best_threshold(target_array(self._rows, self._labels, multi_label=True), matrix)
        micro = multi_label_micro_f1(self._rows, labels_above(matrix, self._labels, threshold))
        return {"score": micro, "micro_f1": micro, "threshold": threshold}
