"""How informative label names are, before any training."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.data import take_texts
from maskmatch.errors import MaskMatchError
from maskmatch.label_tools.expansion import EncodedLabels
from maskmatch.labels import LabelSet, LabelsLike

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from maskmatch.matcher import MaskMatcher

MEANINGLESS_NAMES = (
    *(f"label {number}" for number in (1, 7, 23, 58)),
    *(f"class {letter}" for letter in "abx"),
    *("category 4", "topic 5", "group 9", "type c"),
    *("x", "item", "unknown", "xkq zrt"),
)
"""Names that say nothing about texts."""

UNRELATED_NAMES = (
    *("weather", "violin", "tax return", "football match", "breakfast", "virus infection", "summer holiday"),
    *("bridge construction", "grief", "spelling", "lawsuit", "bicycle", "planet", "wedding", "software update", "fish"),
)
"""Names that have nothing in common. Their mean cosine is the encoder's baseline similarity."""

WORD = re.compile(r"\w+")
LETTERS_PER_TOKEN = 3
"""From this average on, the tokens of a word are parts of words that the encoder knows, rather than single letters."""

BLOCK = 1024
"""The number of labels that are compared with all others at once, to bound memory."""

TEMPERATURE = 0.05
"""The temperature of the softmax over labels: that of the default similarity, even if training has learned another."""


@dataclass(frozen=True)
class Informativeness:
    """How informative label names are. All values are between 0 and 1.

    Attributes:
        score: The whole label set: the mean of ``scores``, or the commitment if there are texts.
        scores: Each name, in the order of labels: the geometric mean of sense and distinctness.
        sense: The distance of each name from meaningless names, reduced if the tokenizer splits its words to letters.
        distinctness: The distance of each name from the nearest other name.
        commitment: How confident the texts are in single labels: the normalised mutual information of texts and
            labels. None without texts or with one label.
    """

    score: float
    scores: tuple[float, ...]
    sense: tuple[float, ...]
    distinctness: tuple[float, ...]
    commitment: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Convert to a JSON object."""
        lists = {
            name: [round(value, 4) for value in getattr(self, name)] for name in ("scores", "sense", "distinctness")
        }
        commitment = None if self.commitment is None else round(self.commitment, 4)
        return {"score": round(self.score, 4), "commitment": commitment, **lists}


def informativeness(matcher: MaskMatcher, labels: LabelsLike | None = None, texts: Any = None) -> Informativeness:
    """Measure how informative label names are, before any training: per name and for the whole set, from 0 to 1.

    Args:
        matcher: The classifier that encodes names and texts.
        labels: The labels; None for the classifier's labels.
        texts: Unlabelled texts, if there are any; about a hundred are enough. They show how much names help: the more
            confident texts are in single labels, the more. Without texts, the result only separates meaningful names
            from meaningless ones.
    """
    if labels is None and matcher.labels is None:
        raise MaskMatchError("There are no labels to measure: give them to informativeness or to from_pretrained.")
    encoded = EncodedLabels(matcher, LabelSet.of(matcher.labels if labels is None else labels))
    vectors = None if texts is None else encoded.encode_texts(take_texts(texts, matcher.config.input_fields))
    return measure(encoded, vectors)


def measure(labels: EncodedLabels, texts: NDArray[np.float32] | None = None) -> Informativeness:
    """Measure the informativeness of labels by their names and phrases.

    Args:
        labels: The labels with their vectors.
        texts: (n, dim), the vectors of texts, if there are any.
    """
    baseline = unrelated_similarity(labels)
    to_meaningless = (labels.vectors @ labels.encode_phrases(MEANINGLESS_NAMES).T).max(axis=1)  # (K,)
    sense = _distance(to_meaningless, baseline) * _readability(labels)
    distinctness = _distance(_nearest_cosines(labels.vectors), baseline)
    scores = np.sqrt(sense * distinctness)  # (K,)
    commitment = None if texts is None or len(labels.labels) < 2 else mutual_information(texts, labels.vectors)
    return Informativeness(
        score=float(scores.mean()) if commitment is None else commitment,
        scores=tuple(scores.tolist()),
        sense=tuple(sense.tolist()),
        distinctness=tuple(distinctness.tolist()),
        commitment=commitment,
    )


def unrelated_similarity(labels: EncodedLabels) -> float:
    """Return the mean cosine of unrelated names: some encoders find everything similar."""
    vectors = labels.encode_phrases(UNRELATED_NAMES)
    cosines = vectors @ vectors.T
    return min(float(cosines[~np.eye(len(vectors), dtype=bool)].mean()), 0.99)


def mutual_information(texts: NDArray[np.float32], labels: NDArray[np.float32]) -> float:
    """Return the normalised mutual information of texts and labels: the entropy of the mean minus the mean entropy.

    It is divided by its maximum, the logarithm of the number of labels, or of texts if these are fewer. It is small if
    texts are equally similar to several labels, or if most texts are nearest to the same label.

    Args:
        texts: (n, dim)
        labels: (K, dim)
    """
    if min(len(texts), len(labels)) < 2:
        return 0.0
    logits = texts.astype(np.float64) @ labels.T.astype(np.float64) / TEMPERATURE  # (n, K)
    probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    information = _entropy(probabilities.mean(axis=0)) - float(np.mean([_entropy(row) for row in probabilities]))
    return min(1.0, max(0.0, information / math.log(min(len(texts), len(labels)))))


def _entropy(probabilities: NDArray[np.float64]) -> float:
    return float(-(probabilities * np.log(np.maximum(probabilities, 1e-12))).sum())


def _distance(cosines: NDArray[np.float32], baseline: float) -> NDArray[np.float64]:
    """Convert cosines to distances: 0 is the same vector, 1 is as far as unrelated names or farther."""
    return np.clip((1.0 - cosines.astype(np.float64)) / (1.0 - baseline), 0.0, 1.0)


def _nearest_cosines(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosine of each label with its nearest other label: (K, dim) → (K,)."""
    nearest = np.full(len(vectors), -1.0, dtype=np.float32)
    if len(vectors) < 2:
        return nearest
    for start, cosines in cosine_blocks(vectors):
        rows = np.arange(len(cosines))
        cosines[rows, start + rows] = -1.0
        nearest[start : start + len(cosines)] = cosines.max(axis=1)
    return nearest


def cosine_blocks(vectors: NDArray[np.float32]) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield the cosines of vectors (K, dim) with all others in blocks: the first row number, and (rows, K)."""
    for start in range(0, len(vectors), BLOCK):
        yield start, vectors[start : start + BLOCK] @ vectors.T


def _readability(labels: EncodedLabels) -> NDArray[np.float64]:
    """Return per name the mean readability of its words: (K,)."""
    found = []
    for label in labels.labels.labels:
        words = WORD.findall(label.name) or [label.name]
        pairs = zip(words, labels.token_ids(words), strict=True)
        found.append(float(np.mean([_word_readability(word, token_ids) for word, token_ids in pairs])))
    return np.array(found)


def _word_readability(word: str, token_ids: Sequence[int]) -> float:
    """Return 1 for a word that is one token or splits into parts of words; less, the shorter its tokens are.

    >>> _word_readability("refund", [1, 2]), _word_readability("rfnd", [1, 2, 3, 4])
    (1.0, 0.3333333333333333)
    """
    return 1.0 if len(token_ids) < 2 else min(1.0, len(word) / (LETTERS_PER_TOKEN * len(token_ids)))
