"""The one prediction pipeline: texts → prompts → batches → input vectors → similarity to label vectors → top-k.

Only "batch → input vectors" needs an encoder: a runtime computes them, with torch or ONNX. The rest is numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.prediction.answers import Predictions, check_count, labels_above, warn_about_texts
from maskmatch.prediction.label_scorer import logsumexp
from maskmatch.prediction.overlap import prefetched
from maskmatch.prediction.search import ExactSearch, make_search
from maskmatch.prediction.search import probabilities as probabilities_of
from maskmatch.progress import progress_bar, showing_progress
from maskmatch.prompts import FieldText, tokenize_texts
from maskmatch.prompts.batches import BATCH_SIZE, PaddedBatch, length_groups
from maskmatch.prompts.windows import all_windows, mean_of_windows

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.data import Examples
    from maskmatch.labels import LabelSet
    from maskmatch.labels.calibration import Calibration
    from maskmatch.labels.kept_texts import KeptTexts
    from maskmatch.labels.scope import Scope
    from maskmatch.prediction.label_scorer import LabelScorer
    from maskmatch.prediction.search import LabelSearch, MeasuredIndex
    from maskmatch.prompts import PromptTokenizer, TokenizedPrompts

    Vectors = Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]
    Scored = tuple[NDArray[np.int64], NDArray[np.float32], LabelScorer]

FIRST_LABELS = 16
"""How many labels of a text are ranked first where several may apply."""

FEW_TEXTS = 256
"""For fewer texts, "auto" builds no index: comparing them with a million labels takes seconds, an index a minute."""

BACKGROUND_WEIGHT = 0.4
"""The weight of names from many domains in the novelty of a text, beside the labels."""

SEARCHED_TOGETHER = 256
"""How many texts are compared with all labels at once: each comparison loads all label vectors from memory."""

INDEX_QUERIES = 128
"""How many label texts are read as texts to measure an index."""


class Runtime(Protocol):
    """Computes the input vectors of a batch. A new runtime is a file in ``runtimes`` and a row in its table."""

    @property
    def at_once(self) -> int:
        """How many batches are best computed at once, by as many threads."""

    def __call__(self, batch: PaddedBatch, *, alone: bool = True) -> NDArray[np.float32]:
        """The vectors of texts, all of whose prompts are in the batch: (texts, masks, dim).

        Unless ``alone``, other batches are computed meanwhile, so that one thread should do.
        """

    def map(self, batches: Iterable[PaddedBatch]) -> Iterator[NDArray[np.float32]]:
        """The vectors of each batch, in order; a runtime may compute several batches at once."""


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
        calibration: How scores become probabilities; None: by the softmax, or sigmoid, alone. Its temperature is
            already in the scorer.
        kept: Training texts to show similar ones, if there are any.
        scope: What texts of the labels look like, to tell others; None if it is not known.
        background: Gives the vectors of names from many domains, (B, dim), prepared; None if names are not read.
    """

    config: MatcherConfig
    tokenizer: PromptTokenizer
    labels: LabelSet
    scorer: LabelScorer
    runtime: Runtime
    label_runtime: Runtime | None = None
    index: MeasuredIndex | None = None
    calibration: Calibration | None = None
    kept: KeptTexts | None = None
    scope: Scope | None = None
    background: Callable[[], NDArray[np.float32]] | None = None

    def tokenize(self, texts: Sequence[Any]) -> TokenizedPrompts:
        """Texts in their input prompts; if labels are read with each text, also in the label prompts."""
        return tokenize_texts(self.tokenizer, self.config, texts, self.labels)

    # -- vectors ---------------------------------------------------------------------------------------------

    def vectors(self, prompts: TokenizedPrompts, batch_size: int = BATCH_SIZE, task: str = "encoding texts") -> Vectors:
        """Row numbers and their input vectors (rows, masks, dim), in batches of similar length."""
        check_count(batch_size, "batch_size")
        if prompts.windows is not None:
            windows, owners = all_windows(prompts)
            vectors = _in_order(list(self.vectors(windows, batch_size, task)))
            yield np.arange(len(prompts)), mean_of_windows(vectors, owners, len(prompts))
            return
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
        if self.calibration is None:
            return matrix
        several = self.config.multi_label
        return self.calibration.each_label(matrix) if several else self.calibration.all_labels(matrix)

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
        return self.answers(prompts, k, batch_size, threshold=threshold)[0]

    def novelty(self, prompts: TokenizedPrompts, batch_size: int = BATCH_SIZE) -> NDArray[np.float64]:
        """How far each text is from all labels: (n,), higher is further."""
        found = self.answers(prompts, 1, batch_size, novelty=True)[1]
        assert found is not None
        return found

    def answers(
        self,
        prompts: TokenizedPrompts,
        k: int,
        batch_size: int = BATCH_SIZE,
        *,
        threshold: float | None = None,
        novelty: bool = False,
    ) -> tuple[list[list[tuple[Hashable, float]]], NDArray[np.float64] | None]:
        """The k best labels of each text with their probabilities, best first, and its novelty (n,) if asked for."""
        ranked: list[list[tuple[Hashable, float]]] = [[] for _ in range(len(prompts))]
        far = np.zeros(len(prompts)) if novelty else None
        own = None if self.scorer.in_context else self._search_for(len(prompts))
        batches = self.scored(prompts, batch_size)
        for rows, vectors, scorer in batches if own is None else _together(batches):
            search = ExactSearch(scorer) if own is None else own
            places, values = self._nearest(vectors, k, threshold, search)
            if far is not None:
                far[rows] = self._novelty(vectors, scorer, search)
            for row, pairs in zip(rows.tolist(), self._pairs(places, values, k, threshold), strict=True):
                ranked[row] = pairs
        return ranked, far

    def _novelty(self, vectors: NDArray[np.float32], scorer: LabelScorer, search: LabelSearch) -> NDArray[np.float64]:
        """How far input vectors (n, masks, dim) are from all labels: (n,).

        After training, by the Mahalanobis distance from the nearest label's texts. Otherwise by the energy: how similar
        the labels are to the text, all together, less a part of what names from many other domains are. A text that is
        near to everything is then no less novel.
        """
        if self.scope is not None:
            return self.scope.distance(scorer.prepare(vectors))
        energy = search(vectors, 1).normaliser.astype(np.float64) / scorer.scale
        adapted = scorer.origin is not None or scorer.neighbours is not None  # then names are compared otherwise
        if self.background is None or adapted or not scorer.config.row.unit_norm or scorer.config.mask_join.late:
            return np.asarray(-energy)
        others = logsumexp(scorer.scale * scorer.prepare(vectors) @ self.background().T) / scorer.scale
        return np.asarray(BACKGROUND_WEIGHT * others - energy)

    def stream(
        self,
        chunks: Iterable[Examples],
        k: int,
        batch_size: int = BATCH_SIZE,
        *,
        threshold: float | None = None,
        novelty: bool = False,
        verbose: bool = True,
    ) -> Iterator[tuple[Examples, TokenizedPrompts, list[list[tuple[Hashable, float]]], NDArray[np.float64] | None]]:
        """Each chunk of texts, its prompts, the k best labels per text, and its novelty; tokenizes the next meanwhile.

        Args:
            chunks: Texts in chunks, such as ``iter_examples`` yields.
            k: How many labels.
            batch_size: Texts per batch.
            threshold: If given: also all further labels with at least this probability.
            novelty: Whether to compute the novelty of each text.
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
            warn_about_texts(prompts, self.config.max_length)
            with showing_progress(verbose):  # not around the yield: another thread may go on
                ranked, far = self.answers(prompts, k, batch_size, threshold=threshold, novelty=novelty)
            yield chunk, prompts, ranked, far

    def nearest(
        self, vectors: NDArray[np.float32], k: int = 1, threshold: float | None = None
    ) -> list[list[tuple[Hashable, float]]]:
        """The k best labels by input vectors (n, masks, dim), if labels are not read with each text.

        With a threshold, also all further labels with at least this probability.
        """
        search = self._search_for(len(vectors))
        ranked: list[list[tuple[Hashable, float]]] = []
        for start in range(0, len(vectors), SEARCHED_TOGETHER):
            places, values = self._nearest(vectors[start : start + SEARCHED_TOGETHER], k, threshold, search)
            ranked += self._pairs(places, values, k, threshold)
        return ranked

    def nearest_places(self, vectors: NDArray[np.float32], k: int = 1) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The positions and probabilities of the k best labels by input vectors (n, masks, dim), as arrays (n, k)."""
        search, k = self._search_for(len(vectors)), min(k, len(self.labels))
        found = [
            self._nearest(vectors[start : start + SEARCHED_TOGETHER], k, None, search)
            for start in range(0, len(vectors), SEARCHED_TOGETHER)
        ]
        if not found:
            return np.zeros((0, k), np.int64), np.zeros((0, k), np.float32)
        places, values = zip(*found, strict=True)
        return np.concatenate(places), np.concatenate(values)

    def novelty_of(self, vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        """How far input vectors (n, masks, dim) are from all labels: (n,), if labels are not read with each text."""
        return self._novelty(vectors, self.scorer, self._search_for(len(vectors)))

    def _pairs(
        self, places: NDArray[np.int64], values: NDArray[np.float32], k: int, threshold: float | None
    ) -> list[list[tuple[Hashable, float]]]:
        """Labels with their probabilities, by positions and probabilities (n, k or more)."""
        counts = np.full(len(places), k) if threshold is None else np.maximum((values >= threshold).sum(axis=1), k)
        labels = self.labels
        return [
            [(labels[place], value) for place, value in zip(row_places[:count], row_values[:count], strict=True)]
            for count, row_places, row_values in zip(counts.tolist(), places.tolist(), values.tolist(), strict=True)
        ]

    def _search_for(self, texts: int) -> LabelSearch:
        """The search for this number of texts: a few are compared with all labels before an index is built."""
        built = self.index is not None or "search" in vars(self)
        few = self.config.search == "auto" and texts < FEW_TEXTS and not built
        return ExactSearch(self.scorer) if few else self.search

    def _nearest(
        self, vectors: NDArray[np.float32], k: int, threshold: float | None, search: LabelSearch
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The positions and probabilities of the k best labels of texts, or of more if more may apply."""
        nearest = search(vectors, min(max(k, 2), len(self.labels)))
        values = self._calibrated(probabilities_of(self.scorer, nearest))
        if threshold is None or k >= len(self.labels) or not (values[:, k - 1 :] >= threshold).any():
            return nearest.places[:, :k], values[:, :k]
        return self._nearest(vectors, max(FIRST_LABELS, 4 * k), threshold, search)

    def _calibrated(self, probabilities: NDArray[np.float32]) -> NDArray[np.float32]:
        """Calibrate the probabilities of the nearest labels, best first: (n, k)."""
        if self.calibration is None:
            return probabilities
        if self.config.multi_label:
            return self.calibration.each_label(probabilities)
        return self.calibration.best_first(probabilities, len(self.labels))

    @cached_property
    def thresholds(self) -> dict[Hashable, float]:
        """With several labels per text: the probability from which a label applies, if it has one of its own."""
        return {} if self.calibration is None else dict(self.calibration.thresholds)

    def least_threshold(self, threshold: float | None = None) -> float:
        """The lowest probability from which any label applies: as given for all, or the classifier's own."""
        if threshold is not None:
            return threshold
        return min([self.config.threshold, *self.thresholds.values()])

    def applying(self, ranked: Iterable[tuple[Hashable, float]], threshold: float | None = None) -> list[Hashable]:
        """The labels that apply, of labels with probabilities: from a threshold for all, or each from its own on."""
        usual, own = self.config.threshold, self.thresholds
        if threshold is not None:
            return [id_ for id_, value in ranked if value >= threshold]
        return [id_ for id_, value in ranked if value >= own.get(id_, usual)]

    def above(
        self, prompts: TokenizedPrompts, threshold: float | None = None, batch_size: int = BATCH_SIZE
    ) -> list[list[Hashable]]:
        """The labels of each text that apply, best first: from a threshold for all, or each from its own on."""
        least = self.least_threshold(threshold)
        ranked = self.top_k(prompts, FIRST_LABELS, batch_size, threshold=least)
        return [self.applying(pairs, threshold) for pairs in ranked]

    def predict(self, prompts: TokenizedPrompts, batch_size: int = BATCH_SIZE) -> Predictions:
        """The predicted labels, and how confident they are."""
        if not self.config.multi_label:
            best = [pairs[0] for pairs in self.top_k(prompts, 1, batch_size)]
            return Predictions([id_ for id_, _ in best], confidence=np.array([value for _, value in best]))
        matrix = self.probabilities(prompts, batch_size)
        thresholds = np.array([self.thresholds.get(id_, self.config.threshold) for id_ in self.labels])
        return Predictions(list(labels_above(matrix, self.labels, thresholds)), probabilities=matrix)

    def _index_queries(self) -> NDArray[np.float32]:
        """Vectors to measure an index with, (n, masks, dim): label texts read as texts, and points midway between."""
        texts = [str(text) for text in self.scorer.layout.texts] or [label.name for label in self.labels.labels]
        some = np.unique(np.linspace(0, len(texts) - 1, INDEX_QUERIES, dtype=np.int64))
        fields = [dict.fromkeys(self.config.input_fields, FieldText(texts[place])) for place in some.tolist()]
        vectors = self.all_vectors(self.tokenizer.pooled(self.config.prompts, fields))
        return np.concatenate([vectors, (vectors + np.roll(vectors, len(vectors) // 2, axis=0)) / 2])


def encode_prompts(runtime: Runtime, prompts: TokenizedPrompts, pad_id: int) -> NDArray[np.float32]:
    """The vectors of prompts, in their order: (n, masks, dim)."""
    if prompts.windows is not None:
        windows, owners = all_windows(prompts)
        return mean_of_windows(encode_prompts(runtime, windows, pad_id), owners, len(prompts))
    groups = length_groups(prompts.lengths, BATCH_SIZE)
    batches = (PaddedBatch.of(prompts, rows, pad_id) for rows in groups)
    return _in_order(list(zip(groups, runtime.map(batches), strict=True)))


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
