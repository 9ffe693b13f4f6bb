"""How much the names of labels say, before any training."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.expansion import Ground
from maskmatch.inputs import take_texts
from maskmatch.labels import LabelSet, LabelsLike

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from maskmatch.classifier import MaskMatcher

MEANINGLESS = (
    *(f"label {number}" for number in (1, 7, 23, 58)),
    *(f"class {letter}" for letter in "abx"),
    *("category 4", "topic 5", "group 9", "type c"),
    *("x", "item", "unknown", "xkq zrt"),
)
"""Names that say nothing about texts."""

UNRELATED = (
    *("weather", "violin", "tax return", "football match", "breakfast", "virus infection", "summer holiday"),
    *("bridge construction", "grief", "spelling", "lawsuit", "bicycle", "planet", "wedding", "software update", "fish"),
)
"""Names that have nothing in common: how similar the encoder finds them is how similar it finds anything."""

WORD = re.compile(r"\w+")
LETTERS_OF_A_PIECE = 3
"""From how many letters on, on average, the pieces of a word are parts of words that the encoder has met."""

BLOCK = 1024
"""How many labels are compared with all others at once."""

TEMPERATURE = 0.05
"""Of the softmax over names by which texts commit themselves: that of the default similarity, whatever is learned."""


@dataclass(frozen=True)
class Informativeness:
    """How much the names of labels say; all figures go from 0 to 1.

    Attributes:
        score: Of all names together: their mean, or with texts the commitment.
        scores: Of each name, in the order of labels.
        sense: How far each name is from names that mean nothing, less where its words are none to the encoder.
        distinctness: How far each name is from the nearest other name.
        commitment: How much the nearest name tells about a text, if there were texts and several names; else None.
    """

    score: float
    scores: tuple[float, ...]
    sense: tuple[float, ...]
    distinctness: tuple[float, ...]
    commitment: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """It as plain JSON."""
        lists = {
            name: [round(value, 4) for value in getattr(self, name)] for name in ("scores", "sense", "distinctness")
        }
        commitment = None if self.commitment is None else round(self.commitment, 4)
        return {"score": round(self.score, 4), "commitment": commitment, **lists}


def informativeness(matcher: MaskMatcher, labels: LabelsLike | None = None, texts: Any = None) -> Informativeness:
    """How much the names of labels say about texts, before any training: from 0 to 1, each and together.

    Args:
        matcher: What reads the names, and the texts.
        labels: The labels; None: the classifier's own.
        texts: Texts without labels, if there are any, a hundred or so. How far they commit themselves to single names
            tells how much names help; names alone only tell those that say something from those that say nothing.
    """
    if labels is None and matcher.labels is None:
        raise MaskMatchError("There are no labels to judge: give them to informativeness or to from_pretrained.")
    ground = Ground(matcher, LabelSet.of(matcher.labels if labels is None else labels))
    vectors = None if texts is None else ground.read_texts(take_texts(texts, matcher.config.input_fields))
    return measure(ground, vectors)


def measure(ground: Ground, texts: NDArray[np.float32] | None = None) -> Informativeness:
    """The informativeness of labels by their names and phrases, with the vectors of texts (n, dim) if there are any."""
    usual = usual_similarity(ground)
    to_meaningless = (ground.vectors @ ground.read_phrases(MEANINGLESS).T).max(axis=1)  # (K,)
    sense = _distance(to_meaningless, usual) * _readability(ground)
    distinctness = _distance(_to_nearest(ground.vectors), usual)
    scores = np.sqrt(sense * distinctness)  # (K,)
    commitment = None if texts is None or len(ground.labels) < 2 else commit(texts, ground.vectors)
    return Informativeness(
        score=float(scores.mean()) if commitment is None else commitment,
        scores=tuple(scores.tolist()),
        sense=tuple(sense.tolist()),
        distinctness=tuple(distinctness.tolist()),
        commitment=commitment,
    )


def usual_similarity(ground: Ground) -> float:
    """How similar the encoder finds names that have nothing in common: some encoders find everything similar."""
    vectors = ground.read_phrases(UNRELATED)
    products = vectors @ vectors.T
    return min(float(products[~np.eye(len(vectors), dtype=bool)].mean()), 0.99)


def commit(texts: NDArray[np.float32], labels: NDArray[np.float32]) -> float:
    """How much the nearest name tells about a text: their mutual information, as a share of the largest there can be.

    That is the logarithm of the number of names, or of texts if there are fewer of these. It is small where texts come
    as near to one name as to another, and where most of them come near to the same name.

    Args:
        texts: (n, dim)
        labels: (K, dim)
    """
    if min(len(texts), len(labels)) < 2:
        return 0.0
    scores = texts.astype(np.float64) @ labels.T.astype(np.float64) / TEMPERATURE  # (n, K)
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    told = _entropy(chances.mean(axis=0)) - float(np.mean([_entropy(row) for row in chances]))
    return min(1.0, max(0.0, told / math.log(min(len(texts), len(labels)))))


def _entropy(chances: NDArray[np.float64]) -> float:
    return float(-(chances * np.log(np.maximum(chances, 1e-12))).sum())


def _distance(similarities: NDArray[np.float32], usual: float) -> NDArray[np.float64]:
    """Cosines as distances: 0 for the same vector, 1 for one that is no nearer than unrelated names are."""
    return np.clip((1.0 - similarities.astype(np.float64)) / (1.0 - usual), 0.0, 1.0)


def _to_nearest(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The cosine of each label (K, dim) with the nearest other one: (K,)."""
    nearest = np.full(len(vectors), -1.0, dtype=np.float32)
    if len(vectors) < 2:
        return nearest
    for start, products in cosine_blocks(vectors):
        rows = np.arange(len(products))
        products[rows, start + rows] = -1.0
        nearest[start : start + len(products)] = products.max(axis=1)
    return nearest


def cosine_blocks(vectors: NDArray[np.float32]) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """The cosines of vectors (K, dim) with all others, some of them at a time: the first row, and (rows, K)."""
    for start in range(0, len(vectors), BLOCK):
        yield start, vectors[start : start + BLOCK] @ vectors.T


def _readability(ground: Ground) -> NDArray[np.float64]:
    """How whole the words of each name are to the encoder: 1 if each is one token, less where they fall to letters."""
    found = []
    for label in ground.labels.labels:
        words = WORD.findall(label.name) or [label.name]
        found.append(float(np.mean([_wholeness(*each) for each in zip(words, ground.tokens(words), strict=True)])))
    return np.array(found)


def _wholeness(word: str, tokens: Sequence[int]) -> float:
    """1 for a word that is one token or falls into pieces that are parts of words; less, the shorter they are.

    >>> _wholeness("refund", [1, 2]), _wholeness("rfnd", [1, 2, 3, 4])
    (1.0, 0.3333333333333333)
    """
    return 1.0 if len(tokens) < 2 else min(1.0, len(word) / (LETTERS_OF_A_PIECE * len(tokens)))
