"""A cache of label vectors: each label text is encoded once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from maskmatch.labels.label import LabelText

CacheKey = tuple[Any, str]
"""The version of the weights, and what else vectors depend on: prompts, read-out, maximum length."""


class VectorCache:
    """The vectors of label texts for one state of the weights and one way of reading them.

    A look-up encodes only the texts that are missing. Another key makes all of it stale.
    """

    def __init__(self) -> None:
        # One attribute, so that another thread never sees the key of one state with the vectors of another.
        self._filled: tuple[CacheKey, tuple[LabelText, ...], NDArray[np.float32]] | None = None

    def copy(self) -> VectorCache:
        """A cache with the same vectors."""
        cache = VectorCache()
        cache._filled = self._filled
        return cache

    def look_up(
        self, texts: Sequence[LabelText], key: CacheKey, encode: Callable[[Sequence[LabelText]], NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """The vectors of label texts: (F, masks, dim)."""
        texts, filled = tuple(texts), self._filled
        if filled is None or filled[0] != key:
            vectors = encode(texts)
        else:
            _, own_texts, vectors = filled
            if texts != own_texts:
                known = {text: place for place, text in enumerate(own_texts)}
                missing = [text for text in dict.fromkeys(texts) if text not in known]
                if missing:
                    known |= {text: len(vectors) + place for place, text in enumerate(missing)}
                    vectors = np.concatenate([vectors, encode(missing)])
                vectors = vectors[[known[text] for text in texts]]
        self.fill(texts, vectors, key)
        return vectors

    def has(self, texts: Sequence[LabelText], key: CacheKey) -> bool:
        """Whether a look-up of these texts would encode none."""
        if self._filled is None or self._filled[0] != key:
            return False
        _, known, vectors = self._filled
        return len(vectors) == len(known) and set(texts) <= set(known)

    def fill(self, texts: Sequence[LabelText], vectors: NDArray[np.float32], key: CacheKey) -> None:
        """Take vectors that are known already, for instance from a saved classifier."""
        self._filled = key, tuple(texts), vectors
