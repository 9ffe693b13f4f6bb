"""Labelled texts, and which of them belong to each label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from maskmatch.labels import LabelSet


@dataclass(frozen=True)
class LabelTexts:
    """Labelled texts.

    Attributes:
        texts: The texts.
        rows: The row numbers of each label's texts.
    """

    texts: Sequence[Any]
    rows: Sequence[NDArray[np.int64]]

    @classmethod
    def from_labels(cls, texts: Sequence[Any], targets: Sequence[Any], labels: LabelSet) -> LabelTexts:
        """Group labelled texts. A target is a label or a list of labels; unknown labels are ignored."""
        rows: list[list[int]] = [[] for _ in labels]
        for row, target in enumerate(targets):
            for id_ in target if isinstance(target, list) else [target]:
                if labels.resolve(id_) in labels:
                    rows[labels.position(labels.resolve(id_))].append(row)
        return cls(texts, [np.array(own, dtype=np.int64) for own in rows])

    def __len__(self) -> int:
        return len(self.texts)
