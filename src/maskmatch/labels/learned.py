"""What texts have taught a classifier about its labels, besides the weights."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.labels.adaptation import Adaptation
from maskmatch.labels.centroids import NO_CENTROIDS, Centroids
from maskmatch.labels.kept_texts import KeptTexts
from maskmatch.labels.scope import SCOPE, Scope

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from numpy.typing import NDArray

    from maskmatch.labels.calibration import Calibration
    from maskmatch.labels.label_set import LabelSet

ADAPTATION, KEPT = "adaptation_", "kept_"
"""How the arrays of each part begin in saved folders."""


@dataclass(frozen=True)
class Learned:
    """What texts have taught about labels. All of it holds for these weights alone.

    Attributes:
        centroids: The centroids of the labels' training texts.
        adaptation: What unlabelled texts say about labels; None if there were none.
        calibration: How scores become probabilities; None: by the softmax alone.
        scope: What texts of the labels look like, to tell others; None if there were none.
        texts: The training texts, if the user chose to keep them.
    """

    centroids: Centroids = field(default_factory=lambda: NO_CENTROIDS)
    adaptation: Adaptation | None = None
    calibration: Calibration | None = None
    scope: Scope | None = None
    texts: KeptTexts | None = None

    def renamed(self, ids: Mapping[Hashable, Hashable]) -> Learned:
        """What still holds after an edit that kept the labels in ``ids``, under their new ids."""
        return replace(
            self,
            centroids=self.centroids.renamed(ids),
            calibration=None if self.calibration is None else self.calibration.renamed(ids),
            texts=None if self.texts is None else self.texts.renamed(ids),
        )

    def to_arrays(self, labels: LabelSet) -> dict[str, NDArray[Any]]:
        """All but the calibration, which is JSON, as arrays by name."""
        arrays: dict[str, NDArray[Any]] = {}
        if len(self.centroids):
            places = np.array([labels.position(id_) for id_ in self.centroids.ids])
            arrays |= {"centroids": self.centroids.vectors, "centroid_labels": places}
            arrays["centroid_weights"] = self.centroids.weights
        for prefix, part in (
            (ADAPTATION, {} if self.adaptation is None else self.adaptation.to_arrays()),
            (SCOPE, {} if self.scope is None else self.scope.to_arrays()),
            (KEPT, {} if self.texts is None else self.texts.to_arrays(labels)),
        ):
            arrays |= {f"{prefix}{name}": array for name, array in part.items()}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], labels: LabelSet) -> Learned:
        """What :meth:`to_arrays` gave; MaskMatchError if it is damaged."""
        parts = {prefix: _part(arrays, prefix) for prefix in (ADAPTATION, SCOPE, KEPT)}
        what = "what was learned from unlabelled texts"
        try:
            adaptation = Adaptation.from_arrays(parts[ADAPTATION]) if parts[ADAPTATION] else None
            what = "what texts of the labels look like"
            scope = Scope.from_arrays(parts[SCOPE]) if parts[SCOPE] else None
            what = "the training texts"
            texts = KeptTexts.from_arrays(parts[KEPT], list(labels)) if parts[KEPT] else None
            what = "the centroids of the labels' texts"
            centroids = NO_CENTROIDS
            if "centroids" in arrays:
                ids = tuple(labels.labels[place].id for place in arrays["centroid_labels"].tolist())
                vectors, weights = arrays["centroids"].astype(np.float32), arrays["centroid_weights"].astype(np.float64)
                centroids = Centroids(ids, vectors, weights)
        except (LookupError, TypeError, ValueError) as error:
            raise MaskMatchError(f"it does not hold {what}.") from error
        return cls(centroids, adaptation, scope=scope, texts=texts)

    @property
    def is_by_label(self) -> bool:
        """Whether any of it belongs to single labels, so that it needs the same ids."""
        return bool(len(self.centroids)) or self.texts is not None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that depends on the weights."""
        return not self.is_by_label and self.adaptation is None and self.scope is None


def _part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): each for name, each in arrays.items() if name.startswith(prefix)}


NOTHING = Learned()
