"""The one prediction path: texts → prompts → batches → input vectors → similarity to kept label vectors → the best.

Only "batch → input vectors" needs an encoder: a runtime does it, by torch or by ONNX. The rest is numpy.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from maskmatch.batches import BATCH_SIZE, PaddedBatch, length_groups
from maskmatch.errors import MaskMatchError
from maskmatch.prompts import FieldText, field_texts
from maskmatch.search import ExactSearch, make_search
from maskmatch.search import probabilities as probabilities_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from numpy.typing import NDArray

    from maskmatch.config import MatcherConfig
    from maskmatch.kept_labels import KeptLabels
    from maskmatch.labels import LabelSet
    from maskmatch.prompts import PromptTokenizer, TokenizedPrompts
    from maskmatch.search import LabelSearch, MeasuredIndex

logger = logging.getLogger("maskmatch")

FIRST_LABELS = 16
"""How many labels of a text are looked at first where several may apply."""

MOST_IN_CONTEXT = 50
"""How many label texts may be read with each text: each costs as much as the text itself."""

FEW_TEXTS = 256
"""For fewer texts at once "auto" builds no index: comparing them with a million labels takes seconds, that a minute."""

SEARCHED_TOGETHER = 256
"""How many texts are compared with all labels at once: each time, all label vectors go through the processor."""

SEARCH_QUERIES = 128
"""How many label texts are read as texts to measure an index with."""


class Runtime(Protocol):
    """Computes the input vectors of a batch."""

    def __call__(self, batch: PaddedBatch) -> NDArray[np.float32]:
        """The vectors of texts, each with all its readings in the batch: (texts, masks, dim)."""


@dataclass(frozen=True)
class Judgement:
    """The predicted label of each text with how sure it is; or lists of labels, with the probabilities of all."""

    predicted: list[Any]
    confidence: NDArray[np.float64] | None = None  # (n,)
    probabilities: NDArray[np.float32] | None = None  # (n, K)


@dataclass(frozen=True)
class Prediction:
    """The prediction path of a classifier as it is now.

    Attributes:
        config: Prompts, method, similarity.
        tokenizer: Turns prompts into tokens.
        labels: The labels.
        kept: Their vectors.
        runtime: Computes the vectors of texts.
        label_runtime: Computes the vectors of label prompts, where labels are read with each text.
        index: An index over the labels that was built before.
    """

    config: MatcherConfig
    tokenizer: PromptTokenizer
    labels: LabelSet
    kept: KeptLabels
    runtime: Runtime
    label_runtime: Runtime | None = None
    index: MeasuredIndex | None = None

    def tokenize(self, texts: Sequence[Any]) -> TokenizedPrompts:
        """Texts in their input prompt, and where labels are read with each text, in those of the labels."""
        return tokenize_texts(self.tokenizer, self.config, texts, self.labels)

    def vectors(
        self, prompts: TokenizedPrompts, batch_size: int = BATCH_SIZE
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Row numbers and their input vectors (rows, masks, dim), in batches of like length."""
        check_count(batch_size, "batch_size")
        pad_id = self.tokenizer.vocabulary.pad_id
        groups = length_groups(prompts.lengths, batch_size)
        with _progress(len(prompts)) as bar:
            for rows in groups:
                yield rows, _read(self.runtime, prompts, rows, pad_id)
                bar.update(len(rows))

    def all_vectors(self, prompts: TokenizedPrompts) -> NDArray[np.float32]:
        """The input vectors of all texts: (n, masks, dim)."""
        return _in_order(list(self.vectors(prompts)))

    def read(
        self, prompts: TokenizedPrompts, batch_size: int = BATCH_SIZE
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32], KeptLabels]]:
        """Row numbers, input vectors (rows, masks, dim) and the labels to compare them with, in batches."""
        for rows, vectors in self.vectors(prompts, batch_size):
            yield rows, vectors, self._labels_for(prompts, rows, batch_size)

    def _labels_for(self, prompts: TokenizedPrompts, rows: NDArray[np.int64], batch_size: int) -> KeptLabels:
        """The labels, as they are kept or as they are read with these texts."""
        if not self.kept.in_context:
            return self.kept
        own = prompts.select(rows).label_prompts
        assert own is not None
        assert self.label_runtime is not None
        pad_id = self.tokenizer.vocabulary.pad_id
        groups = length_groups(own.lengths, batch_size)
        found = _in_order([(group, _read(self.label_runtime, own, group, pad_id)) for group in groups])
        return self.kept.for_texts(found.reshape(len(rows), -1, *found.shape[1:]))  # (rows, F, masks, dim)

    def scores(self, prompts: TokenizedPrompts) -> NDArray[np.float32]:
        """The scores of all labels: (n, K)."""
        matrix = np.zeros((len(prompts), len(self.labels)), dtype=np.float32)
        for rows, vectors, labels in self.read(prompts):
            matrix[rows] = labels.scores(vectors)
        return matrix

    def probabilities(
        self, prompts: TokenizedPrompts, batch_size: int = BATCH_SIZE
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Row numbers and their probabilities (rows, K), in batches of like length."""
        for rows, vectors, labels in self.read(prompts, batch_size):
            yield rows, labels.probabilities(vectors)

    def probability_matrix(self, prompts: TokenizedPrompts, batch_size: int = BATCH_SIZE) -> NDArray[np.float32]:
        """All probabilities at once: (n, K)."""
        matrix = np.zeros((len(prompts), len(self.labels)), dtype=np.float32)
        for rows, found in self.probabilities(prompts, batch_size):
            matrix[rows] = found
        return matrix

    @cached_property
    def search(self) -> LabelSearch:
        """The search over the labels, made when it is first needed."""
        return make_search(self.kept, self.config.search, self._search_queries, self.index)

    def best(
        self, prompts: TokenizedPrompts, k: int, batch_size: int = BATCH_SIZE, *, threshold: float | None = None
    ) -> list[list[tuple[Hashable, float]]]:
        """The best labels of each text with their probabilities, best first.

        Args:
            prompts: The texts in their prompt.
            k: How many labels.
            batch_size: Texts a batch.
            threshold: If given: also all further labels that have at least this probability.
        """
        labels = self.labels
        found: list[list[tuple[Hashable, float]]] = [[] for _ in range(len(prompts))]
        own = None if self.kept.in_context else self._search_for(len(prompts))
        read = self.read(prompts, batch_size)
        for rows, vectors, kept in read if own is None else _together(read):
            search = ExactSearch(kept) if own is None else own
            places, values = self._best_of(vectors, k, threshold, search)
            counts = np.full(len(rows), k) if threshold is None else np.maximum((values >= threshold).sum(axis=1), k)
            for row, count, row_places, row_values in zip(
                rows.tolist(), counts.tolist(), places.tolist(), values.tolist(), strict=True
            ):
                pairs = zip(row_places[:count], row_values[:count], strict=True)
                found[row] = [(labels[place], value) for place, value in pairs]
        return found

    def _search_for(self, texts: int) -> LabelSearch:
        """The search for so many texts: few of them are compared with all labels rather than an index be built."""
        built = self.index is not None or "search" in vars(self)
        few = self.config.search == "auto" and texts < FEW_TEXTS and not built
        return ExactSearch(self.kept) if few else self.search

    def _best_of(
        self, vectors: NDArray[np.float32], k: int, threshold: float | None, search: LabelSearch
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The positions of the k best labels of texts, or of more if more may apply, and their probabilities."""
        found = search(vectors, min(k, len(self.labels)))
        values = probabilities_of(self.kept, found)
        if threshold is None or k >= len(self.labels) or not (values[:, -1] >= threshold).any():
            return found.places, values
        return self._best_of(vectors, max(FIRST_LABELS, 4 * k), threshold, search)

    def above(self, prompts: TokenizedPrompts, threshold: float, batch_size: int = BATCH_SIZE) -> list[list[Hashable]]:
        """The labels of each text that have at least this probability, best first."""
        found = self.best(prompts, FIRST_LABELS, batch_size, threshold=threshold)
        return [[id_ for id_, value in pairs if value >= threshold] for pairs in found]

    def judge(self, prompts: TokenizedPrompts, batch_size: int = BATCH_SIZE) -> Judgement:
        """What is predicted for each text, and how sure that is."""
        if not self.config.multi_label:
            best = [pairs[0] for pairs in self.best(prompts, 1, batch_size)]
            return Judgement([id_ for id_, _ in best], confidence=np.array([value for _, value in best]))
        matrix = self.probability_matrix(prompts, batch_size)
        return Judgement(list(labels_above(matrix, self.labels, self.config.threshold)), probabilities=matrix)

    def _search_queries(self) -> NDArray[np.float32]:
        """Vectors to measure an index with, (n, masks, dim): label texts read as texts, and points midway between."""
        words = self.config.method.reads_words
        texts = [text for label in self.labels.labels for text in (label.verbalizer if words else label.texts)]
        some = np.unique(np.linspace(0, len(texts) - 1, SEARCH_QUERIES, dtype=np.int64))
        fields = [dict.fromkeys(self.config.input_fields, FieldText(texts[place])) for place in some.tolist()]
        read = self.all_vectors(self.tokenizer.pooled(self.config.prompts, fields))
        return np.concatenate([read, (read + np.roll(read, len(read) // 2, axis=0)) / 2])


def tokenize_texts(
    tokenizer: PromptTokenizer, config: MatcherConfig, texts: Sequence[Any], labels: LabelSet | None
) -> TokenizedPrompts:
    """Texts in their input prompts, and where the label prompt names a field of the text, each text in those of labels.

    Args:
        tokenizer: Turns prompts into tokens.
        config: The prompts.
        texts: The texts.
        labels: The labels; they are looked at only where they are read with each text.
    """
    rows = [field_texts(text, config.fields, row) for row, text in enumerate(texts)]
    prompts = tokenizer.pooled(config.prompts, rows)
    if not config.labels_in_context or labels is None:
        return prompts
    label_texts = [FieldText(text) for label in labels.labels for text in label.texts]  # (F,)
    if len(label_texts) > MOST_IN_CONTEXT:
        raise MaskMatchError(
            f"The label prompt {config.label_prompt.template!r} names a field of the text, so every text is read with "
            f"all {len(label_texts)} names and phrases of labels; give at most {MOST_IN_CONTEXT}, or a label prompt "
            "that names the label alone."
        )
    if any(label.examples for label in labels.labels):
        raise MaskMatchError(
            f"The label prompt {config.label_prompt.template!r} names a field of the text, so labels have no vector of "
            "their own that examples could move; leave the examples out."
        )
    filled = [{**row, "label": label} for row in rows for label in label_texts]
    return prompts.with_labels(tokenizer.pooled(config.label_prompts, filled))


def _read(runtime: Runtime, prompts: TokenizedPrompts, rows: NDArray[np.int64], pad_id: int) -> NDArray[np.float32]:
    """The vectors of some rows: (rows, masks, dim)."""
    return runtime(PaddedBatch.of(prompts, rows, pad_id))


def _together(
    batches: Iterator[tuple[NDArray[np.int64], NDArray[np.float32], KeptLabels]],
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32], KeptLabels]]:
    """Batches joined to larger ones, all of which are compared with the same labels."""
    waiting: list[tuple[NDArray[np.int64], NDArray[np.float32], KeptLabels]] = []
    for batch in batches:
        waiting.append(batch)
        if sum(len(rows) for rows, _, _ in waiting) >= SEARCHED_TOGETHER:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(
    batches: Sequence[tuple[NDArray[np.int64], NDArray[np.float32], KeptLabels]],
) -> tuple[NDArray[np.int64], NDArray[np.float32], KeptLabels]:
    rows, vectors, labels = zip(*batches, strict=True)
    return np.concatenate(rows), np.concatenate(vectors), labels[0]


def _in_order(parts: Sequence[tuple[NDArray[np.int64], NDArray[np.float32]]]) -> NDArray[np.float32]:
    """What was read in batches, each with its row numbers, in the order of rows."""
    order = np.argsort(np.concatenate([rows for rows, _ in parts]))
    return np.asarray(np.concatenate([found for _, found in parts])[order])


def labels_above(probabilities: NDArray[Any], labels: LabelSet, threshold: float) -> list[list[Hashable]]:
    """Per row, the labels at or above a threshold, best first."""
    order = np.argsort(-probabilities, axis=1, kind="stable").tolist()
    counts = (probabilities >= threshold).sum(axis=1).tolist()
    return [[labels[place] for place in places[:count]] for places, count in zip(order, counts, strict=True)]


def tell_cut(prompts: TokenizedPrompts, max_length: int) -> int:
    """Say how many texts had to be shortened, if any."""
    cut = int(prompts.cut.sum())
    if cut:
        logger.warning("%d of %d texts were longer than %d tokens and were shortened.", cut, len(prompts), max_length)
    return cut


def check_count(value: Any, name: str) -> None:
    """Refuse a number of things that is none."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise MaskMatchError(f"{name} is {value!r}; it has to be a whole number of at least 1.")


def _progress(texts: int) -> Any:
    from tqdm.auto import tqdm

    return tqdm(total=texts, desc="classifying", unit="text", delay=2, leave=False)
