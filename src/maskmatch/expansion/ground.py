"""What sources and filters stand on: labels with their vectors, and the classifier that reads words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.label_examples import NO_CENTRES, Centres, share_of_examples
from maskmatch.prompts import PromptTokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from maskmatch.classifier import MaskMatcher
    from maskmatch.labels import LabelSet


@dataclass(frozen=True)
class Ground:
    """Labels as a classifier reads them. What was read once is kept.

    Attributes:
        matcher: The classifier.
        labels: The labels; they need not be the classifier's own.
    """

    matcher: MaskMatcher
    labels: LabelSet
    _phrases: dict[str, NDArray[np.float32]] = field(default_factory=dict, repr=False, compare=False)
    _texts: dict[str, NDArray[np.float32]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        method = self.matcher.config.method
        if method.label_source != "prompt":
            raise MaskMatchError(
                f"The method {method.name} reads no label prompts, so there is nothing to compare names by; take "
                "mask-matching or semantic-matching."
            )
        if self.matcher.config.labels_in_context:
            raise MaskMatchError(
                f"The label prompt {self.matcher.config.label_prompt.template!r} names a field of the text, so a name "
                "has no vector of its own to look at; take a label prompt that names the label alone."
            )

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """The vectors of labels, each the mean of its name and phrases, of length 1: (K, dim)."""
        texts = [text for label in self.labels.labels for text in label.texts]
        owners = np.repeat(np.arange(len(self.labels)), [len(label.texts) for label in self.labels.labels])
        read = self.read_phrases(texts)  # (F, dim)
        sums = np.zeros((len(self.labels), read.shape[1]), dtype=np.float32)
        np.add.at(sums, owners, read)
        return unit(sums)

    @cached_property
    def matched(self) -> NDArray[np.float32]:
        """The same vectors where texts have moved them, examples or those of training: (K, dim)."""
        import torch

        known = self.matcher.centres_of(self.labels)
        centres = replace(known, vectors=known.vectors.mean(dim=1, keepdim=True)) if len(known) else NO_CENTRES
        with_examples = [label for label in self.labels.labels if label.examples]
        if with_examples:
            read = self.read_texts([text for label in with_examples for text in label.examples])
            counts = [len(label.examples) for label in with_examples]
            owners = torch.from_numpy(np.repeat(np.arange(len(counts)), counts))
            ids, shares = [label.id for label in with_examples], [share_of_examples(count) for count in counts]
            centres = centres.joined(Centres.of(ids, torch.from_numpy(read)[:, None], owners, shares))
        if not len(centres):
            return self.vectors
        return unit(centres.move(torch.from_numpy(self.vectors)[:, None], list(self.labels))[:, 0].numpy())

    def read_phrases(self, phrases: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of phrases in the label prompt, of length 1: (n, dim)."""
        return _read(phrases, self._phrases, lambda missing: _flat(self.matcher.phrase_states(missing)))

    def read_texts(self, texts: Sequence[Any]) -> NDArray[np.float32]:
        """The vectors of texts in the input prompt, of length 1: (n, dim)."""
        if not all(isinstance(text, str) for text in texts):  # with several fields
            return unit(_flat(self.matcher.text_states(list(texts))))
        return _read(texts, self._texts, lambda missing: _flat(self.matcher.text_states(missing)))

    @cached_property
    def _tokenizer(self) -> PromptTokenizer:
        return PromptTokenizer(self.matcher.encoder.tokenizer, self.matcher.config.max_length)

    def tokens(self, words: Sequence[str]) -> list[list[int]]:
        """The token ids of words."""
        return self._tokenizer.words(words)


def _read(
    texts: Sequence[str],
    known: dict[str, NDArray[np.float32]],
    read: Callable[[list[str]], NDArray[np.float32]],
) -> NDArray[np.float32]:
    """The vectors of texts, of length 1, of which only those that are not known yet are read."""
    missing = [text for text in dict.fromkeys(texts) if text not in known]
    if missing:
        known.update(zip(missing, unit(read(missing)), strict=True))
    return np.stack([known[text] for text in texts])


def _flat(states: NDArray[np.float32]) -> NDArray[np.float32]:
    """States (n, masks, dim) as vectors (n, dim): several masks are averaged."""
    return np.asarray(states.mean(axis=1))


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors (…, dim) at length 1."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)


def centred(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors without what they have in common, of length 1: (n, dim)."""
    return unit(vectors - vectors.mean(axis=0)) if len(vectors) > 1 else unit(vectors)


def leads(similarities: NDArray[np.float32]) -> NDArray[np.float32]:
    """By how much each label leads over the best of the others, for each row: (n, K) → (n, K).

    >>> leads(np.array([[0.75, 0.5, 0.25]], dtype=np.float32)).tolist()
    [[0.25, -0.25, -0.5]]
    """
    if similarities.shape[1] == 1:
        return similarities
    first = similarities.argmax(axis=1)[:, None]  # (n, 1)
    order = np.sort(similarities, axis=1)
    best_of_others = np.where(np.arange(similarities.shape[1])[None] == first, order[:, -2:-1], order[:, -1:])
    return np.asarray(similarities - best_of_others, dtype=np.float32)
