"""Synthetic data of any size: names of real words, texts of a given length, label vectors without encoding names.

It needs only the standard library and numpy, because the processes of peers use it too.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

NOISE = 0.5
"""The norm of the noise in a synthetic vector; the real vectors that it is mixed from have unit norm."""

AT_ONCE = 50_000


def words_of(texts: Sequence[Any]) -> list[str]:
    """The distinct words of texts, sorted."""
    return sorted({word for text in texts for word in str(text).lower().split() if word.isalpha()})


def make_names(words: Sequence[str], count: int) -> list[str]:
    """Distinct names of two to five words each; fewer names are the first of more.

    Example:
        >>> make_names(["card", "lost", "refund"], 2) == make_names(["card", "lost", "refund"], 9)[:2]
        True
    """
    rng = random.Random(0)
    names: dict[str, None] = {}
    while len(names) < count:
        names[" ".join(rng.choices(words, k=rng.randint(2, 5)))] = None
    return list(names)


def make_texts(texts: Sequence[Any], length: int, count: int) -> list[str]:
    """``count`` texts of ``length`` words each, with the words in the order of real texts.

    Example:
        >>> make_texts(["my card", "is lost"], 3, 2)
        ['my card is', 'lost my card']
    """
    words = [word for text in texts for word in str(text).split()]
    return [" ".join(words[(row * length + place) % len(words)] for place in range(length)) for row in range(count)]


def mix_vectors(real: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """Synthetic vectors, each a mixture of two real ones of unit norm with noise: (count, dim)."""
    import numpy as np

    rng = np.random.default_rng(0)
    dim = real.shape[1]
    flat = real / np.linalg.norm(real, axis=1, keepdims=True)
    made = np.empty((count, dim), dtype=np.float32)
    for start in range(0, count, AT_ONCE):
        rows = min(AT_ONCE, count - start)
        one, other = (flat[rng.integers(len(flat), size=rows)] for _ in range(2))
        share = rng.random((rows, 1), dtype=np.float32)
        noise = rng.standard_normal((rows, dim), dtype=np.float32) * (NOISE / dim**0.5)
        made[start : start + rows] = share * one + (1 - share) * other + noise
    return made
