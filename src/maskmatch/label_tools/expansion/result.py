"""The result of an expansion: phrases and examples per label, each with a score and a source."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from maskmatch.evaluation.display import shorten
from maskmatch.labels import LabelSet

if TYPE_CHECKING:
    from collections.abc import Hashable
    from pathlib import Path

PhraseKind = Literal["phrase", "example"]
"""A phrase is encoded in the label prompt, like a name. An example is encoded in the input prompt, like a text."""


@dataclass(frozen=True)
class Candidate:
    """A phrase or example that a source proposes for a label.

    Attributes:
        text: The words.
        kind: Phrase or example.
        skip_filter: Whether to keep it even if its vector is nearer to another label, because the source already
            knows that it belongs to this label.
    """

    text: str
    kind: PhraseKind = "phrase"
    skip_filter: bool = False


@dataclass(frozen=True)
class ScoredPhrase:
    """A phrase or example for a label.

    Attributes:
        text: The words.
        kind: Phrase or example.
        score: The cosine of its vector with the label's vector.
        lead: The margin: the score minus the highest score with another label. Negative if another label is nearer.
        source: The source that proposed it.
    """

    text: str
    kind: PhraseKind
    score: float
    lead: float
    source: str

    def to_dict(self) -> dict[str, Any]:
        """Convert to a JSON object."""
        return {**vars(self), "score": round(self.score, 4), "lead": round(self.lead, 4)}


@dataclass(frozen=True)
class Expansion:
    """Labels with new phrases and examples. Print it, save it, edit the file, and load it again.

    Attributes:
        labels: The labels before the expansion.
        found: The new phrases and examples per label, best first.
        dropped: Per label, the candidates that were dropped because they are nearer to another label.
    """

    labels: LabelSet
    found: tuple[tuple[ScoredPhrase, ...], ...]
    dropped: tuple[tuple[ScoredPhrase, ...], ...] = ()

    def __getitem__(self, id: Hashable) -> tuple[ScoredPhrase, ...]:  # noqa: A002 - it is the field's own name
        """Return the new phrases and examples of a label."""
        return self.found[self.labels.position(id)]

    @property
    def label_set(self) -> LabelSet:
        """The expanded labels, ready for a classifier."""
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
            lines += [f"  {each.score:.2f}  +{each.lead:.2f}  {each.source:<14} {_shown_text(each)}" for each in found]
        return "\n".join(lines).replace("+-", " -")

    def to_dict(self) -> dict[str, Any]:
        """Convert the whole result to a JSON object."""
        dropped_per_label = self.dropped or ((),) * len(self.labels)
        return {
            "labels": [
                {
                    "label": label.id,
                    "name": label.name,
                    "found": [each.to_dict() for each in found],
                    "dropped": [each.to_dict() for each in dropped],
                }
                for label, found, dropped in zip(self.labels.labels, self.found, dropped_per_label, strict=True)
            ]
        }

    def save(self, path: str | Path) -> Path:
        """Write an editable label file with one row per phrase: CSV, TSV or JSONL. The write is atomic."""
        from maskmatch.label_tools.expansion.files import save_expansion

        return save_expansion(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Expansion:
        """Load a file that :meth:`save` wrote, with any edits."""
        from maskmatch.label_tools.expansion.files import load_expansion

        return load_expansion(path)


def _shown_text(phrase: ScoredPhrase) -> str:
    text = shorten(phrase.text, 80)
    return f'"{text}"' if phrase.kind == "example" else text
