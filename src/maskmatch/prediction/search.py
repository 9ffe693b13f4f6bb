"""The nearest labels of texts among any number of labels, without holding a score for every text and label.

Exact search goes through the labels in blocks and keeps what the answer needs: the top-k so far, and the normaliser of
the softmax. With very many labels, an index finds candidates, which are then scored exactly; the rest of the normaliser
is estimated from a fixed sample of labels.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from maskmatch.prediction.index import LabelIndex, index_available
from maskmatch.prediction.label_scorer import blas_threads, lead_probability, logsumexp, sigmoid

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from maskmatch.config.matcher import SearchKind
    from maskmatch.prediction.label_scorer import LabelScorer

logger = logging.getLogger("maskmatch")

MAX_EXACT = 50_000
"""Up to how many label texts "auto" searches exactly: about there an index becomes cheaper."""

BLOCK = 1 << 21
"""How many scores exact search holds at a time: 8 MB."""

GROUP = 64
"""The top-k of many scores is found among the maxima of groups of this size."""

CANDIDATES = 64
"""How many candidates an index returns per text, at least."""

SAMPLED = 4096
"""How many labels are sampled to estimate the normaliser over labels that are not candidates."""

WANTED_RECALL = 0.995
"""The index probes more cells until it reaches this recall@1; a little above what is promised."""

GOOD_RECALL = 0.99
"""Below this recall@1, users are warned."""


@dataclass(frozen=True)
class Nearest:
    """The nearest labels of texts, and what their probabilities depend on."""

    scores: NDArray[np.float32]  # (n, k), best first
    places: NDArray[np.int64]  # (n, k), the labels' positions
    normaliser: NDArray[np.float32]  # (n,), the logarithm of the sum of all labels' exponentiated scores
    mean: NDArray[np.float32] | None = None  # (n,), of the scores of all labels, if probabilities need it
    spread: NDArray[np.float32] | None = None  # (n,), their standard deviation


@dataclass(frozen=True)
class SearchReport:
    """How the nearest labels are found, and how well if the search is approximate.

    Attributes:
        kind: "exact" or "approximate".
        labels: The number of labels.
        queries: How many queries the index was measured with when it was built.
        recall: Recall@1: for which part of the queries the index finds the label of exact search.
        probability_error: The mean relative error of the best label's probability.
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
            f"An index over {self.labels:,} labels, built in {self.seconds:.0f} s, has a recall@1 of "
            f"{self.recall:.1%} on {self.queries} queries (label names, and points midway between two of them)."
        )


@dataclass(frozen=True)
class MeasuredIndex:
    """An index over labels, and the measurement from when it was built."""

    index: LabelIndex
    report: SearchReport


class LabelSearch(Protocol):
    """Finds the nearest labels of texts."""

    report: SearchReport

    def __call__(self, inputs: NDArray[np.float32], k: int) -> Nearest:
        """The k nearest labels of input vectors (n, masks, dim)."""


