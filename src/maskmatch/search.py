"""The best labels of texts among any number of labels, without holding a score for every text and label.

Exact search goes through the labels in blocks and keeps what the answer needs: the best so far, and the sum that
probabilities are shares of. From many labels on, an index finds candidates, which are then scored exactly by the one
similarity; the sum over the other labels is estimated from a fixed sample of them.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import torch

from maskmatch.label_index import LabelIndex, index_available
from maskmatch.similarity import Similarity, lead_probability

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger("maskmatch")

SearchKind = Literal["auto", "exact", "approximate"]

MOST_SEARCHED_EXACTLY = 100_000
"""Up to how many label texts "auto" searches exactly."""

BLOCK = 1 << 21
"""How many scores exact search holds at a time: 8 MB."""

CANDIDATES = 64
"""How many label texts an index proposes for each text, at the least."""

SAMPLED = 4096
"""How many labels stand for all those that are no candidates."""

WANTED_RECALL = 0.995
"""How often the index should find the best label before it stops looking further; a little above what is promised."""


@dataclass(frozen=True)
class Found:
    """The best labels of texts, and what their probabilities hang on."""

    scores: torch.Tensor  # (n, k), best first
    places: torch.Tensor  # (n, k), the labels' positions
    normaliser: torch.Tensor  # (n,), the logarithm of the sum of all labels' exponentiated scores
    mean: torch.Tensor  # (n,), of the scores of all labels
    spread: torch.Tensor  # (n,), their standard deviation


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


@dataclass(frozen=True)
class LabelRows:
    """Label vectors as the similarity compares them, and which belong to which label."""

    similarity: Similarity
    flat: torch.Tensor  # (F, dim), in the order of labels
    table: torch.Tensor  # (K, phrases), each label's rows of flat, padded with 0
    present: torch.Tensor  # (K, phrases)

    @classmethod
    def of(cls, similarity: Similarity, vectors: torch.Tensor, present: torch.Tensor) -> LabelRows:
        """From label vectors (K, phrases, masks, dim) and which phrases there are (K, phrases)."""
        single = vectors.shape[1] == 1  # nothing is left out, so nothing is copied
        flat = similarity.prepare(vectors[:, 0] if single else vectors[present])
        table = torch.zeros(present.shape, dtype=torch.long, device=vectors.device)
        table[present] = torch.arange(len(flat), device=vectors.device)
        return cls(similarity, flat, table, present)

    def select(self, labels: torch.Tensor) -> LabelRows:
        """Some of the labels (s,), alone."""
        present = self.present[labels]
        flat = self.flat[self.table[labels][present]]
        table = torch.zeros_like(self.table[labels])
        table[present] = torch.arange(len(flat), device=flat.device)
        return LabelRows(self.similarity, flat, table, present)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def owners(self) -> torch.Tensor:
        """The label of each label text, (F,)."""
        labels = torch.arange(len(self), device=self.flat.device)
        return labels.repeat_interleave(self.present.sum(dim=1))

    def block(self, inputs: torch.Tensor, start: int, stop: int) -> torch.Tensor:
        """The scores of prepared texts (n, dim) with the labels of a range: (n, stop - start)."""
        table, present = self.table[start:stop], self.present[start:stop]
        first = int(table[0, 0])
        last = int(table[-1][present[-1]].max()) + 1
        scores = self.similarity.compare(inputs, self.flat[first:last])  # label texts lie in the order of labels
        arranged = scores[:, :, None] if table.shape[1] == 1 else scores[:, (table - first).clamp_min(0)]
        return self.similarity.join(arranged, present)

    def pairs(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The scores of prepared texts (n, dim) with labels of their own (n, c): (n, c)."""
        vectors = self.flat[self.table[labels]]  # (n, c, phrases, dim)
        products = torch.einsum("nd,ncpd->ncp", inputs, vectors)
        return self.similarity.join(self.similarity.scale(products), self.present[labels])


class LabelSearch(Protocol):
    """Finds the best labels of texts."""

    report: SearchReport

    def __call__(self, inputs: torch.Tensor, k: int) -> Found:
        """The k best labels of texts, whose vectors are (n, masks, dim)."""


