"""The best labels of texts among any number of labels, without holding a score for every text and label.

Exact search goes through the labels in blocks and keeps what the answer needs: the best so far, and the sum that
probabilities are shares of. From many labels on, an index finds candidates, which are then scored exactly by the one
similarity; the sum over the other labels is estimated from a fixed sample of them.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from maskmatch.kept_labels import lead_probability, log_of_sum, sigmoid
from maskmatch.label_index import LabelIndex, index_available
from maskmatch.products import threads_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from maskmatch.choices import SearchKind
    from maskmatch.kept_labels import KeptLabels

logger = logging.getLogger("maskmatch")

MOST_SEARCHED_EXACTLY = 50_000
"""Up to how many label texts "auto" searches exactly: about there an index becomes cheaper (docs/speed.md)."""

BLOCK = 1 << 21
"""How many scores exact search holds at a time: 8 MB."""

GROUP = 64
"""Of how many scores the largest is found first where the best of many are wanted."""

CANDIDATES = 64
"""How many label texts an index proposes for each text, at the least."""

SAMPLED = 4096
"""How many labels stand for all those that are no candidates."""

WANTED_RECALL = 0.995
"""How often the index should find the best label before it stops looking further; a little above what is promised."""

GOOD_RECALL = 0.99
"""Below this, users are warned."""


@dataclass(frozen=True)
class Found:
    """The best labels of texts, and what their probabilities hang on."""

    scores: NDArray[np.float32]  # (n, k), best first
    places: NDArray[np.int64]  # (n, k), the labels' positions
    normaliser: NDArray[np.float32]  # (n,), the logarithm of the sum of all labels' exponentiated scores
    mean: NDArray[np.float32] | None = None  # (n,), of the scores of all labels, where a label's lead is asked for
    spread: NDArray[np.float32] | None = None  # (n,), their standard deviation


@dataclass(frozen=True)
class SearchReport:
    """How the best labels are found, and how well where that is not exact.

    Attributes:
        kind: "exact" or "approximate".
        labels: How many labels there are.
        queries: How many texts the index was measured with when it was built.
        recall: For which part of these the best label is that of exact search.
        probability_error: By how much the best label's probability is off, on average, as a part of itself.
        seconds: How long building and measuring took.
    """

    kind: Literal["exact", "approximate"]
    labels: int
    queries: int = 0
    recall: float = 1.0
    probability_error: float = 0.0
    seconds: float = 0.0

    def __str__(self) -> str:
        if self.kind == "exact":
            return f"Texts are compared with all {self.labels:,} labels."
        return (
            f"An index over {self.labels:,} labels, built in {self.seconds:.0f} s, finds the best label of "
            f"{self.recall:.1%} of {self.queries} texts (label names, and points midway between two of them)."
        )


@dataclass(frozen=True)
class MeasuredIndex:
    """An index over labels, and what was measured when it was built."""

    index: LabelIndex
    report: SearchReport


class LabelSearch(Protocol):
    """Finds the best labels of texts."""

    report: SearchReport

    def __call__(self, inputs: NDArray[np.float32], k: int) -> Found:
        """The k best labels of texts, whose vectors are (n, masks, dim)."""


class ExactSearch:
    """Compares each text with all labels, a block of them at a time."""

    def __init__(self, kept: KeptLabels) -> None:
        self._kept = kept
        self.report = SearchReport("exact", len(kept))

    def __call__(self, inputs: NDArray[np.float32], k: int) -> Found:
        """The k best labels of texts, whose vectors are (n, masks, dim)."""
        return self.best_of(self._kept.as_compared(inputs), k)

    def best_of(self, rows: NDArray[np.float32], k: int) -> Found:
        """The k best labels of texts as they are compared, (n, …, dim)."""
        kept, count, labels = self._kept, len(rows), len(self._kept)
        size = max(1, BLOCK // (max(1, count) * kept.present.shape[1]))
        scores, places = np.empty((count, 0), np.float32), np.empty((count, 0), np.int64)
        normaliser = np.full(count, -np.inf, np.float32)
        total, squares = np.zeros(count), np.zeros(count)
        with threads_for(kept.multiplications(rows)):
            for start in range(0, labels, size):
                block = kept.block(rows, start, min(start + size, labels))  # (n, labels of the block)
                normaliser = np.logaddexp(normaliser, log_of_sum(block))
                if kept.by_lead:
                    total += block.sum(axis=1, dtype=np.float64)
                    squares += np.square(block).sum(axis=1, dtype=np.float64)
                best = best_places(block, k)
                found = np.take_along_axis(block, best, axis=1)
                scores, places = _merged(scores, places, found, best + start, k)
        if not kept.by_lead:
            return Found(scores, places, normaliser)
        mean = total / labels
        spread = np.sqrt(np.maximum(squares / labels - np.square(mean), 0))
        return Found(scores, places, normaliser, mean.astype(np.float32), spread.astype(np.float32))


class ApproximateSearch:
    """Compares each text with candidates of an index, and with a sample that stands for all other labels.

    Args:
        kept: The label vectors.
        measured: An index over them.
    """

    def __init__(self, kept: KeptLabels, measured: MeasuredIndex) -> None:
        self._kept, self._owners = kept, kept.owners
        chosen = np.random.default_rng(0).permutation(len(kept))[:SAMPLED]
        self._sample = kept.select(chosen)
        self._sampled_as = np.full(len(kept), -1)  # (K,), a label's place in the sample
        self._sampled_as[chosen] = np.arange(len(chosen))
        self._index, self.report = measured.index, measured.report

    @property
    def index(self) -> LabelIndex:
        """The index over label texts."""
        return self._index

    @classmethod
    def built(cls, kept: KeptLabels, queries: NDArray[np.float32]) -> ApproximateSearch:
        """Build the index, and measure it with vectors of texts (n, masks, dim)."""
        started = time.perf_counter()
        index = LabelIndex.of(kept.vectors, of_one_length=kept.config.kind == "cosine")
        search = cls(kept, MeasuredIndex(index, SearchReport("approximate", len(kept))))
        search.report = search._measured(kept.as_compared(queries), started)
        logger.log(logging.INFO if search.report.recall >= GOOD_RECALL else logging.WARNING, "%s", search.report)
        return search

    def __call__(self, inputs: NDArray[np.float32], k: int) -> Found:
        """The k best labels of texts, whose vectors are (n, masks, dim)."""
        return self.best_of(self._kept.as_compared(inputs), k)

    def best_of(self, rows: NDArray[np.float32], k: int) -> Found:
        """The k best labels of texts as they are compared, (n, dim)."""
        phrases = self._kept.present.shape[1]
        if k * phrases > len(self._kept.vectors) // 8:  # so many that an index is of no use
            return ExactSearch(self._kept).best_of(rows, k)
        candidates = self._candidates(rows, max(CANDIDATES, 2 * k * phrases))  # (n, c), -1 where there are fewer
        if ((candidates >= 0).sum(axis=1) < k).any():  # the cells that were looked into hold too few
            return ExactSearch(self._kept).best_of(rows, k)
        scores = self._kept.pairs(rows, np.maximum(candidates, 0))
        scores = np.where(candidates < 0, np.float32(-np.inf), scores)
        best = best_places(scores, k)
        sample = self._sample.block(rows, 0, len(self._sample))  # (n, s)
        lead = self._kept.by_lead
        return Found(
            np.take_along_axis(scores, best, axis=1),
            np.take_along_axis(candidates, best, axis=1),
            np.logaddexp(log_of_sum(scores), self._rest(sample, candidates)),
            sample.mean(axis=1) if lead else None,
            sample.std(axis=1) if lead else None,
        )

    def _candidates(self, rows: NDArray[np.float32], count: int) -> NDArray[np.int64]:
        """The labels of the label texts that the index proposes, each once: (n, c), -1 where there are fewer."""
        texts = self._index.nearest(rows, count)  # (n, c), -1 where there are fewer
        labels = np.sort(np.where(texts < 0, -1, self._owners[texts]), axis=1)
        again = labels[:, 1:] == labels[:, :-1]
        labels[:, 1:][again] = -1
        return labels

    def _rest(self, sample: NDArray[np.float32], candidates: NDArray[np.int64]) -> NDArray[np.float32]:
        """The logarithm of the sum over all labels that are no candidates, as the sample tells it: (n,)."""
        there = candidates >= 0
        place = np.where(there, self._sampled_as[candidates], -1)  # (n, c)
        counted = np.ones((len(sample), sample.shape[1] + 1), dtype=np.bool_)
        np.put_along_axis(counted, place, False, axis=1)  # -1 is the last column, of what is not in the sample
        counted = counted[:, :-1]
        others, seen = len(self._kept) - there.sum(axis=1), counted.sum(axis=1)
        total = log_of_sum(np.where(counted, sample, np.float32(-np.inf)))  # -inf where nothing is left
        share = np.log(np.maximum(others, 1) / np.maximum(seen, 1))
        return np.asarray(total + share, dtype=np.float32)

    def _measured(self, queries: NDArray[np.float32], started: float) -> SearchReport:
        """Let the index look further until it finds the best labels of the queries (n, dim), as far as that helps."""
        exact = ExactSearch(self._kept).best_of(queries, 1)
        while True:
            found = self.best_of(queries, 1)
            # Another label with the same score is as good.
            recall = float((found.scores[:, 0] >= exact.scores[:, 0] - 1e-4).mean())
            if recall >= WANTED_RECALL or not self._index.look_further():
                break
        error = np.abs(np.expm1(exact.normaliser - found.normaliser)).mean()
        seconds = time.perf_counter() - started
        return SearchReport("approximate", len(self._kept), len(queries), recall, float(error), seconds)


def make_search(
    kept: KeptLabels, kind: SearchKind, queries: Callable[[], NDArray[np.float32]], built: MeasuredIndex | None = None
) -> LabelSearch:
    """The search over labels.

    Args:
        kept: The label vectors.
        kind: "exact"; "approximate"; or "auto": exact unless there are many labels and an index can be made.
        queries: Gives vectors of texts (n, masks, dim) to measure an index with.
        built: An index that was built before.
    """
    if kept.in_context:  # there are no label vectors before there is a text
        return ExactSearch(kept)
    many = kept.texts > MOST_SEARCHED_EXACTLY and kept.config.masks != "late"  # an index knows one vector a label text
    if kind == "approximate" or (kind == "auto" and many and index_available()):
        return ApproximateSearch.built(kept, queries()) if built is None else ApproximateSearch(kept, built)
    return ExactSearch(kept)


def probabilities(kept: KeptLabels, found: Found) -> NDArray[np.float32]:
    """The probabilities of the best labels: shares of all labels', or with several labels a text each by itself."""
    if kept.offset is None:
        return np.asarray(np.exp(found.scores - found.normaliser[:, None]))
    if kept.by_lead:
        assert found.mean is not None
        assert found.spread is not None
        return lead_probability(found.scores, found.mean[:, None], found.spread[:, None], len(kept))
    return sigmoid(found.scores)


