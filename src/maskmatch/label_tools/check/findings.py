"""A finding: a problem with one or two labels, and a suggestion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Hashable

    from maskmatch.label_tools.check.rewrites import Rewrite

FindingKind = Literal["uninformative", "close", "unmatched", "crowding", "confused"]

HEADINGS: dict[FindingKind, str] = {
    "uninformative": "Uninformative names",
    "close": "Names that are too close to each other",
    "unmatched": "Names that are nearest to no text",
    "crowding": "Names that are nearest to too many texts",
    "confused": "Labels that the classifier confuses",
}


@dataclass(frozen=True)
class Finding:
    """A problem with one or two labels.

    Attributes:
        kind: The kind of problem.
        labels: The ids of the labels.
        message: The problem, in a sentence.
        suggestion: What to do about it.
        rewrites: New names by label id. They were encoded and checked; the suggestion states what they improve.
    """

    kind: FindingKind
    labels: tuple[Hashable, ...]
    message: str
    suggestion: str
    rewrites: tuple[tuple[Hashable, str], ...] = ()

    def with_rewrite(self, rewrite: Rewrite | None) -> Finding:
        """Add new names for the labels, if there are any."""
        if rewrite is None:
            return self
        return replace(self, suggestion=f"{self.suggestion} {rewrite.effect}", rewrites=rewrite.names)

    def to_dict(self) -> dict[str, Any]:
        """Convert to a JSON object."""
        rewrites = [{"label": id_, "name": name} for id_, name in self.rewrites]
        return {**vars(self), "labels": list(self.labels), "rewrites": rewrites}
