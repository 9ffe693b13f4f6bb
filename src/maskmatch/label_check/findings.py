"""What a check may find wrong with labels, each in a sentence, with what may be done about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Hashable

FindingKind = Literal["uninformative", "close", "unmatched", "crowding", "confused"]

HEADINGS: dict[FindingKind, str] = {
    "uninformative": "Names that say little",
    "close": "Names too close to one another",
    "unmatched": "Names that no text comes near",
    "crowding": "Names that draw texts of others",
    "confused": "Labels that are taken for one another",
}


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with one or two labels.

    Attributes:
        kind: What it is.
        labels: The ids of the labels.
        message: What was found, in a sentence.
        suggestion: What may be done about it.
    """

    kind: FindingKind
    labels: tuple[Hashable, ...]
    message: str
    suggestion: str

    def to_dict(self) -> dict[str, Any]:
        """It as plain JSON."""
        return {**vars(self), "labels": list(self.labels)}
