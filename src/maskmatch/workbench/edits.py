"""Edits of labels as people make them: each gives the labels afterwards, and what was done in words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from maskmatch.errors import MaskMatchError
from maskmatch.workbench.records import Labels, ProjectLabel


@dataclass(frozen=True)
class Edit:
    """Labels after an edit.

    Attributes:
        labels: The labels afterwards.
        what: What was done, in words.
        moved: The key that takes the marks of a key that is gone.
    """

    labels: Labels
    what: str
    moved: dict[int, int] = field(default_factory=dict)


def change(labels: Labels, key: int, *, name: str, description: str = "", phrases: tuple[str, ...] = ()) -> Edit:
    """Another name, description or other names for a label."""
    own = labels.find(key)
    new = replace(own, name=name.strip(), description=description.strip(), phrases=phrases)
    what = (
        f"renamed “{own.name}” to “{new.name}”"
        if new.name != own.name
        else f"changed the description or other names of “{own.name}”"
    )
    return Edit(_with(labels, [new if label.key == key else label for label in labels.labels]), what)


def add(labels: Labels, key: int, *, name: str, description: str = "", phrases: tuple[str, ...] = ()) -> Edit:
    """A further label."""
    new = ProjectLabel(key, name.strip(), "", description.strip(), phrases)
    return Edit(_with(labels, [*labels.labels, new]), f"added “{new.name}”")


def remove(labels: Labels, key: int) -> Edit:
    """A label less; its marks are gone with it."""
    own = labels.find(key)
    return Edit(_with(labels, [label for label in labels.labels if label.key != key]), f"removed “{own.name}”")


def merge(labels: Labels, key: int, into: int) -> Edit:
    """One label less: another one takes its name as a further name, and its marks."""
    own, other = labels.find(key), labels.find(into)
    if own.key == other.key:
        raise MaskMatchError("A label cannot be merged with itself; choose another one.")
    names = dict.fromkeys((*other.phrases, own.name, *own.phrases))
    examples = tuple(dict.fromkeys((*other.examples, *own.examples)))
    new = replace(other, phrases=tuple(name for name in names if name != other.name), examples=examples)
    kept = [new if label.key == into else label for label in labels.labels if label.key != key]
    return Edit(_with(labels, kept), f"merged “{own.name}” into “{other.name}”", {key: into})


def split(labels: Labels, key: int, names: list[str], keys: list[int]) -> Edit:
    """Several labels instead of one; the first of them takes its key, and so its marks."""
    own = labels.find(key)
    if len(names) < 2:
        raise MaskMatchError("A label is split into at least two; give their names, separated by commas.")
    parts = [ProjectLabel(own.key, names[0])]
    parts += [ProjectLabel(new, name) for new, name in zip(keys, names[1:], strict=True)]
    kept = [part for label in labels.labels for part in (parts if label.key == key else [label])]
    listed = " and ".join(f"“{name}”" for name in names)
    return Edit(_with(labels, kept), f"split “{own.name}” into {listed}")


def move(labels: Labels, key: int, by: int) -> Edit:
    """A label further up or down in the list."""
    own = labels.find(key)
    order = list(labels.labels)
    at = order.index(own)
    to = min(max(at + by, 0), len(order) - 1)
    order.insert(to, order.pop(at))
    return Edit(_with(labels, order), f"moved “{own.name}”")


def _with(labels: Labels, new: list[ProjectLabel]) -> Labels:
    if len(new) < 2:
        raise MaskMatchError("A classifier needs at least two labels; add another one first.")
    if not all(label.name.strip() for label in new):
        raise MaskMatchError("A label needs a name.")
    names: dict[str, int] = {}
    for label in new:
        if names.setdefault(label.name.strip().casefold(), label.key) != label.key:
            raise MaskMatchError(f"Another label is already called “{label.name}”.")
    for label in new:
        taken = next((each for each in label.phrases if names.get(each.casefold(), label.key) != label.key), None)
        if taken is not None:
            raise MaskMatchError(f"“{taken}” is the name of another label, so it cannot be another name of this one.")
    found = Labels(tuple(new), labels.version)
    found.inside()  # raises if two read alike, or a name is blank
    found.outside()  # raises if a name is the id of another label
    return found
