"""Calibration: scores as probabilities that mean what they say."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

SMALLEST = 1e-7
"""The smallest distance of a probability from 0 and 1 whose log-odds are mapped."""

NOTHING_LEFT = 1e-30
"""If the best label leaves less than this to all others, it stays as it is: there is nothing to share the rest by."""

ABOVE = 1e-5
"""By how much the best label stays above the second, so that calibration never changes the answer."""


@dataclass(frozen=True)
class Calibration:
    """How scores become probabilities: neither step changes the order of labels.

    With one label per text, the scores of all labels are divided by a temperature before the softmax. Then the
    probability of the best label goes through a logistic curve, and the other labels share the rest as before. With
    several labels per text, the probability of each label goes through the curve.

    Attributes:
        temperature: What scores are divided by, on top of the similarity's own temperature.
        slope: The slope of the curve over log-odds.
        intercept: Its intercept.
        per_log_labels: By how much the intercept rises per unit of log(labels / ``labels``).
        labels: The number of labels that it was fitted with.
        added: The offset of labels that were added after training, in units of the similarity.
        conformity: The probabilities of the true labels of the rows that it was fitted on, sorted; for sets of labels
            with a given coverage.
        thresholds: With several labels per text: the probability from which a label applies, by label.
        rows: How many rows it was fitted on.
        source: Which rows: "dev"; "folds" or "held out" of training; "datasets", for names alone; "prior" if there were
            none, so that it is what is usual for so many training rows.
    """

    temperature: float = 1.0
    slope: float = 1.0
    intercept: float = 0.0
    per_log_labels: float = 0.0
    labels: int = 1
    added: float = 0.0
    conformity: tuple[float, ...] = ()
    thresholds: Mapping[Hashable, float] = field(default_factory=dict)
    rows: int = 0
    source: str = "dev"

    def __post_init__(self) -> None:
        numbers = (self.temperature, self.slope, self.intercept, self.per_log_labels, self.added)
        if not all(math.isfinite(number) for number in (*numbers, *self.conformity, *self.thresholds.values())):
            raise ValueError("a number of the calibration is NaN or inf")
        if self.temperature <= 0 or self.slope <= 0 or self.labels < 1:
            raise ValueError("temperature, slope and labels of a calibration must be positive")

    @property
    def is_curved(self) -> bool:
        """Whether the curve changes anything."""
        return (self.slope, self.intercept, self.per_log_labels) != (1.0, 0.0, 0.0)

    def mapped(self, probabilities: NDArray[Any], labels: int) -> NDArray[np.float64]:
        """Probabilities through the curve, if there are this many labels."""
        low = np.clip(probabilities.astype(np.float64), SMALLEST, 1 - SMALLEST)
        shift = self.intercept + self.per_log_labels * math.log(labels / self.labels)
        return np.asarray(1 / (1 + np.exp(-(self.slope * (np.log(low) - np.log1p(-low)) + shift))))

    def best_first(self, probabilities: NDArray[Any], labels: int) -> NDArray[np.float32]:
        """Calibrate the probabilities of the nearest labels, best first: (n, k) with k of at least 2, of all labels."""
        if labels < 2 or not self.is_curved or not probabilities.size:
            return np.asarray(probabilities, np.float32)
        values = probabilities.astype(np.float64)
        best = values[:, 0]
        rest = np.maximum(1 - best, values[:, 1:].sum(axis=1))  # 1 - best is 0 where it is rounded
        certain, rest = rest < NOTHING_LEFT, np.maximum(rest, NOTHING_LEFT)
        share = np.minimum(values[:, 1] / rest, 1.0)  # of the second in what the best leaves
        least = share / (1 + share)  # below that, the second would be ahead
        found = np.clip(self.mapped(best, labels), least + ABOVE * (1 - least), 1.0)
        found = np.where(certain, best, found)
        values[:, 1:] *= ((1 - found) / rest)[:, None]
        values[:, 0] = found
        return values.astype(np.float32)

    def all_labels(self, probabilities: NDArray[np.float32]) -> NDArray[np.float32]:
        """Calibrate the probabilities of all labels of texts: (n, K)."""
        count, labels = probabilities.shape
        if labels < 2 or not self.is_curved or not count:
            return probabilities
        rows, best = np.arange(count), probabilities.argmax(axis=1)  # the first of several equal ones, as in a search
        others = probabilities.copy()
        others[rows, best] = -1
        top = np.stack([probabilities[rows, best], others.max(axis=1)], axis=1)
        mapped = self.best_first(top, labels).astype(np.float64)
        others[rows, best] = 0
        rest = np.maximum(others.sum(axis=1, dtype=np.float64), NOTHING_LEFT)
        result = others * ((1 - mapped[:, 0]) / rest)[:, None]
        result[rows, best] = mapped[:, 0]
        return np.asarray(result, np.float32)

    def each_label(self, probabilities: NDArray[np.float32]) -> NDArray[np.float32]:
        """Calibrate probabilities that each stand for themselves, with several labels per text: any shape."""
        return self.mapped(probabilities, self.labels).astype(np.float32) if self.is_curved else probabilities

    def renamed(self, ids: Mapping[Hashable, Hashable]) -> Calibration:
        """The calibration after an edit that kept the labels in ``ids``, under their new ids."""
        if not self.thresholds:
            return self
        return replace(self, thresholds={ids[id_]: value for id_, value in self.thresholds.items() if id_ in ids})

    def least_probability(self, coverage: float) -> float | None:
        """From which probability on labels belong to a set that has the true label this often (split conformal).

        None if there were too few rows for this coverage. The true label of a new text is in its set with at least this
        probability, if the text is drawn like the rows that the calibration was fitted on.
        """
        rank = math.ceil((len(self.conformity) + 1) * coverage)
        if rank > len(self.conformity):
            return None
        return self.conformity[len(self.conformity) - rank]

    def to_json(self, labels: Sequence[Hashable]) -> dict[str, Any]:
        """The calibration as plain JSON; labels are numbered in this order."""
        place = {id_: number for number, id_ in enumerate(labels)}
        data = asdict(self)
        data["thresholds"] = [[place[id_], round(value, 6)] for id_, value in self.thresholds.items() if id_ in place]
        data["conformity"] = [math.floor(value * 1e6) / 1e6 for value in self.conformity]  # never above the true one
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any], labels: Sequence[Hashable]) -> Calibration:
        """The calibration that :meth:`to_json` wrote; LookupError, TypeError or ValueError if it is damaged."""
        given = {name: value for name, value in data.items() if name in cls.__dataclass_fields__}
        given["thresholds"] = {labels[number]: float(value) for number, value in data.get("thresholds", ())}
        given["conformity"] = tuple(sorted(float(value) for value in data.get("conformity", ())))
        return cls(**given)
