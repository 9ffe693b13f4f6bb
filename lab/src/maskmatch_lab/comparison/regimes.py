"""Regimes: the number of training rows, from none to a few rows per label, a fraction of the rows, or all of them."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from maskmatch.data import draw_fraction, draw_shots
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

RegimeKind = Literal["zero-shot", "shots", "fraction", "full"]


@dataclass(frozen=True)
class Regime:
    """How many training rows there are. Dev and test rows are the same in all regimes.

    Args:
        kind: ``"zero-shot"``: none; ``"shots"``: a number per label; ``"fraction"``: a fraction of the rows of each
            label; ``"full"``: all.
        amount: The number of shots, or the fraction.
        left_out: The share of labels that are left out of training and added afterwards; None: none.
    """

    kind: RegimeKind
    amount: float | None = None
    left_out: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("zero-shot", "shots", "fraction", "full"):
            raise MaskMatchError(f"There is no regime {self.kind!r}; choose zero-shot, shots, fraction or full.")
        if (self.amount is not None) != (self.kind in ("shots", "fraction")):
            raise MaskMatchError(f"The regime {self.kind} is written {'without' if self.amount else 'with'} a number.")
        if self.left_out is not None and (not self.trains or not 0 < self.left_out < 1):
            raise MaskMatchError("Labels are left out of training, a share between 0 and 1 of them.")
        if self.amount is not None:
            self._draw(["a", "b"], seed=0)  # raises if the number is wrong, before any work is done

    @classmethod
    def of(cls, value: str | Regime) -> Regime:
        """A regime by its name.

        Example:
            >>> [Regime.of(name).name for name in ("zero-shot", "5 shots", "10%", "0.1", "full")]
            ['zero-shot', '5 shots', '10% of train', '10% of train', 'full data']
            >>> Regime.of("5 shots without 25% of labels").left_out
            0.25
        """
        if isinstance(value, Regime):
            return value
        text = str(value).strip().lower()
        if without := re.fullmatch(r"(.+) without (\d+(?:\.\d+)?) ?% of labels", text):
            return replace(cls.of(without[1]), left_out=float(without[2]) / 100)
        if text in ("zero-shot", "full"):
            return cls(text)  # type: ignore[arg-type]
        if shots := re.fullmatch(r"(\d+)[ -]shots?", text):
            return cls("shots", int(shots[1]))
        if percent := re.fullmatch(r"(\d+(?:\.\d+)?) ?%", text):
            return cls("fraction", float(percent[1]) / 100)
        if re.fullmatch(r"\d*\.\d+", text):
            return cls("fraction", float(text))
        raise MaskMatchError(f"There is no regime {value!r}; give 'zero-shot', '5 shots', '10%' or 'full'.")

    @property
    def name(self) -> str:
        """Its name in tables."""
        if self.left_out is not None:
            return f"{replace(self, left_out=None).name} without {100 * self.left_out:g}% of labels"
        if self.kind == "shots":
            return "1 shot" if self.amount == 1 else f"{self.amount} shots"
        if self.kind == "fraction":
            return f"{100 * (self.amount or 0):g}% of train"
        return "full data" if self.kind == "full" else "zero-shot"

    @property
    def trains(self) -> bool:
        """Whether there is any training."""
        return self.kind != "zero-shot"

    @property
    def drawn(self) -> bool:
        """Whether the training rows depend on the seed."""
        return self.kind in ("shots", "fraction")

    def rows(self, labels: Sequence[Any], seed: int) -> list[int]:
        """The positions of the training rows among all, in ascending order."""
        if self.kind == "zero-shot":
            return []
        rows = list(range(len(labels))) if self.kind == "full" else self._draw(labels, seed)
        out = self.left_out_labels(labels, seed)
        return [row for row in rows if labels[row] not in out] if out else rows

    def left_out_labels(self, labels: Sequence[Any], seed: int) -> set[Any]:
        """The labels that are left out of training, drawn by the seed from those of all rows."""
        if self.left_out is None:
            return set()
        if any(isinstance(label, list) for label in labels):
            raise MaskMatchError("Labels can be left out with one label per text; these rows have several.")
        known = sorted(set(labels), key=str)
        count = max(1, round(self.left_out * len(known)))
        if len(known) - count < 2:
            raise MaskMatchError(f"Of {len(known)} labels, {count} cannot be left out: two must stay.")
        return set(random.Random(seed).sample(known, count))

    def _draw(self, labels: Sequence[Any], seed: int) -> list[int]:
        assert self.amount is not None
        if self.kind == "shots":
            return draw_shots(labels, self.amount, seed)  # type: ignore[arg-type]
        return draw_fraction(labels, self.amount, seed)


def regimes_of(regimes: Sequence[str | Regime]) -> list[Regime]:
    """The regimes without duplicates."""
    unique = list(dict.fromkeys(Regime.of(regime) for regime in ([regimes] if isinstance(regimes, str) else regimes)))
    if not unique:
        raise MaskMatchError("There is no regime; give at least one, such as '5 shots' or 'full'.")
    return unique