def best_places(values: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Where the k largest values of each row stand, the largest first; those that are equal by their place: (n, k).

    Which of several equal values are among the k largest is left open.
    """
    k = min(k, values.shape[1])
    if k == 1:
        return np.asarray(values.argmax(axis=1)[:, None])
    if values.shape[1] > GROUP * 2 * k:  # the k largest values are among the k groups with the largest maxima
        return _best_by_groups(values, k)
    some = np.argpartition(-values, k - 1, axis=1)[:, :k]
    some.sort(axis=1)
    order = np.argsort(-np.take_along_axis(values, some, axis=1), axis=1, kind="stable")
    return np.asarray(np.take_along_axis(some, order, axis=1))


def _best_by_groups(values: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """The same by way of the largest value of each group, which is far less to sort: (n, k)."""
    count, width = values.shape
    whole = width // GROUP * GROUP
    largest = values[:, :whole].reshape(count, -1, GROUP).max(axis=2)  # (n, groups)
    groups = np.sort(best_places(largest, k), axis=1)
    places = (groups[:, :, None] * GROUP + np.arange(GROUP)).reshape(count, -1)  # (n, k * GROUP)
    left = np.broadcast_to(np.arange(whole, width), (count, width - whole))
    places = np.concatenate([places, left], axis=1)
    best = best_places(np.take_along_axis(values, places, axis=1), k)
    return np.asarray(np.take_along_axis(places, best, axis=1))


def _merged(
    scores: NDArray[np.float32],
    places: NDArray[np.int64],
    more_scores: NDArray[np.float32],
    more_places: NDArray[np.int64],
    k: int,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The best k of two lists a row, best first."""
    if not scores.shape[1]:
        return more_scores, more_places
    scores, places = np.concatenate([scores, more_scores], axis=1), np.concatenate([places, more_places], axis=1)
    best = best_places(scores, k)
    return np.take_along_axis(scores, best, axis=1), np.take_along_axis(places, best, axis=1)
