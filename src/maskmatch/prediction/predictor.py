"""Predictor: what MaskMatcher and ExportedMatcher have in common. It classifies and evaluates, with any runtime."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from maskmatch.config.matcher import check_threshold
from maskmatch.data import Examples, take_examples, take_texts
from maskmatch.errors import MaskMatchError
from maskmatch.labels.targets import has_several, row_labels
from maskmatch.prediction.answers import check_count, warn_about_texts
from maskmatch.prediction.pipeline import FIRST_LABELS, Pipeline
from maskmatch.progress import showing_progress
from maskmatch.prompts.batches import BATCH_SIZE

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.evaluation import EvaluationReport, Metric
    from maskmatch.evaluation.explanation import Explanation
    from maskmatch.evaluation.selective import Abstention
    from maskmatch.labels import LabelSet
    from maskmatch.prediction.search import SearchReport
    from maskmatch.prompts import TokenizedPrompts

logger = logging.getLogger("maskmatch")

CHUNK_SIZE = 2048
"""How many texts of a stream are classified at once; as many are read meanwhile."""


class Predictor:
    """Classifies texts: what :class:`MaskMatcher` and :class:`ExportedMatcher` have in common.

    Attributes:
        report_: The last evaluation report.
        predicted_: The predictions of the last evaluation: a label per text, or a list of labels per text.
        right_: Whether each of them is right.
        confidence_: The probability of each predicted label; None with several labels per text.
        cut_: How many texts of the last call were truncated.
        verbose: Whether long calls show their progress.
    """

    def __init__(self, *, verbose: bool = True) -> None:
        self.report_: EvaluationReport | None = None
        self.predicted_: list[Any] | None = None
        self.right_: list[bool] | None = None
        self.confidence_: NDArray[np.float64] | None = None
        self.cut_ = 0
        self.verbose = verbose

    @property
    def labels(self) -> LabelSet | None:
        """The labels, in the order of ``predict_proba``'s columns; None before they are known."""
        raise NotImplementedError

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
        """What a reader of its metrics should know, in sentences."""
        return []

    @property
    def pipeline(self) -> Pipeline:
        """The prediction pipeline with labels and weights as they are now."""
        raise NotImplementedError

    @property
    def search_(self) -> SearchReport:
        """How the nearest labels are found, and the recall if the search is approximate."""
        return self.pipeline.search.report

    def __repr__(self) -> str:
        labels = "no labels yet" if self.labels is None else f"{len(self.labels)} labels"
        return (
            f"{type(self).__name__}({self.name!r}, {labels}, {self.config.method.name}, task {self.config.task.name})"
        )

    def predict(
        self,
        texts: Any,
        *,
        threshold: float | None = None,
        abstain: float | None = None,
        none_label: Any = None,
        batch_size: int = BATCH_SIZE,
    ) -> list[Any]:
        """The label of each text, as the user gave it; with several labels per text, a list of labels.

        Args:
            texts: Strings or dicts of fields, in a list, an array, a data frame, …
            threshold: With several labels per text: the probability from which a label applies, instead of the
                classifier's own threshold.
            abstain: With one label per text: below this probability of the best label the answer is ``none_label``,
                instead of the classifier's own setting. 0: always answer.
            none_label: The answer for such texts.
            batch_size: Texts per batch; it does not change the result.
        """
        if threshold is not None:
            self.check_multi_label()
            check_threshold(threshold)
        least = self.least_probability(abstain)
        pipeline, prompts = self._tokenize(texts)
        with showing_progress(self.verbose):
            if not self.config.multi_label:
                best = [pairs[0] for pairs in pipeline.top_k(prompts, 1, batch_size)]
                return [label if probability >= least else none_label for label, probability in best]
            return list(pipeline.above(prompts, threshold, batch_size))

    def predict_proba(self, texts: Any, *, batch_size: int = BATCH_SIZE) -> NDArray[np.float32]:
        """The probability of each label: (n, K), columns in the order of ``labels``."""
        pipeline, prompts = self._tokenize(texts)
        with showing_progress(self.verbose):
            return pipeline.probabilities(prompts, batch_size)

    def top_k(self, texts: Any, k: int = 5, *, batch_size: int = BATCH_SIZE) -> list[list[tuple[Hashable, float]]]:
        """The k best labels of each text with their probabilities, best first."""
        check_count(k, "k")
        pipeline, prompts = self._tokenize(texts)
        with showing_progress(self.verbose):
            return pipeline.top_k(prompts, k, batch_size)

    def iter_top_k(
        self, texts: Iterable[Any], k: int = 5, *, batch_size: int = BATCH_SIZE, chunk_size: int = CHUNK_SIZE
    ) -> Iterator[list[tuple[Hashable, float]]]:
        """The k best labels of each text of a stream, in order, in constant memory.

        Args:
            texts: Strings or dicts of fields, from an iterable of any length.
            k: How many labels.
            batch_size: Texts per batch; it does not change the result.
            chunk_size: Texts that are read at once and sorted by length.
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
        """Each chunk of texts with the k best labels of each text; the next chunk is tokenized meanwhile.

        Args:
            chunks: Texts in chunks, such as ``iter_examples`` yields.
            k: How many labels.
            threshold: If given: also all further labels with at least this probability.
            batch_size: Texts per batch; it does not change the result.
        """
        self.cut_ = 0
        for chunk, prompts, ranked, _ in self.pipeline.stream(
            chunks, k, batch_size, threshold=threshold, verbose=self.verbose
        ):
            self.cut_ += int(prompts.cut.sum())
            yield chunk, ranked

    def evaluate(
        self,
        texts: Any,
        labels: Any = None,
        *,
        metric: str | Metric | None = None,
        data: str | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> EvaluationReport:
        """Evaluate the classifier on labelled texts. A label that it does not have counts as wrong.

        Args:
            texts: Strings or dicts of fields; or a data frame or a Dataset that holds the labels too.
            labels: One label per text, or a list of labels per text; with a data frame, the name of its column.
            metric: The metric of the report's score; None: the task's, or micro-F1 with several labels per text.
            data: What the report and the model card call these texts, such as "banking77, test".
            batch_size: Texts per batch; it does not change the result.
        """
        from maskmatch.evaluation import evaluate_predictions, find_metric

        metric = None if metric is None else find_metric(metric)  # before the work, not after it
        examples = take_examples(texts, labels, self.config.fields, multi_label=self.config.multi_label)
        assert examples.labels is not None
        multi_label = self.config.multi_label
        if has_several(examples.labels) and not multi_label:
            raise MaskMatchError(
                "These rows have several labels each, but the classifier gives one label per text; it needs "
                "multi_label=True (--multi-label)."
            )
        truth = row_labels(examples, self.labels, multi_label)
        started = time.perf_counter()
        pipeline, prompts = self._tokenize(examples.texts)
        with showing_progress(self.verbose):
            predictions = pipeline.predict(prompts, batch_size)
        self.report_ = evaluate_predictions(
            examples.texts,
            truth,
            predictions.labels,
            labels=list(pipeline.labels),
            confidence=predictions.confidence,
            probabilities=predictions.probabilities,
            multi_label=multi_label,
            threshold=self.config.threshold if multi_label else None,
            abstain=0.0 if multi_label else self.config.abstain,
            cut=self.cut_,
            seconds=time.perf_counter() - started,
            model=f"{self.name} ({self.config.method.name})",
            data=data,
            names=pipeline.labels.names_by_id,
            metric=metric,
            usual_metric=self.config.task.metric,
            notes=self.notes,
        )
        self.predicted_, self.confidence_ = predictions.labels, predictions.confidence
        pairs = zip(truth, predictions.labels, strict=True)
        self.right_ = [set(true) == set(found) if multi_label else true == found for true, found in pairs]
        self._evaluated(self.report_)
        return self.report_

    def _evaluated(self, report: EvaluationReport) -> None:
        """Called with every new report."""

    def _tokenize(self, texts: Any, pipeline: Pipeline | None = None) -> tuple[Pipeline, TokenizedPrompts]:
        """The pipeline, and texts in their prompts; warns about those that were truncated."""
        pipeline = self.pipeline if pipeline is None else pipeline
        prompts = pipeline.tokenize(take_texts(texts, self.config.fields, allow_empty=True))
        self.cut_ = warn_about_texts(prompts, self.config.max_length)
        return pipeline, prompts

    def least_probability(self, abstain: float | None = None) -> float:
        """The probability from which the best label is the answer: as given, or the classifier's own."""
        if abstain is None:
            return self.config.abstain
        if self.config.multi_label:
            raise MaskMatchError(
                "abstain needs one label per text, and this classifier gives several; set the threshold instead."
            )
        check_threshold(abstain, "abstain")
        return abstain

    def choose_abstention(
        self, texts: Any, labels: Any = None, *, right: float = 0.95, confidence: float = 0.95
    ) -> Abstention:
        """The least probability from which answers are right this often, chosen on dev texts.

        Pass its ``threshold`` to ``predict(abstain=…)``, or to ``MaskMatcher.abstain_below``, which is saved.

        Args:
            texts: Strings or dicts of fields; or a data frame or a Dataset that holds the labels too.
            labels: One label per text; with a data frame, the name of its column. A label that the classifier does not
                have counts as wrong.
            right: The share of answers that should be right.
            confidence: With what confidence, for texts like these.
        """
        from maskmatch.evaluation.selective import choose_abstention

        if self.config.multi_label:
            raise MaskMatchError("Abstaining needs one label per text, and this classifier gives several.")
        examples = take_examples(texts, labels, self.config.fields)
        truth = row_labels(examples, self.labels, False)
        pipeline, prompts = self._tokenize(examples.texts)
        with showing_progress(self.verbose):
            found = pipeline.predict(prompts)
        correct = [one == other for one, other in zip(found.labels, truth, strict=True)]
        return choose_abstention(found.confidence if found.confidence is not None else [], correct, right, confidence)

    def predict_set(self, texts: Any, *, coverage: float = 0.9, batch_size: int = BATCH_SIZE) -> list[list[Hashable]]:
        """The labels that a text may have, best first: the true one is among them with this probability (conformal).

        It needs a calibration: on dev rows (``fit(…, dev=…)`` or ``calibrate``), or on rows held out in training. The
        guarantee is on average over texts that are drawn like these rows, with the labels of that time. It breaks if
        texts drift, or labels are edited. A set always has the most probable label.

        Args:
            texts: Strings or dicts of fields, in a list, an array, a data frame, …
            coverage: How often the true label should be in the set.
            batch_size: Texts per batch; it does not change the result.
        """
        if not isinstance(coverage, (int, float)) or isinstance(coverage, bool) or not 0 < coverage < 1:
            raise MaskMatchError(f"coverage is {coverage!r}; it must be between 0 and 1.")
        if self.config.multi_label:
            raise MaskMatchError("predict_set needs one label per text, and this classifier gives several.")
        pipeline, prompts = self._tokenize(texts)
        calibration = pipeline.calibration
        rows = 0 if calibration is None else len(calibration.conformity)
        least = None if calibration is None else calibration.least_probability(coverage)
        if least is None:
            raise MaskMatchError(
                f"Sets with a coverage of {coverage:g} need a calibration on at least "
                f"{math.ceil(coverage / (1 - coverage)):,} labelled rows, and there are {rows:,}; call calibrate with "
                "dev rows, or give dev to fit."
            )
        assert calibration is not None
        if calibration.labels != len(pipeline.labels):
            logger.warning(
                "The classifier was calibrated with %d labels and has %d now, so the coverage is not guaranteed.",
                calibration.labels,
                len(pipeline.labels),
            )
        with showing_progress(self.verbose):
            ranked = pipeline.top_k(prompts, FIRST_LABELS, batch_size, threshold=least)
        return [
            [label for place, (label, value) in enumerate(pairs) if value >= least or not place] for pairs in ranked
        ]

    def novelty(self, texts: Any, *, batch_size: int = BATCH_SIZE) -> NDArray[np.float64]:
        """How far each text is from all labels: (n,), higher is further. It tells texts that no label fits.

        The numbers of one classifier can be compared with each other, until it is trained or adapted again.

        Args:
            texts: Strings or dicts of fields, in a list, an array, a data frame, …
            batch_size: Texts per batch; it does not change the result.
        """
        pipeline, prompts = self._tokenize(texts)
        with showing_progress(self.verbose):
            return pipeline.novelty(prompts, batch_size)

    def explain(self, text: Any, *, k: int = 3) -> Explanation:
        """Why a text gets its label: the words that speak for each of its k most probable labels.

        Each word is removed, one at a time, and all these texts are classified in one batch.

        Args:
            text: A string, or a dict of fields.
            k: How many labels to explain.
        """
        from maskmatch.prediction.occlusion import explain

        check_count(k, "k")
        if not isinstance(text, (str, Mapping)):
            raise MaskMatchError(
                f"explain takes one text, a string or a dict of fields, not {type(text).__name__}; call it per text."
            )
        pipeline, _ = self._tokenize([text])  # warns if the text is truncated
        with showing_progress(False):
            return explain(pipeline, text, k)

    def check_multi_label(self) -> None:
        """Raise unless a text may have several labels."""
        if not self.config.multi_label:
            raise MaskMatchError(
                "A threshold needs several labels per text, and this classifier gives one; make it a multi-label "
                "classifier or leave the threshold out."
            )
