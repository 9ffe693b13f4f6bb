"""Training texts that are kept with a classifier, with their vectors, to show similar ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class KeptTexts:
    """Training texts with their labels and vectors.

    Attributes:
        texts: The texts, as they are shown.
        labels: The label of each.
        vectors: (n, dim), their prepared vectors, with unit norm.
    """

    texts: tuple[str, ...]
    labels: tuple[Hashable, ...]
    vectors: NDArray[np.float32]

    def __post_init__(self) -> None:
        if not len(self.texts) == len(self.labels) == len(self.vectors) or self.vectors.ndim != 2:
            raise ValueError("texts, labels and vectors do not fit")

    def __len__(self) -> int:
        return len(self.texts)

    def nearest(self, vector: NDArray[np.float32], count: int) -> list[tuple[str, Hashable, float]]:
        """The texts whose vectors are nearest to a vector (dim,), with their labels and cosines."""
        unit = vector / max(float(np.linalg.norm(vector)), 1e-12)
        cosines = self.vectors @ unit
        best = np.argsort(-cosines, kind="stable")[:count]
        return [(self.texts[row], self.labels[row], float(cosines[row])) for row in best.tolist()]

    def renamed(self, ids: Mapping[Hashable, Hashable]) -> KeptTexts:
        """The texts of the labels in ``ids``, under their new ids."""
        rows = [row for row, label in enumerate(self.labels) if label in ids]
        return KeptTexts(
            tuple(self.texts[row] for row in rows), tuple(ids[self.labels[row]] for row in rows), self.vectors[rows]
        )

    def to_arrays(self, labels: Sequence[Hashable]) -> dict[str, NDArray[np.generic]]:
        """The texts as arrays; labels are numbered in this order."""
        place = {id_: number for number, id_ in enumerate(labels)}
        return {
            "vectors": self.vectors.astype(np.float16),
            "labels": np.array([place[label] for label in self.labels], np.int64),
            "texts": np.frombuffer(json.dumps(self.texts, ensure_ascii=False).encode(), np.uint8).copy(),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]], labels: Sequence[Hashable]) -> KeptTexts:
        """The texts that :meth:`to_arrays` wrote; LookupError, TypeError or ValueError if they are damaged."""
        texts = json.loads(arrays["texts"].astype(np.uint8).tobytes().decode())
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError("the texts are not a list of strings")
        places = arrays["labels"].tolist()
        if any(not 0 <= place < len(labels) for place in places):
            raise ValueError("a text has an unknown label")
        return cls(tuple(texts), tuple(labels[place] for place in places), arrays["vectors"].astype(np.float32))
