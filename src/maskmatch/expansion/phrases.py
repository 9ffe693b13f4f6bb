"""What expansion finds: phrases and examples for labels, each with a score and the source that it comes from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from maskmatch.evaluation.display import shorten
from maskmatch.labels import LabelSet

if TYPE_CHECKING:
    from collections.abc import Hashable
    from pathlib import Path

PartKind = Literal["phrase", "example"]
"""A phrase is read as a name is, in the label prompt; an example as a text is, in the input prompt."""


@dataclass(frozen=True)
class Candidate:
    """What a source proposes for a label.

    Attributes:
        text: The words.
        kind: Whether they are read as a name or as a text.
        settled: Whether the source knows by itself that they belong to no other label, so that how near their vector
            comes to other labels does not count.
    """

    text: str
    kind: PartKind = "phrase"
    settled: bool = False


@dataclass(frozen=True)
class ScoredPhrase:
    """A phrase or example for a label.

    Attributes:
        text: The words.
        kind: Whether they are read as a name or as a text.
        score: How near they come to the label: the cosine of their vector and the label's.
        lead: How much nearer they come to it than to any other label; negative if another one is nearer.
        source: Where they come from.
    """

    text: str
    kind: PartKind
    score: float
    lead: float
    source: str

    def to_dict(self) -> dict[str, Any]:
        """It as plain JSON."""
        return {**vars(self), "score": round(self.score, 4), "lead": round(self.lead, 4)}


@dataclass(frozen=True)
class Expansion:
    """Labels with the phrases and examples that were found for them. Print it, save it, edit the file, load it again.

    Attributes:
        labels: The labels as they were.
        found: For each label, in order, what was found for it, best first.
        dropped: For each label, what was proposed and comes nearer to another label.
    """

    labels: LabelSet
    found: tuple[tuple[ScoredPhrase, ...], ...]
    dropped: tuple[tuple[ScoredPhrase, ...], ...] = ()

    def __getitem__(self, id: Hashable) -> tuple[ScoredPhrase, ...]:  # noqa: A002 - it is the field's own name
        """What was found for a label."""
        return self.found[self.labels.position(id)]

    @property
    def label_set(self) -> LabelSet:
        """The labels with what was found for them, ready for a classifier."""
        return LabelSet(
            tuple(
                replace(
                    label,
                    phrases=(*label.phrases, *(each.text for each in found if each.kind == "phrase")),
                    examples=(*label.examples, *(each.text for each in found if each.kind == "example")),
                )
                for label, found in zip(self.labels.labels, self.found, strict=True)
            )
        )

    def __str__(self) -> str:
        lines = []
        for label, found in zip(self.labels.labels, self.found, strict=True):
            lines.append(label.name if found else f"{label.name}: nothing found")
            lines += [f"  {each.score:.2f}  +{each.lead:.2f}  {each.source:<14} {_shown(each)}" for each in found]
        return "\n".join(lines).replace("+-", " -")

    def to_dict(self) -> dict[str, Any]:
        """The whole result, ready for JSON."""
        dropped = self.dropped or ((),) * len(self.labels)
        return {
            "labels": [
                {
                    "label": label.id,
                    "name": label.name,
                    "found": [each.to_dict() for each in found],
                    "dropped": [each.to_dict() for each in gone],
                }
                for label, found, gone in zip(self.labels.labels, self.found, dropped, strict=True)
            ]
        }

    def save(self, path: str | Path) -> Path:
        """Write a label file with a row for each phrase, to be edited: CSV, TSV or JSONL, whole or not at all."""
        from maskmatch.expansion.files import save_expansion

        return save_expansion(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Expansion:
        """Read a file that :meth:`save` wrote, as it was edited meanwhile."""
        from maskmatch.expansion.files import load_expansion

        return load_expansion(path)


def _shown(phrase: ScoredPhrase) -> str:
    text = shorten(phrase.text, 80)
    return f'"{text}"' if phrase.kind == "example" else text
