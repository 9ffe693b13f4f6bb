"""Scope: what texts of the labels look like, to tell texts that belong to none of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

SCOPE = "scope_"
"""How the arrays of a scope begin in saved folders."""

SHRINKAGE = 0.3
"""The weight of a multiple of the identity in the covariance of texts around their label's mean."""

OUTSIDE_WEIGHT = 0.25
"""The weight of the direction of texts that are known to be out of scope, beside the distance from labels."""

REGULARISATION = 10.0
"""C of the logistic regression that finds this direction."""


@dataclass(frozen=True, eq=False)
class Scope:
    """How texts of a label are spread around its mean, the same for all labels.

    Attributes:
        whitening: (dim, dim), a matrix W such that the squared norm of W(x - mean) is the Mahalanobis distance.
        means: (K, dim), the mean of each label's texts, or its vector if there were none; None before they are known.
        outside: (dim,), a direction towards texts that are known to be out of scope; None if there were none.
    """

    whitening: NDArray[np.float32]
    means: NDArray[np.float32] | None = None
    outside: NDArray[np.float32] | None = None

    @classmethod
    def of(
        cls,
        vectors: NDArray[np.float32],
        owners: NDArray[np.int64],
        means: NDArray[np.float32],
        others: NDArray[np.float32] | None = None,
    ) -> Scope | None:
        """The scope of labelled texts; None if there are too few.

        Args:
            vectors: (n, dim), the texts.
            owners: (n,), the positions of their labels among ``means``.
            means: (k, dim), the mean direction of each label's texts.
            others: (m, dim), texts that are known to be out of scope.
        """
        freedom = len(vectors) - len(means)
        if freedom < 2:
            return None
        residuals = (vectors - means[owners]).astype(np.float64)
        covariance = residuals.T @ residuals / freedom
        variance = max(float(np.trace(covariance)) / len(covariance), 1e-9)
        shrunk = (1 - SHRINKAGE) * covariance + SHRINKAGE * variance * np.eye(len(covariance))
        values, directions = np.linalg.eigh(shrunk)
        scope = cls(np.ascontiguousarray((directions / np.sqrt(values)).T, dtype=np.float32))
        return scope if others is None or not len(others) else scope._with_outside(vectors, means, others)

    def _with_outside(
        self, vectors: NDArray[np.float32], means: NDArray[np.float32], others: NDArray[np.float32]
    ) -> Scope:
        """The scope with the direction that separates texts of the labels from texts that are out of scope."""
        from sklearn.linear_model import LogisticRegression

        found = LogisticRegression(C=REGULARISATION, class_weight="balanced", max_iter=500)
        found.fit(np.concatenate([vectors, others]), np.repeat([0, 1], [len(vectors), len(others)]))
        along, away = others @ found.coef_[0], replace(self, means=means).distance(others)
        scale = float(away.std()) / max(float(along.std()), 1e-9) if len(others) > 1 else 1.0
        return replace(self, outside=(OUTSIDE_WEIGHT * scale * found.coef_[0]).astype(np.float32))

    def distance(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """The Mahalanobis distance, squared, of texts (n, dim) from the nearest mean: (n,)."""
        assert self.means is not None
        texts, means = rows @ self.whitening.T, self.means @ self.whitening.T  # (n, dim), (K, dim)
        squares = np.square(texts).sum(axis=1)[:, None] + np.square(means).sum(axis=1)
        nearest = (squares - 2 * texts @ means.T).min(axis=1).astype(np.float64)
        return np.asarray(nearest if self.outside is None else nearest + (rows @ self.outside).astype(np.float64))

    def to_arrays(self) -> dict[str, NDArray[np.float32]]:
        """The arrays by name."""
        arrays = {"whitening": self.whitening, "means": self.means, "outside": self.outside}
        return {name: array for name, array in arrays.items() if array is not None}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Scope:
        """What :meth:`to_arrays` gave; LookupError or ValueError if it is damaged."""
        found = {name: array.astype(np.float32) for name, array in arrays.items() if name in cls.__dataclass_fields__}
        whitening = found["whitening"]
        if whitening.ndim != 2 or whitening.shape[0] != whitening.shape[1]:
            raise ValueError("the whitening of a scope is no square matrix")
        if any(array.shape[-1] != len(whitening) for array in found.values()):
            raise ValueError("the arrays of a scope do not fit")
        return cls(**found)
