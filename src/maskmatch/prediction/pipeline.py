"""The one prediction pipeline: texts → prompts → batches → input vectors → similarity to label vectors → top-k.

Only "batch → input vectors" needs an encoder: a runtime computes them, with torch or ONNX. The rest is numpy.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.prediction.overlap import prefetched
from maskmatch.prediction.search import ExactSearch, make_search
from maskmatch.prediction.search import probabilities as probabilities_of
from maskmatch.progress import progress_bar, showing_progress
from maskmatch.prompts import FieldText, tokenize_texts
from maskmatch.prompts.batches import BATCH_SIZE, PaddedBatch, length_groups

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.data import Examples
    from maskmatch.labels import LabelSet
    from maskmatch.prediction.label_scorer import LabelScorer
    from maskmatch.prediction.search import LabelSearch, MeasuredIndex
    from maskmatch.prompts import PromptTokenizer, TokenizedPrompts

    Vectors = Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]
    Scored = tuple[NDArray[np.int64], NDArray[np.float32], LabelScorer]

logger = logging.getLogger("maskmatch")

FIRST_LABELS = 16
"""How many labels of a text are ranked first where several may apply."""

FEW_TEXTS = 256
"""For fewer texts, "auto" builds no index: comparing them with a million labels takes seconds, an index a minute."""

SEARCHED_TOGETHER = 256
"""How many texts are compared with all labels at once: each comparison loads all label vectors from memory."""

INDEX_QUERIES = 128
"""How many label texts are read as texts to measure an index."""


class Runtime(Protocol):
    """Computes the input vectors of a batch. A new runtime is a file in ``runtimes`` and a row in its table."""

    def __call__(self, batch: PaddedBatch) -> NDArray[np.float32]:
        """The vectors of texts, all of whose prompts are in the batch: (texts, masks, dim)."""

    def map(self, batches: Iterable[PaddedBatch]) -> Iterator[NDArray[np.float32]]:
        """The vectors of each batch, in order; a runtime may compute several batches at once."""


@dataclass(frozen=True)
class Predictions:
    """The predicted label and confidence of each text; or with several labels per text, lists and all probabilities."""

    labels: list[Any]
    confidence: NDArray[np.float64] | None = None  # (n,)
    probabilities: NDArray[np.float32] | None = None  # (n, K)


@dataclass(frozen=True)
class Pipeline:
    """The prediction pipeline of a classifier.

    Attributes:
        config: Prompts, method, similarity.
        tokenizer: Turns prompts into tokens.
        labels: The labels.
        scorer: Scores input vectors with labels.
        runtime: Computes the vectors of texts.
        label_runtime: Computes the vectors of label prompts, if labels are read with each text.
        index: An index over the labels that was built before.
    """

    config: MatcherConfig
    tokenizer: PromptTokenizer
    labels: LabelSet
    scorer: LabelScorer
    runtime: Runtime
    label_runtime: Runtime | None = None
    index: MeasuredIndex | None = None

    def tokenize(self, texts: Sequence[Any]) -> TokenizedPrompts:
        """Texts in their input prompts; if labels are read with each text, also in the label prompts."""
        return tokenize_texts(self.tokenizer, self.config, texts, self.labels)

    # -- vectors ---------------------------------------------------------------------------------------------

    def vectors(self, prompts: TokenizedPrompts, batch_size: int = BATCH_SIZE, task: str = "encoding texts") -> Vectors:
        """Row numbers and their input vectors (rows, masks, dim), in batches of similar length."""
        check_count(batch_size, "batch_size")
        groups = length_groups(prompts.lengths, batch_size)
        computed = self._run(self.runtime, prompts, groups)
        with progress_bar(len(prompts), task, "text") as bar:
            for rows, vectors in zip(groups, computed, strict=True):
                yield rows, vectors
                bar.update(len(rows))

    def all_vectors(self, prompts: TokenizedPrompts) -> NDArray[np.float32]:
        """The input vectors of all texts: (n, masks, dim)."""
        return _in_order(list(self.vectors(prompts)))

    def scored(self, prompts: TokenizedPrompts, batch_size: int = BATCH_SIZE) -> Iterator[Scored]:
        """Row numbers, input vectors (rows, masks, dim) and the scorer to compare them by, in batches."""
        for rows, vectors in self.vectors(prompts, batch_size, "classifying"):
            yield rows, vectors, self._scorer_for(prompts, rows, batch_size)

    def _scorer_for(self, prompts: TokenizedPrompts, rows: NDArray[np.int64], batch_size: int) -> LabelScorer:
        """The scorer of these texts: the same for all, unless labels are read with each text."""
        if not self.scorer.in_context:
            return self.scorer
        own = prompts.select(rows).label_prompts
        assert own is not None
        assert self.label_runtime is not None
        groups = length_groups(own.lengths, batch_size)
        vectors = _in_order(list(zip(groups, self._run(self.label_runtime, own, groups), strict=True)))
        return self.scorer.for_texts(vectors.reshape(len(rows), -1, *vectors.shape[1:]))  # (rows, F, masks, dim)

    def _run(
        self, runtime: Runtime, prompts: TokenizedPrompts, groups: Iterable[NDArray[np.int64]]
    ) -> Iterator[NDArray[np.float32]]:
        """The vectors of each group of rows: (rows, masks, dim)."""
        pad = self.tokenizer.vocabulary.pad_id
        return runtime.map(PaddedBatch.of(prompts, rows, pad) for rows in groups)

    # -- answers ---------------------------------------------------------------------------------------------

    def scores(self, prompts: TokenizedPrompts) -> NDArray[np.float32]:
        """The scores (logits) of all labels: (n, K)."""
        matrix = np.zeros((len(prompts), len(self.labels)), dtype=np.float32)
        for rows, vectors, scorer in self.scored(prompts):
            matrix[rows] = scorer.scores(vectors)
        return matrix

    def probabilities(self, prompts: TokenizedPrompts, batch_size: int = BATCH_SIZE) -> NDArray[np.float32]:
        """The probabilities of all labels: (n, K)."""
        matrix = np.zeros((len(prompts), len(self.labels)), dtype=np.float32)
        for rows, vectors, scorer in self.scored(prompts, batch_size):
            matrix[rows] = scorer.probabilities(vectors)
        return matrix

    @cached_property
    def search(self) -> LabelSearch:
        """The search for the nearest labels, made when it is first needed."""
        return make_search(self.scorer, self.config.search, self._index_queries, self.index)

    def top_k(
        self, prompts: TokenizedPrompts, k: int, batch_size: int = BATCH_SIZE, *, threshold: float | None = None
    ) -> list[list[tuple[Hashable, float]]]:
        """The k best labels of each text with their probabilities, best first.

        Args:
            prompts: The texts in their prompts.
            k: How many labels.
            batch_size: Texts per batch.
            threshold: If given: also all further labels with at least this probability.
        """
        labels = self.labels
        ranked: list[list[tuple[Hashable, float]]] = [[] for _ in range(len(prompts))]
        own = None if self.scorer.in_context else self._search_for(len(prompts))
        batches = self.scored(prompts, batch_size)
        for rows, vectors, scorer in batches if own is None else _together(batches):
            search = ExactSearch(scorer) if own is None else own
            places, values = self._nearest(vectors, k, threshold, search)
            counts = np.full(len(rows), k) if threshold is None else np.maximum((values >= threshold).sum(axis=1), k)
            for row, count, row_places, row_values in zip(
                rows.tolist(), counts.tolist(), places.tolist(), values.tolist(), strict=True
            ):
                pairs = zip(row_places[:count], row_values[:count], strict=True)
                ranked[row] = [(labels[place], value) for place, value in pairs]
        return ranked

    def stream(
        self,
        chunks: Iterable[Examples],
        k: int,
        batch_size: int = BATCH_SIZE,
        *,
        threshold: float | None = None,
        verbose: bool = True,
    ) -> Iterator[tuple[Examples, TokenizedPrompts, list[list[tuple[Hashable, float]]]]]:
        """Each chunk of texts, its prompts, and the k best labels per text; the next chunk is tokenized meanwhile.

        Args:
            chunks: Texts in chunks, such as ``iter_examples`` yields.
            k: How many labels.
            batch_size: Texts per batch.
            threshold: If given: also all further labels with at least this probability.
            verbose: Whether to show progress.
        """
        rows = 0

        def tokenize(chunk: Examples) -> TokenizedPrompts:
            nonlocal rows
            rows += len(chunk.texts)
            return tokenize_texts(
                self.tokenizer, self.config, chunk.texts, self.labels, first_row=rows - len(chunk.texts)
            )

        for chunk, prompts in prefetched(chunks, tokenize):
            warn_truncated(prompts, self.config.max_length)
            with showing_progress(verbose):  # not around the yield: another thread may go on
                ranked = self.top_k(prompts, k, batch_size, threshold=threshold)
            yield chunk, prompts, ranked

    def nearest(self, vectors: NDArray[np.float32], k: int = 1) -> list[list[tuple[Hashable, float]]]:
        """The k best labels by input vectors (n, masks, dim), if labels are not read with each text."""
        search = self._search_for(len(vectors))
        ranked: list[list[tuple[Hashable, float]]] = []
        for start in range(0, len(vectors), SEARCHED_TOGETHER):
            places, values = self._nearest(vectors[start : start + SEARCHED_TOGETHER], k, None, search)
            for row_places, row_values in zip(places.tolist(), values.tolist(), strict=True):
                ranked.append([(self.labels[at], value) for at, value in zip(row_places, row_values, strict=True)])
        return ranked

    def _search_for(self, texts: int) -> LabelSearch:
        """The search for this number of texts: a few are compared with all labels before an index is built."""
        built = self.index is not None or "search" in vars(self)
        few = self.config.search == "auto" and texts < FEW_TEXTS and not built
        return ExactSearch(self.scorer) if few else self.search

    def _nearest(
        self, vectors: NDArray[np.float32], k: int, threshold: float | None, search: LabelSearch
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The positions and probabilities of the k best labels of texts, or of more if more may apply."""
        nearest = search(vectors, min(k, len(self.labels)))
        values = probabilities_of(self.scorer, nearest)
        if threshold is None or k >= len(self.labels) or not (values[:, -1] >= threshold).any():
            return nearest.places, values
        return self._nearest(vectors, max(FIRST_LABELS, 4 * k), threshold, search)

    def above(self, prompts: TokenizedPrompts, threshold: float, batch_size: int = BATCH_SIZE) -> list[list[Hashable]]:
        """The labels of each text with at least this probability, best first."""
        ranked = self.top_k(prompts, FIRST_LABELS, batch_size, threshold=threshold)
        return [[id_ for id_, value in pairs if value >= threshold] for pairs in ranked]

    def predict(self, prompts: TokenizedPrompts, batch_size: int = BATCH_SIZE) -> Predictions:
        """The predicted labels, and how confident they are."""
        if not self.config.multi_label:
            best = [pairs[0] for pairs in self.top_k(prompts, 1, batch_size)]
            return Predictions([id_ for id_, _ in best], confidence=np.array([value for _, value in best]))
        matrix = self.probabilities(prompts, batch_size)
        return Predictions(list(labels_above(matrix, self.labels, self.config.threshold)), probabilities=matrix)

    def _index_queries(self) -> NDArray[np.float32]:
        """Vectors to measure an index with, (n, masks, dim): label texts read as texts, and points midway between."""
        texts = [str(text) for text in self.scorer.layout.texts] or [label.name for label in self.labels.labels]
        some = np.unique(np.linspace(0, len(texts) - 1, INDEX_QUERIES, dtype=np.int64))
        fields = [dict.fromkeys(self.config.input_fields, FieldText(texts[place])) for place in some.tolist()]
        vectors = self.all_vectors(self.tokenizer.pooled(self.config.prompts, fields))
        return np.concatenate([vectors, (vectors + np.roll(vectors, len(vectors) // 2, axis=0)) / 2])


def paired_answers(
    before: Pipeline, after: Pipeline, texts: Sequence[Any]
) -> tuple[list[tuple[Hashable, float]], list[tuple[Hashable, float]]]:
    """The best label of each text with its probability, by two pipelines that encode texts alike.

    A text is encoded once, unless labels are read with each text.
    """
    if before.config.multi_label:
        raise MaskMatchError("Predictions can be compared with one label per text; this classifier gives several.")
    prompts = before.tokenize(texts)
    if before.scorer.in_context:
        first, second = before.top_k(prompts, 1), after.top_k(after.tokenize(texts), 1)
    else:
        vectors = before.all_vectors(prompts)
        first, second = before.nearest(vectors), after.nearest(vectors)
    return [pairs[0] for pairs in first], [pairs[0] for pairs in second]


def _together(batches: Iterator[Scored]) -> Iterator[Scored]:
    """Batches joined to larger ones, all of which are compared with the same labels."""
    waiting: list[Scored] = []
    for batch in batches:
        waiting.append(batch)
        if sum(len(rows) for rows, _, _ in waiting) >= SEARCHED_TOGETHER:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(batches: Sequence[Scored]) -> Scored:
    rows, vectors, scorers = zip(*batches, strict=True)
    return np.concatenate(rows), np.concatenate(vectors), scorers[0]


def _in_order(parts: Sequence[tuple[NDArray[np.int64], NDArray[np.float32]]]) -> NDArray[np.float32]:
    """The vectors of batches, each with its row numbers, in the order of rows."""
    order = np.argsort(np.concatenate([rows for rows, _ in parts]))
    return np.asarray(np.concatenate([vectors for _, vectors in parts])[order])


def labels_above(probabilities: NDArray[Any], labels: LabelSet, threshold: float) -> list[list[Hashable]]:
    """Per row, the labels at or above a threshold, best first."""
    order = np.argsort(-probabilities, axis=1, kind="stable").tolist()
    counts = (probabilities >= threshold).sum(axis=1).tolist()
    return [[labels[place] for place in places[:count]] for places, count in zip(order, counts, strict=True)]


def warn_truncated(prompts: TokenizedPrompts, max_length: int) -> int:
    """Warn how many texts were truncated, if any; returns their number."""
    cut = int(prompts.cut.sum())
    if cut:
        logger.warning("%d of %d texts were longer than %d tokens and were truncated.", cut, len(prompts), max_length)
    return cut


def check_count(value: Any, name: str) -> None:
    """Raise unless the value is a positive integer."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise MaskMatchError(f"{name} is {value!r}; it must be an integer of at least 1.")


DIGITS = 6
"""To how many digits probabilities are rounded."""


def json_answer(
    ranked: Sequence[tuple[Hashable, float]],
    k: int,
    threshold: float | None = None,
    *,
    abstain: float = 0.0,
    none_label: Hashable = None,
) -> dict[str, Any]:
    """The answer for one text.

    >>> json_answer([("refund", 0.75), ("card lost", 0.25)], k=1)
    {'label': 'refund', 'probability': 0.75, 'top_k': [{'label': 'refund', 'probability': 0.75}]}
    >>> json_answer([("refund", 0.75), ("card lost", 0.25)], k=1, abstain=0.8)
    {'label': None, 'probability': 0.75, 'top_k': [{'label': 'refund', 'probability': 0.75}]}
    >>> json_answer([("late", 0.9), ("broken", 0.6)], k=1, threshold=0.5)
    {'labels': ['late', 'broken'], 'top_k': [{'label': 'late', 'probability': 0.9}]}

    Args:
        ranked: Labels with their probabilities, best first.
        k: How many labels to list.
        threshold: With several labels per text: the probability from which a label applies; else None.
        abstain: With one label per text: the probability from which the best label is the answer.
        none_label: The answer below that.
    """
    top_k = [{"label": label, "probability": round(value, DIGITS)} for label, value in ranked[:k]]
    if threshold is None:
        best, probability = ranked[0]
        label = best if probability >= abstain else none_label
        return {"label": label, "probability": round(probability, DIGITS), "top_k": top_k}
    return {"labels": [label for label, value in ranked if value >= threshold], "top_k": top_k}