class ExactSearch:
    """Compares each text with all labels, one block of labels at a time."""

    def __init__(self, scorer: LabelScorer) -> None:
        self._scorer = scorer
        self.report = SearchReport("exact", len(scorer))

    def __call__(self, inputs: NDArray[np.float32], k: int) -> Nearest:
        """The k nearest labels of input vectors (n, masks, dim)."""
        return self.nearest(self._scorer.prepare(inputs), k)

    def nearest(self, rows: NDArray[np.float32], k: int) -> Nearest:
        """The k nearest labels of prepared texts, (n, …, dim)."""
        scorer, count, labels = self._scorer, len(rows), len(self._scorer)
        size = max(1, BLOCK // (max(1, count) * scorer.layout.present.shape[1]))
        scores, places = np.empty((count, 0), np.float32), np.empty((count, 0), np.int64)
        normaliser = np.full(count, -np.inf, np.float32)
        total, squares = np.zeros(count), np.zeros(count)
        origin: NDArray[np.float64] | None = None  # (n, 1)
        with blas_threads(scorer.multiplications(rows)):
            for start in range(0, labels, size):
                block = scorer.block(rows, start, min(start + size, labels))  # (n, labels of the block)
                normaliser = np.logaddexp(normaliser, logsumexp(block))
                if scorer.by_lead:  # sums of squares lose small differences, so they are taken from the first score
                    origin = block[:, :1].astype(np.float64) if origin is None else origin
                    differences = block - origin
                    total += differences.sum(axis=1)
                    squares += np.square(differences).sum(axis=1)
                best = best_places(block, k)
                found = np.take_along_axis(block, best, axis=1)
                scores, places = _merged(scores, places, found, best + start, k)
        if origin is None:
            return Nearest(scores, places, normaliser)
        mean = total / labels
        spread = np.sqrt(np.maximum(squares / labels - np.square(mean), 0))
        mean += origin[:, 0]
        return Nearest(scores, places, normaliser, mean.astype(np.float32), spread.astype(np.float32))


class ApproximateSearch:
    """Compares each text with candidates of an index, and with a sample of labels that stands for all others.

    Args:
        scorer: The label vectors.
        measured: An index over them.
    """

    def __init__(self, scorer: LabelScorer, measured: MeasuredIndex) -> None:
        self._scorer, self._owners = scorer, scorer.layout.owners
        chosen = np.random.default_rng(0).permutation(len(scorer))[:SAMPLED]
        self._sample = scorer.select(chosen)
        self._sampled_as = np.full(len(scorer), -1)  # (K,), a label's place in the sample
        self._sampled_as[chosen] = np.arange(len(chosen))
        self._index, self.report = measured.index, measured.report

    @property
    def index(self) -> LabelIndex:
        """The index over label texts."""
        return self._index

    @classmethod
    def built(cls, scorer: LabelScorer, queries: NDArray[np.float32]) -> ApproximateSearch:
        """Build the index, and measure it with input vectors (n, masks, dim)."""
        started = time.perf_counter()
        index = LabelIndex.of(scorer.vectors, unit_norm=scorer.config.row.unit_norm)
        search = cls(scorer, MeasuredIndex(index, SearchReport("approximate", len(scorer))))
        search.report = search._measured(scorer.prepare(queries), started)
        logger.log(logging.INFO if search.report.recall >= GOOD_RECALL else logging.WARNING, "%s", search.report)
        return search

    def __call__(self, inputs: NDArray[np.float32], k: int) -> Nearest:
        """The k nearest labels of input vectors (n, masks, dim)."""
        return self.nearest(self._scorer.prepare(inputs), k)

    def nearest(self, rows: NDArray[np.float32], k: int) -> Nearest:
        """The k nearest labels of prepared texts, (n, dim)."""
        phrases = self._scorer.layout.present.shape[1]
        if k * phrases > len(self._scorer.vectors) // 8:  # so many that an index is useless
            return ExactSearch(self._scorer).nearest(rows, k)
        candidates = self._candidates(rows, max(CANDIDATES, 2 * k * phrases))  # (n, c), -1 where there are fewer
        if ((candidates >= 0).sum(axis=1) < k).any():  # the probed cells hold too few
            return ExactSearch(self._scorer).nearest(rows, k)
        scores = self._scorer.candidate_scores(rows, np.maximum(candidates, 0))
        scores = np.where(candidates < 0, np.float32(-np.inf), scores)
        best = best_places(scores, k)
        sample = self._sample.block(rows, 0, len(self._sample))  # (n, s)
        lead = self._scorer.by_lead
        return Nearest(
            np.take_along_axis(scores, best, axis=1),
            np.take_along_axis(candidates, best, axis=1),
            np.logaddexp(logsumexp(scores), self._rest(sample, candidates)),
            sample.mean(axis=1) if lead else None,
            sample.std(axis=1) if lead else None,
        )

    def _candidates(self, rows: NDArray[np.float32], count: int) -> NDArray[np.int64]:
        """The labels whose label texts the index finds, each once: (n, c), -1 where there are fewer."""
        texts = self._index.nearest(rows, count)  # (n, c), -1 where there are fewer
        labels = np.sort(np.where(texts < 0, -1, self._owners[texts]), axis=1)
        again = labels[:, 1:] == labels[:, :-1]
        labels[:, 1:][again] = -1
        return labels

    def _rest(self, sample: NDArray[np.float32], candidates: NDArray[np.int64]) -> NDArray[np.float32]:
        """The log of the sum over all labels that are not candidates, estimated from the sample: (n,)."""
        there = candidates >= 0
        place = np.where(there, self._sampled_as[candidates], -1)  # (n, c)
        counted = np.ones((len(sample), sample.shape[1] + 1), dtype=np.bool_)
        np.put_along_axis(counted, place, False, axis=1)  # -1 is the last column, of what is not in the sample
        counted = counted[:, :-1]
        others, seen = len(self._scorer) - there.sum(axis=1), counted.sum(axis=1)
        total = logsumexp(np.where(counted, sample, np.float32(-np.inf)))  # -inf where nothing is left
        share = np.log(np.maximum(others, 1) / np.maximum(seen, 1))
        return np.asarray(total + share, dtype=np.float32)

    def _measured(self, queries: NDArray[np.float32], started: float) -> SearchReport:
        """Probe more cells until the index finds the nearest labels of the queries (n, dim), as far as that helps."""
        exact = ExactSearch(self._scorer).nearest(queries, 1)
        while True:
            found = self.nearest(queries, 1)
            # Another label with the same score is as good.
            recall = float((found.scores[:, 0] >= exact.scores[:, 0] - 1e-4).mean())
            if recall >= WANTED_RECALL or not self._index.probe_more():
                break
        error = np.abs(np.expm1(exact.normaliser - found.normaliser)).mean()
        seconds = time.perf_counter() - started
        return SearchReport("approximate", len(self._scorer), len(queries), recall, float(error), seconds)


def make_search(
    scorer: LabelScorer,
    kind: SearchKind,
    queries: Callable[[], NDArray[np.float32]],
    built: MeasuredIndex | None = None,
) -> LabelSearch:
    """The search over labels.

    Args:
        scorer: The label vectors.
        kind: "exact"; "approximate"; or "auto": exact unless there are many labels and faiss is installed.
        queries: Gives input vectors (n, masks, dim) to measure an index with.
        built: An index that was built before.
    """
    if scorer.in_context:  # there are no label vectors before there is a text
        return ExactSearch(scorer)
    one_vector = not scorer.config.mask_join.late  # an index has one vector per label text
    many = scorer.layout.size > MAX_EXACT and one_vector
    if kind == "approximate" or (kind == "auto" and many and index_available()):
        return ApproximateSearch.built(scorer, queries()) if built is None else ApproximateSearch(scorer, built)
    return ExactSearch(scorer)


def probabilities(scorer: LabelScorer, nearest: Nearest) -> NDArray[np.float32]:
    """The probabilities of the nearest labels: a softmax over all labels, or with several labels per text a sigmoid."""
    if scorer.offset is None:
        return np.asarray(np.exp(nearest.scores - nearest.normaliser[:, None]))
    if scorer.by_lead:
        assert nearest.mean is not None
        assert nearest.spread is not None
        return lead_probability(nearest.scores, nearest.mean[:, None], nearest.spread[:, None], len(scorer))
    return sigmoid(nearest.scores)


def best_places(values: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """The positions of the k largest values of each row, largest first, ties by position: (n, k).

    Which of several equal values are among the k largest is not defined.
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
    """The same by way of the maximum of each group, which is far less to sort: (n, k)."""
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
    """The k best of two lists per row, best first."""
    if not scores.shape[1]:
        return more_scores, more_places
    scores, places = np.concatenate([scores, more_scores], axis=1), np.concatenate([places, more_places], axis=1)
    best = best_places(scores, k)
    return np.take_along_axis(scores, best, axis=1), np.take_along_axis(places, best, axis=1)
