"""What a check may find wrong with labels, each in a sentence, with what may be done about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Hashable

    from maskmatch.label_check.rewrites import Rewrite

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
        rewrites: Other names for labels, by their ids, that the encoder has been asked about; the suggestion tells what
            they would change.
    """

    kind: FindingKind
    labels: tuple[Hashable, ...]
    message: str
    suggestion: str
    rewrites: tuple[tuple[Hashable, str], ...] = ()

    def with_rewrite(self, rewrite: Rewrite | None) -> Finding:
        """The same with other names for its labels, if there are any."""
        if rewrite is None:
            return self
        return replace(self, suggestion=f"{self.suggestion} {rewrite.told}", rewrites=rewrite.names)

    def to_dict(self) -> dict[str, Any]:
        """It as plain JSON."""
        rewrites = [{"label": id_, "name": name} for id_, name in self.rewrites]
        return {**vars(self), "labels": list(self.labels), "rewrites": rewrites}
