"""LabelScorer: scores and probabilities of texts and labels in numpy, from vectors that were computed before."""

from __future__ import annotations

import math
import threading
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.config.similarity import STEEPNESS
from maskmatch.files import Lock
from maskmatch.labels.adaptation import centred, smoothed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from maskmatch.config.similarity import SimilarityConfig
    from maskmatch.labels.adaptation import Adaptation
    from maskmatch.labels.calibration import Calibration
    from maskmatch.labels.layout import LabelLayout

GATHERED = 1 << 23
"""How many numbers of label vectors are gathered at a time, for texts with candidates of their own: 32 MB."""

LEAST_SPREAD = 1e-3
"""The least standard deviation of scores that counts, relative to their mean (at least 1)."""

LATE_PRODUCTS = 1 << 21
"""How many products late interaction holds at a time: 8 MB."""


@dataclass(frozen=True, eq=False)
class LabelScorer:
    """Label vectors, ready to be compared with input vectors. Make it with :meth:`of` or :meth:`in_context_of`.

    Attributes:
        vectors: (F, dim), prepared for the similarity, one per label text, in the order of labels; for late
            interaction (F, masks, dim). If labels are read with each text, those of some texts: (n, F, …).
        layout: Which label texts belong to which label.
        config: Which similarity.
        scale: One over the temperature.
        offset: The offset (bias) of the logits, where a text may have several labels; else None.
        untrained: Whether the offset has not been trained and so says nothing.
        in_context: Whether labels are read with each text. Their vectors come with the texts: :meth:`for_texts`.
        origin: (dim,), what is subtracted from the directions of texts, if labels were adapted to unlabelled texts.
        neighbours: (m, dim), means of groups of unlabelled texts, which the vectors of texts are shifted towards.
        bias: (K,), what is added to the similarity of each label, such as of labels that were added after training.
    """

    vectors: NDArray[np.float32]
    layout: LabelLayout
    config: SimilarityConfig
    scale: float
    offset: float | None = None
    untrained: bool = False
    in_context: bool = False
    origin: NDArray[np.float32] | None = None
    neighbours: NDArray[np.float32] | None = None
    bias: NDArray[np.float32] | None = None

    @classmethod
    def of(cls, vectors: NDArray[np.float32], layout: LabelLayout, config: SimilarityConfig, **how: Any) -> LabelScorer:
        """A scorer for the vectors of all label texts, (F, masks, dim)."""
        return cls(prepared(vectors, config), layout, config, **how)

    @classmethod
    def in_context_of(cls, layout: LabelLayout, config: SimilarityConfig, **how: Any) -> LabelScorer:
        """A scorer for labels that are read with each text, before there is a text."""
        return cls(np.empty((0, layout.size, 0), np.float32), layout, config, **how, in_context=True)

    def for_texts(self, vectors: NDArray[np.float32]) -> LabelScorer:
        """The same labels as they were read with some texts, (n, F, masks, dim)."""
        return replace(self, vectors=prepared(vectors, self.config))

    def adapted(self, adaptation: Adaptation | None) -> LabelScorer:
        """The same labels, adapted to unlabelled texts."""
        if adaptation is None:
            return self
        scaled = replace(self, scale=self.scale * adaptation.scale)
        if adaptation.smooths:
            return replace(scaled, neighbours=adaptation.prototypes)
        vectors = adaptation.label_vectors(self.vectors, self.layout)
        return replace(scaled, vectors=vectors, origin=adaptation.mean)

    def calibrated(self, calibration: Calibration | None, added: NDArray[np.bool_] | None = None) -> LabelScorer:
        """The same labels with another temperature, and an offset for labels that were added after training.

        Args:
            calibration: The calibration; None: none.
            added: (K,), which labels were added; None: none.
        """
        if calibration is None:
            return self
        scaled = replace(self, scale=self.scale / calibration.temperature)
        if added is None or not added.any() or not calibration.added:
            return scaled
        return replace(scaled, bias=np.where(added, np.float32(calibration.added), np.float32(0)))

    def __len__(self) -> int:
        return len(self.layout)

    def select(self, labels: NDArray[np.int64]) -> LabelScorer:
        """A scorer for some of the labels (s,) alone."""
        from maskmatch.labels.layout import LabelLayout

        rows = self.layout.table[labels][self.layout.present[labels]]
        bias = None if self.bias is None else self.bias[labels]
        return replace(self, vectors=self.vectors[rows], layout=LabelLayout(self.layout.counts[labels]), bias=bias)

    # -- scores ----------------------------------------------------------------------------------------------

    def prepare(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Input vectors as they are compared: (n, masks, dim) → (n, dim), or (n, masks, dim) for late interaction."""
        rows = prepared(inputs, self.config)
        if self.origin is not None:
            rows = centred(rows, self.origin)
        if self.neighbours is None:
            return rows
        with blas_threads(len(rows) * self.neighbours.size):
            return smoothed(rows, self.neighbours)

    def scores(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Score every text with every label: (n, masks, dim) → (n, K)."""
        return self.block(self.prepare(inputs), 0, len(self))

    def similarities(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The similarity of every text with every label text, without temperature and offset: (n, F)."""
        compare = _late_products if self.config.mask_join.late else _products
        return compare(self.prepare(inputs), self.vectors)

    def multiplications(self, rows: NDArray[np.float32]) -> int:
        """How many multiplications it takes to compare prepared texts (n, …, dim) with all labels."""
        masks = rows.shape[1] if self.config.mask_join.late else 1
        return masks * self.vectors.size * (1 if self.in_context else len(rows))

    def block(self, rows: NDArray[np.float32], start: int, stop: int) -> NDArray[np.float32]:
        """The scores of prepared texts (n, …, dim) with a range of labels: (n, stop - start)."""
        table, present = self.layout.table[start:stop], self.layout.present[start:stop]
        first, last = int(table[0, 0]), int(table[-1].max()) + 1  # label texts are in the order of labels
        texts = self.vectors[:, first:last] if self.in_context else self.vectors[first:last]
        compare = _late_products if self.config.mask_join.late else _products
        scores = self._scaled(compare(rows, texts))
        if table.shape[1] > 1:
            scores = self._joined(scores[:, np.maximum(table - first, 0)], present)
        return scores if self.bias is None else scores + np.float32(self.scale) * self.bias[start:stop]

    def candidate_scores(self, rows: NDArray[np.float32], labels: NDArray[np.int64]) -> NDArray[np.float32]:
        """The scores of prepared texts (n, dim) with candidates of their own (n, c): (n, c)."""
        table = self.layout.table[labels]  # (n, c, phrases)
        products = np.empty(table.shape, np.float32)
        size = max(1, GATHERED // (table[:1].size * self.vectors.shape[1]))
        for start in range(0, len(rows), size):
            some = table[start : start + size]
            vectors = self.vectors[some.reshape(len(some), -1)]  # (some, c * phrases, dim)
            products[start : start + size] = (vectors @ rows[start : start + size, :, None]).reshape(some.shape)
        scores = self._joined(self._scaled(products), self.layout.present[labels])
        return scores if self.bias is None else scores + np.float32(self.scale) * self.bias[labels]

    def _scaled(self, products: NDArray[np.float32]) -> NDArray[np.float32]:
        """Dot products as logits, in place: they are large, and nobody else has them."""
        if self.offset is not None:
            products -= np.float32(self.offset)
        products *= np.float32(self.scale)
        return products

    def _joined(self, scores: NDArray[Any], present: NDArray[np.bool_]) -> NDArray[Any]:
        """One score per label from the scores of its phrases: (…, K, phrases) → (…, K)."""
        if scores.shape[-1] == 1:
            return scores[..., 0]
        return np.asarray(self.config.phrase_join.numpy(scores, present))

    # -- probabilities ---------------------------------------------------------------------------------------

    @property
    def by_lead(self) -> bool:
        """Whether a label applies by its lead over the others, because the offset has not been trained."""
        return self.offset is not None and self.untrained and len(self) > 1

    def probabilities(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The probability of each label: (n, masks, dim) → (n, K). With several labels per text, each by itself."""
        scores = self.scores(inputs)
        if self.offset is None:
            return np.asarray(np.exp(scores - logsumexp(scores)[:, None]))
        if not self.by_lead:
            return sigmoid(scores)
        mean = scores.mean(axis=1, keepdims=True, dtype=np.float64)
        spread = np.sqrt(np.square(scores - mean).mean(axis=1, keepdims=True))
        return lead_probability(scores, mean, spread, scores.shape[1])


def lead_probability(scores: NDArray[Any], mean: NDArray[Any], spread: NDArray[Any], labels: int) -> NDArray[Any]:
    """How far each label stands out among the labels of its text, as a probability: (n, K) → (n, K).

    Encoders differ in how similar they find any two things, so without training no similarity says that a label
    applies. Its lead over the mean of all labels does, in standard deviations. The lead must be larger the more labels
    there are, because the nearest of many leads by chance. Each text is judged by itself. Labels whose scores hardly
    differ have no lead: what remains is rounding, which depends on the batch.

    Args:
        scores: (n, k), the scores of some labels
        mean: (n, 1), the mean of the scores of all labels
        spread: (n, 1), their standard deviation
        labels: The number of all labels.
    """
    least = LEAST_SPREAD * np.maximum(1, np.abs(mean))
    leads = (scores - mean) / np.maximum(spread, least) - math.sqrt(math.log(labels))
    return sigmoid(STEEPNESS * leads).astype(np.float32)


def logsumexp(scores: NDArray[Any]) -> NDArray[Any]:
    """The logarithm of the sum of exponentiated scores over the last axis; -inf if all of them are -inf."""
    largest = scores.max(axis=-1)
    shift = np.where(np.isfinite(largest), largest, 0.0).astype(scores.dtype, copy=False)
    powers = scores - shift[..., None]
    np.exp(powers, out=powers)  # one copy of what may be large, not two
    with np.errstate(divide="ignore"):
        return np.asarray(shift + np.log(powers.sum(axis=-1)))


def sigmoid(scores: NDArray[Any]) -> NDArray[Any]:
    """The logistic function, without overflow."""
    powers = np.exp(-np.abs(scores))
    return np.asarray(np.where(scores >= 0, 1.0, powers) / (1.0 + powers)).astype(scores.dtype, copy=False)


def prepared(vectors: NDArray[Any], config: SimilarityConfig) -> NDArray[np.float32]:
    """Vectors as they are compared: (…, masks, dim) → (…, dim), or (…, masks, dim) for late interaction."""
    return np.ascontiguousarray(config.row.numpy(config.mask_join.numpy(vectors)), dtype=np.float32)


def _products(rows: NDArray[np.float32], texts: NDArray[np.float32]) -> NDArray[np.float32]:
    """Dot products of texts (n, dim) with label texts, (F, dim) or (n, F, dim): (n, F)."""
    if texts.ndim == 3:
        return np.asarray((texts @ rows[:, :, None])[:, :, 0])
    with blas_threads(len(rows) * texts.size):
        return np.asarray(rows @ texts.T)


def _late_products(rows: NDArray[np.float32], texts: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean over a text's masks of the product with the nearest mask of the label.

    Args:
        rows: (n, masks, dim)
        texts: (F, label masks, dim), or (n, F, label masks, dim)

    Returns:
        (n, F)
    """
    count, (labels, masks, dimension) = len(rows), texts.shape[-3:]
    total = np.zeros((count, labels), dtype=np.float32)
    size = max(1, LATE_PRODUCTS // max(1, count * masks))
    for start in range(0, labels, size):
        part = texts[..., start : start + size, :, :]
        flat = part.reshape(*part.shape[:-3], -1, dimension)  # (…, labels of the block * label masks, dim)
        for mask in range(rows.shape[1]):
            products = _products(np.ascontiguousarray(rows[:, mask]), flat)
            total[:, start : start + size] += products.reshape(count, -1, masks).max(axis=-1)
    return np.asarray(total / np.float32(rows.shape[1]))


LARGE = 2 * 10**9
"""From how many multiplications several threads are worth it."""

_decided = threading.local()


@contextmanager
def blas_threads(multiplications: int) -> Iterator[None]:
    """Use one thread for small work, all threads for large work. The outermost decision holds for all products within.

    The number of threads is a setting of the process: while one caller does small work, large work has one thread too.
    """
    if getattr(_decided, "already", False):
        yield
        return
    _decided.already = True
    try:
        with nullcontext() if multiplications >= LARGE else _one_thread:
            yield
    finally:
        _decided.already = False


class _OneThread:
    """BLAS has one thread as long as any caller is within; no caller waits for another."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._within = 0
        self._limiter: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._within:
                self._limiter = _blas().limit(limits=1)
            self._within += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._within -= 1
            if not self._within:
                self._limiter.restore_original_limits()


_one_thread = _OneThread()


def use_one_blas_thread() -> None:
    """Use one thread for all products from now on: with many small ones, each switch costs time."""
    _one_thread.__enter__()


@cache
def _blas() -> Any:
    """The controller of BLAS threads."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
