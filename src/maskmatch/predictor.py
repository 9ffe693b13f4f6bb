"""Predictor: classifies texts. A trained or zero-shot MaskMatcher is one, and so is an export, which needs no torch."""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, Any

from maskmatch.batches import BATCH_SIZE
from maskmatch.config import check_threshold
from maskmatch.data import Examples
from maskmatch.errors import MaskMatchError
from maskmatch.inputs import take_examples, take_texts
from maskmatch.prediction import Prediction, check_count, tell_cut
from maskmatch.prefetch import prefetched
from maskmatch.targets import has_several, row_labels

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from maskmatch.config import MatcherConfig
    from maskmatch.evaluation import EvaluationReport, Metric
    from maskmatch.labels import LabelSet
    from maskmatch.prompts import TokenizedPrompts
    from maskmatch.search import SearchReport

CHUNK_SIZE = 2048
"""How many texts of a stream are in memory at once, twice: while they are classified, the next ones are read."""


class Predictor:
    """Classifies texts: what :class:`MaskMatcher` and an export have in common.

    Attributes:
        labels: The labels, in the order of ``predict_proba``'s columns.
        report_: The last evaluation.
        predicted_: What the last evaluation predicted: a label a text, or a list of labels a text.
        cut_: How many texts of the last call were longer than the model reads, and were shortened.
    """

    labels: LabelSet | None

    def __init__(self, labels: LabelSet | None) -> None:
        self.labels = labels
        self.report_: EvaluationReport | None = None
        self.predicted_: list[Any] | None = None
        self.cut_ = 0

    @property
    def config(self) -> MatcherConfig:
        """Task, prompts, method, similarity."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """What reports call it."""
        raise NotImplementedError

    @property
    def notes(self) -> list[str]:
        """What a reader of figures should know about how they came to be, in sentences."""
        return []

    def prediction(self) -> Prediction:
        """The prediction path with everything as it is now."""
        raise NotImplementedError

    @property
    def search_(self) -> SearchReport:
        """How the best labels are found among those that there are now, and how well where that is not exact."""
        return self.prediction().search.report

    def _tokenize(self, texts: list[Any]) -> TokenizedPrompts:
        raise NotImplementedError

    def predict(self, texts: Any, *, threshold: float | None = None, batch_size: int = BATCH_SIZE) -> list[Any]:
        """The best label of each text, as the user gave it; with several labels a text, a list of them.

        Args:
            texts: Strings or dicts of fields, in a list, an array, a data frame, …
            threshold: With several labels a text: from which probability on a label applies, instead of the
                classifier's own threshold.
            batch_size: Texts a batch; it does not change the result.
        """
        if threshold is not None:
            self._check_several()
            check_threshold(threshold)
        prompts, prediction = self._read(texts), self.prediction()
        if not self.config.multi_label:
            return [pairs[0][0] for pairs in prediction.best(prompts, 1, batch_size)]
        return list(prediction.above(prompts, self.config.threshold if threshold is None else threshold, batch_size))

    def predict_proba(self, texts: Any, *, batch_size: int = BATCH_SIZE) -> NDArray[np.float32]:
        """The probability of each label: (n, K), columns in the order of ``labels``."""
        prompts = self._read(texts)
        return self.prediction().probability_matrix(prompts, batch_size)

    def top_k(self, texts: Any, k: int = 5, *, batch_size: int = BATCH_SIZE) -> list[list[tuple[Hashable, float]]]:
        """The k best labels of each text with their probabilities, best first."""
        check_count(k, "k")
        prompts = self._read(texts)
        return self.prediction().best(prompts, k, batch_size)

    def iter_top_k(
        self, texts: Iterable[Any], k: int = 5, *, batch_size: int = BATCH_SIZE, chunk_size: int = CHUNK_SIZE
    ) -> Iterator[list[tuple[Hashable, float]]]:
        """The k best labels of each text of a stream, in order, in constant memory.

        Args:
            texts: Strings or dicts of fields, from anything that can be iterated over, of any length.
            k: How many labels.
            batch_size: Texts a batch; it does not change the result.
            chunk_size: Texts that are read at once, and sorted by their length.
        """
        check_count(k, "k")
        check_count(chunk_size, "chunk_size")
        iterator = iter(texts)
        chunks = (Examples(chunk) for chunk in iter(lambda: list(islice(iterator, chunk_size)), []))
        for _, lists in self.stream(chunks, k, batch_size=batch_size):
            yield from lists

    def stream(
        self, chunks: Iterable[Examples], k: int, *, threshold: float | None = None, batch_size: int = BATCH_SIZE
    ) -> Iterator[tuple[Examples, list[list[tuple[Hashable, float]]]]]:
        """Each chunk of texts with the k best labels of each of them; the next chunk is tokenised meanwhile.

        Args:
            chunks: Texts in chunks, such as ``iter_examples`` yields.
            k: How many labels.
            threshold: If given: also all further labels that have at least this probability.
            batch_size: Texts a batch; it does not change the result.
        """
        prediction = self.prediction()
        self.cut_ = 0
        for chunk, prompts in prefetched(chunks, lambda chunk: prediction.tokenize(chunk.texts)):
            self.cut_ += tell_cut(prompts, self.config.max_length)
            yield chunk, prediction.best(prompts, k, batch_size, threshold=threshold)

    def evaluate(
        self,
        texts: Any,
        labels: Any = None,
        *,
        metric: str | Metric | None = None,
        data: str | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> EvaluationReport:
        """Measure the classifier on labelled texts. A label it does not have counts as wrong.

        Args:
            texts: Strings or dicts of fields; or a data frame or a Dataset that holds the labels too.
            labels: One label a text, or a list of labels a text; with a data frame, the name of its column.
            metric: What the report's score is; None: the task's usual metric, or micro-F1 with several labels a text.
            data: What the report and the model card should call these texts, such as "banking77, test".
            batch_size: Texts a batch; it does not change the result.
        """
        from maskmatch.evaluation import evaluate_predictions, find_metric

        metric = None if metric is None else find_metric(metric)  # before the work, not after it
        examples = take_examples(texts, labels, self.config.fields)
        assert examples.labels is not None
        multi_label = self.config.multi_label
        if has_several(examples.labels) and not multi_label:
            raise MaskMatchError("These rows have several labels each, but the classifier gives one a text.")
        truth = row_labels(examples, self.labels, multi_label)
        started = time.perf_counter()
        prompts, prediction = self._read(examples.texts), self.prediction()
        found = prediction.judge(prompts, batch_size)
        self.report_ = evaluate_predictions(
            examples.texts,
            truth,
            found.predicted,
            labels=list(prediction.labels),
            confidence=found.confidence,
            probabilities=found.probabilities,
            multi_label=multi_label,
            threshold=self.config.threshold if multi_label else None,
            cut=self.cut_,
            seconds=time.perf_counter() - started,
            model=f"{self.name} ({self.config.method.name})",
            data=data,
            names=prediction.labels.readings,
            metric=metric,
            usual_metric=self.config.task.metric,
            notes=self.notes,
        )
        self.predicted_ = found.predicted
        return self.report_

    def _read(self, texts: Any) -> TokenizedPrompts:
        """Texts to classify, tokenised, with a word about those that had to be shortened."""
        prompts = self._tokenize(take_texts(texts, self.config.fields))
        self.cut_ = tell_cut(prompts, self.config.max_length)
        return prompts

    def _check_several(self) -> None:
        if not self.config.multi_label:
            raise MaskMatchError(
                "A threshold goes with several labels a text, and this classifier gives one; make it a multi-label one "
                "or leave the threshold out."
            )
