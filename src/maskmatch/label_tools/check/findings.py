"""A finding: a problem with one or two labels. Advice: an edit that was tried on the texts and helped there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Hashable

FindingKind = Literal[
    "uninformative",
    "generic",
    "abbreviation",
    "language",
    "close",
    "contained",
    "description",
    "unmatched",
    "crowding",
    "confused",
]

HEADINGS: dict[FindingKind, str] = {
    "confused": "Labels that the classifier confuses",
    "uninformative": "Uninformative names",
    "generic": "Generic names",
    "abbreviation": "Abbreviations",
    "language": "Names in another language or style than the others",
    "close": "Names that mean almost the same",
    "contained": "Names that contain another name",
    "description": "Descriptions of some labels only",
    "unmatched": "Names that are nearest to no text",
    "crowding": "Names that are nearest to too many texts",
}


@dataclass(frozen=True)
class Finding:
    """A problem with one or two labels.

    Attributes:
        kind: The kind of problem.
        labels: The ids of the labels.
        message: The problem, in a sentence.
        suggestion: What to do about it, in general. Edits that were tried are the advice of the check.
        at_stake: How many of the labelled texts are wrong because of it, at most; None without labelled texts.
    """

    kind: FindingKind
    labels: tuple[Hashable, ...]
    message: str
    suggestion: str
    at_stake: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Convert to a JSON object."""
        return {**vars(self), "labels": list(self.labels)}


AdviceKind = Literal["examples", "phrases", "name", "no description"]


@dataclass(frozen=True)
class Advice:
    """An edit of one label that raised the accuracy on texts that it was not made from.

    Attributes:
        label: The label.
        kind: What to edit: give it examples, phrases, another name, or no description.
        texts: The examples or phrases, or the new name alone.
        before: The accuracy before, on the texts that the edit was tried on.
        after: The accuracy after.
        message: The edit in a sentence.
    """

    label: Hashable
    kind: AdviceKind
    texts: tuple[str, ...]
    before: float
    after: float
    message: str

    def to_dict(self) -> dict[str, Any]:
        """Convert to a JSON object."""
        return {**vars(self), "texts": list(self.texts)}