class ExactSearch:
    """Compares each text with all labels, a block of them at a time."""

    def __init__(self, rows: LabelRows) -> None:
        self._rows = rows
        self.report = SearchReport("exact", len(rows))

    def __call__(self, inputs: torch.Tensor, k: int) -> Found:
        """The k best labels of texts, whose vectors are (n, masks, dim)."""
        return self.best_of(self._rows.similarity.prepare(inputs), k)

    def best_of(self, inputs: torch.Tensor, k: int) -> Found:
        """The k best labels of prepared texts (n, dim)."""
        rows, count, labels = self._rows, len(inputs), len(self._rows)
        size = max(1, BLOCK // (max(1, count) * rows.table.shape[1]))
        scores, places = inputs.new_empty(count, 0), torch.empty(count, 0, dtype=torch.long, device=inputs.device)
        normaliser = inputs.new_full((count,), -math.inf)
        total = torch.zeros(2, count, dtype=torch.float64)  # of scores and of their squares
        for start in range(0, labels, size):
            block = rows.block(inputs, start, min(start + size, labels))  # (n, labels of the block)
            normaliser = torch.logaddexp(normaliser, block.logsumexp(dim=1))
            total += torch.stack([block.sum(dim=1), block.square().sum(dim=1)]).double().cpu()
            best = block.topk(min(k, block.shape[1]), dim=1)
            scores, places = _merged(scores, places, best.values, best.indices + start, k)
        mean, square = total / labels
        spread = (square - mean.square()).clamp_min(0).sqrt()
        return Found(scores, places, normaliser, mean.to(scores), spread.to(scores))


class ApproximateSearch:
    """Compares each text with candidates of an index, and with a sample that stands for all other labels.

    Args:
        rows: The label vectors.
        queries: Vectors of texts (n, masks, dim) to measure the index with.
    """

    def __init__(self, rows: LabelRows, queries: torch.Tensor) -> None:
        started = time.perf_counter()
        self._rows, self._owners = rows, rows.owners
        device = rows.flat.device
        chosen = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))[:SAMPLED]
        self._sample = rows.select(chosen.to(device))
        self._sampled_as = torch.full((len(rows),), -1, device=device)  # (K,), a label's place in the sample
        self._sampled_as[chosen.to(device)] = torch.arange(len(chosen), device=device)
        self._index = LabelIndex(rows.flat, of_one_length=rows.similarity.config.kind == "cosine")
        self.report = self._measured(rows.similarity.prepare(queries), started)
        logger.info(
            "An index over %d labels was built in %.0f s; it finds the best label of %.1f%% of %d texts.",
            self.report.labels,
            self.report.seconds,
            100 * self.report.recall,
            self.report.queries,
        )

    def __call__(self, inputs: torch.Tensor, k: int) -> Found:
        """The k best labels of texts, whose vectors are (n, masks, dim)."""
        return self.best_of(self._rows.similarity.prepare(inputs), k)

    def best_of(self, inputs: torch.Tensor, k: int) -> Found:
        """The k best labels of prepared texts (n, dim)."""
        phrases = self._rows.table.shape[1]
        if k * phrases > len(self._rows.flat) // 8:  # so many that an index is of no use
            return ExactSearch(self._rows).best_of(inputs, k)
        candidates = self._candidates(inputs, max(CANDIDATES, 2 * k * phrases))  # (n, c), -1 where there are fewer
        scores = self._rows.pairs(inputs, candidates.clamp_min(0)).masked_fill(candidates < 0, -math.inf)
        best = scores.topk(min(k, scores.shape[1]), dim=1)
        sample = self._sample.block(inputs, 0, len(self._sample))  # (n, s)
        return Found(
            best.values,
            candidates.gather(1, best.indices),
            torch.logaddexp(scores.logsumexp(dim=1), self._rest(sample, candidates)),
            sample.mean(dim=1),
            sample.std(dim=1, unbiased=False),
        )

    def _candidates(self, inputs: torch.Tensor, count: int) -> torch.Tensor:
        """The labels of the label texts that the index proposes, each once: (n, c), -1 where there are fewer."""
        rows = self._index.nearest(inputs, count)  # (n, c), -1 where there are fewer
        labels = self._owners[rows.clamp_min(0)].masked_fill(rows < 0, -1).sort(dim=1).values
        labels[:, 1:][labels[:, 1:] == labels[:, :-1]] = -1
        return labels

    def _rest(self, sample: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
        """The logarithm of the sum over all labels that are no candidates, as the sample tells it: (n,)."""
        there = candidates >= 0
        place = self._sampled_as[candidates.clamp_min(0)].masked_fill(~there, -1)  # (n, c)
        counted = torch.ones(len(sample), sample.shape[1] + 1, dtype=torch.bool, device=sample.device)
        counted.scatter_(1, torch.where(place < 0, sample.shape[1], place), False)
        counted = counted[:, :-1]  # the last column took what is not in the sample
        others = len(self._rows) - there.sum(dim=1)
        mean = sample.masked_fill(~counted, -math.inf).logsumexp(dim=1) - counted.sum(dim=1).log()
        return mean + others.log()

    def _measured(self, queries: torch.Tensor, started: float) -> SearchReport:
        """Let the index look further until it finds the best labels of the queries (n, dim), as far as that helps."""
        exact = ExactSearch(self._rows).best_of(queries, 1)
        while True:
            found = self.best_of(queries, 1)
            # Another label with the same score is as good.
            recall = float((found.scores[:, 0] >= exact.scores[:, 0] - 1e-4).float().mean())
            if recall >= WANTED_RECALL or not self._index.look_further():
                break
        error = (exact.normaliser - found.normaliser).expm1().abs().mean()
        seconds = time.perf_counter() - started
        return SearchReport("approximate", len(self._rows), len(queries), recall, float(error), seconds)


def make_search(rows: LabelRows, kind: SearchKind, queries: Callable[[], torch.Tensor]) -> LabelSearch:
    """The search over labels.

    Args:
        rows: The label vectors.
        kind: "exact"; "approximate"; or "auto": exact unless there are many labels, on a CPU, and an index can be made.
        queries: Gives vectors of texts (n, masks, dim) to measure an index with.
    """
    many = len(rows.flat) > MOST_SEARCHED_EXACTLY and rows.flat.device.type == "cpu"
    if kind == "approximate" or (kind == "auto" and many and index_available()):
        return ApproximateSearch(rows, queries())
    return ExactSearch(rows)


def probabilities(similarity: Similarity, found: Found, labels: int, multi_label: bool) -> torch.Tensor:
    """The probabilities of the best labels: shares of all labels', or with several labels a text each by itself."""
    if not multi_label:
        return (found.scores - found.normaliser[:, None]).exp()
    if similarity.knows_offset or labels < 2:
        return found.scores.sigmoid()
    return lead_probability(found.scores, found.mean[:, None], found.spread[:, None], labels)


def _merged(
    scores: torch.Tensor, places: torch.Tensor, more_scores: torch.Tensor, more_places: torch.Tensor, k: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The best k of two lists a row, best first."""
    if not scores.shape[1]:
        return more_scores, more_places
    scores, places = torch.cat([scores, more_scores], dim=1), torch.cat([places, more_places], dim=1)
    best = scores.topk(min(k, scores.shape[1]), dim=1)
    return best.values, places.gather(1, best.indices)
