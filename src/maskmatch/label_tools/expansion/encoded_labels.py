"""The vectors of labels, phrases and texts, as a classifier encodes them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.labels.centroids import NO_CENTROIDS, Centroids, example_weight

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from maskmatch.labels import LabelSet
    from maskmatch.prediction.editing import EditablePredictor


@dataclass(frozen=True)
class EncodedLabels:
    """Labels with their vectors, and the classifier that encodes them. Vectors of phrases and texts are cached.

    Attributes:
        matcher: The classifier.
        labels: The labels; they may differ from the classifier's labels.
    """

    matcher: EditablePredictor
    labels: LabelSet
    _phrase_cache: dict[str, NDArray[np.float32]] = field(default_factory=dict, repr=False, compare=False)
    _text_cache: dict[str, NDArray[np.float32]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        method = self.matcher.config.method
        if method.label_source != "prompt":
            raise MaskMatchError(
                f"The method {method.name} does not encode label names, so names cannot be compared; use "
                "mask-matching or semantic-matching."
            )
        if self.matcher.config.labels_in_context:
            raise MaskMatchError(
                f"The label prompt {self.matcher.config.label_prompt.template!r} contains a field of the text, so a "
                "label has no vector without a text; use a label prompt that contains the label alone."
            )

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """The vector of each label: the mean of its name and phrases, with unit norm. Shape: (K, dim)."""
        texts = [text for label in self.labels.labels for text in label.texts]
        label_of_text = np.repeat(np.arange(len(self.labels)), [len(label.texts) for label in self.labels.labels])
        encoded = self.encode_phrases(texts)  # (F, dim), F texts of all labels
        sums = np.zeros((len(self.labels), encoded.shape[1]), dtype=np.float32)
        np.add.at(sums, label_of_text, encoded)
        return unit_norm(sums)

    @cached_property
    def shifted_vectors(self) -> NDArray[np.float32]:
        """The vectors as prediction uses them: shifted by centroids of examples or training texts. Shape: (K, dim)."""
        known = self.matcher.bank.centroids_of(self.labels)
        centroids = replace(known, vectors=known.vectors.mean(axis=1, keepdims=True)) if len(known) else NO_CENTROIDS
        with_examples = [label for label in self.labels.labels if label.examples]
        if with_examples:
            encoded = self.encode_texts([text for label in with_examples for text in label.examples])
            counts = [len(label.examples) for label in with_examples]
            label_of_text = np.repeat(np.arange(len(counts)), counts)
            ids, shares = [label.id for label in with_examples], [example_weight(count) for count in counts]
            centroids = centroids.merged(Centroids.of(ids, encoded[:, None], label_of_text, shares))
        if not len(centroids):
            return self.vectors
        return unit_norm(centroids.shift(self.vectors[:, None], list(self.labels))[:, 0])

    def encode_phrases(self, phrases: Sequence[str]) -> NDArray[np.float32]:
        """Encode phrases in the label prompt: (n, dim), with unit norm."""
        return _encode(phrases, self._phrase_cache, lambda new: _mean_over_masks(self.matcher.phrase_states(new)))

    def encode_texts(self, texts: Sequence[Any]) -> NDArray[np.float32]:
        """Encode texts in the input prompt: (n, dim), with unit norm."""
        if not all(isinstance(text, str) for text in texts):  # dicts of several fields are not cached
            return unit_norm(_mean_over_masks(self.matcher.text_states(texts)))
        return _encode(texts, self._text_cache, lambda new: _mean_over_masks(self.matcher.text_states(new)))

    def token_ids(self, words: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each word."""
        return self.matcher.bank.tokenizer.words(words)


def _encode(
    texts: Sequence[str],
    cache: dict[str, NDArray[np.float32]],
    encode: Callable[[list[str]], NDArray[np.float32]],
) -> NDArray[np.float32]:
    """Return the vectors of texts, with unit norm; only texts that are not in the cache are encoded."""
    new = [text for text in dict.fromkeys(texts) if text not in cache]
    if new:
        cache.update(zip(new, unit_norm(encode(new)), strict=True))
    return np.stack([cache[text] for text in texts])


def _mean_over_masks(states: NDArray[np.float32]) -> NDArray[np.float32]:
    """Average the states of several masks: (n, masks, dim) → (n, dim)."""
    return np.asarray(states.mean(axis=1))


def unit_norm(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Normalise vectors (…, dim) to unit norm."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, 1e-12), dtype=np.float32)


def mean_centred(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Subtract the mean vector, then normalise to unit norm: (n, dim) → (n, dim)."""
    return unit_norm(vectors - vectors.mean(axis=0)) if len(vectors) > 1 else unit_norm(vectors)


def leads(similarities: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the margin of each label over the best other label, per row: (n, K) → (n, K).

    >>> leads(np.array([[0.75, 0.5, 0.25]], dtype=np.float32)).tolist()
    [[0.25, -0.25, -0.5]]
    """
    if similarities.shape[1] == 1:
        return similarities
    nearest = similarities.argmax(axis=1)[:, None]  # (n, 1)
    ascending = np.sort(similarities, axis=1)
    is_nearest = np.arange(similarities.shape[1])[None] == nearest
    best_of_others = np.where(is_nearest, ascending[:, -2:-1], ascending[:, -1:])
    return np.asarray(similarities - best_of_others, dtype=np.float32)
