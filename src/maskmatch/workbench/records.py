"""What is known of a project: its labels, marks and changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Literal

from maskmatch.errors import MaskMatchError
from maskmatch.labels import Label, LabelSet

ChangeKind = Literal["labels", "marks"]


class ChangedMeanwhileError(MaskMatchError):
    """Somebody else has changed what an edit is based on."""


@dataclass(frozen=True)
class ProjectLabel:
    """A label of a project. Its key stays the same whatever it is called.

    Attributes:
        key: What marks and classifiers of the project call it.
        id: What predictions call it that leave the project; "" for the name.
        name: Its name.
        description: What it means.
        phrases: Other names.
        words: Its verbalizer, which the pages do not show.
        examples: Texts that have it, which the pages do not show.
    """

    key: int
    name: str
    id: Any = ""
    description: str = ""
    phrases: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    @classmethod
    def of(cls, key: int, label: Label) -> ProjectLabel:
        """A label with a key."""
        own = "" if label.id == label.name or label.id_is_name else label.id
        return cls(key, label.name, own, label.description, label.phrases, label.words, label.examples)

    def inside(self) -> Label:
        """The label as the project's classifiers have it."""
        return Label(self.key, self.name, self.description, self.phrases, self.words, self.examples)

    def outside(self) -> Label:
        """The label as it leaves the project."""
        id_ = self.name if self.id == "" else self.id
        return Label(id_, self.name, self.description, self.phrases, self.words, self.examples)


@dataclass(frozen=True)
class Labels:
    """The labels of a project, and the number of the change that made them."""

    labels: tuple[ProjectLabel, ...]
    version: int = 0

    @property
    def names(self) -> dict[int, str]:
        """The names by key."""
        return {label.key: label.name for label in self.labels}

    def find(self, key: int) -> ProjectLabel:
        """A label by its key."""
        found = next((label for label in self.labels if label.key == key), None)
        if found is None:
            raise ChangedMeanwhileError("This label is no longer there; somebody has removed it.")
        return found

    def inside(self) -> LabelSet:
        """The label set of the project's classifiers."""
        return LabelSet(tuple(label.inside() for label in self.labels))

    def outside(self) -> LabelSet:
        """The label set as it leaves the project."""
        return LabelSet(tuple(label.outside() for label in self.labels))


@dataclass(frozen=True)
class Mark:
    """What somebody said of a text."""

    text: int
    who: str
    labels: tuple[int, ...]
    reason: str = ""
    at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))


@dataclass(frozen=True)
class Change:
    """A change of labels or marks."""

    id: int
    who: str
    at: datetime
    what: str
    undone: bool


@dataclass(frozen=True)
class Undone:
    """A change that was undone: what it was, and the marks that it took back."""

    what: str
    marks: tuple[Mark, ...]


def plain(content: Any) -> str:
    """A text as one string, for people and for search."""
    return content if isinstance(content, str) else " · ".join(str(value) for value in content.values())
