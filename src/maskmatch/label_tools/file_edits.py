"""What a file of labels, written by ``maskmatch labels show`` and edited by hand, changes in a classifier."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from maskmatch.data import read_rows
from maskmatch.labels import LabelSet, label_to_json
from maskmatch.labels.files import COLUMN_ALIASES, load_labels, table_header, with_integer_keys
from maskmatch.labels.label_set import LABEL_FIELDS

if TYPE_CHECKING:
    from collections.abc import Hashable

    from maskmatch.labels import Label
    from maskmatch.prediction.editing import EditablePredictor

ROW_COLUMNS = {"phrase": "phrases", "example": "examples"}
"""Columns of a file with one row per phrase or example, and the fields that they fill."""

SHOWN = {"name": "reads"}
"""How fields are called in what users see."""


@dataclass(frozen=True)
class LabelEdits:
    """Edits of labels; a label keeps its id, and what training taught about it.

    Attributes:
        added: New labels.
        changed: Labels that read differently: as they are, and as they will be.
        removed: Labels that go.
        missing: Labels that the file lacks, and that stay.
        unchanged: How many labels stay as they are.
    """

    added: tuple[Label, ...] = ()
    changed: tuple[tuple[Label, Label], ...] = ()
    removed: tuple[Label, ...] = ()
    missing: tuple[Label, ...] = ()
    unchanged: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    @classmethod
    def between(cls, old: LabelSet, new: LabelSet, fields: frozenset[str], *, remove_missing: bool) -> LabelEdits:
        """The edits that make other labels of some; MaskMatchError if the result would be no label set.

        Args:
            old: The labels of the classifier.
            new: The labels of a file.
            fields: What the file says about labels. All else stays.
            remove_missing: Whether labels that the file lacks go.
        """
        new = old.with_own_ids(new)
        changed, added = [], []
        for label in new.labels:
            if label.id not in old:
                added.append(label)
                continue
            own = old.label(label.id)
            other = replace(own, **{name: getattr(label, name) for name in fields})
            if other != own:
                changed.append((own, other))
        missing = tuple(label for label in old.labels if label.id not in new)
        edits = cls(
            tuple(added),
            tuple(changed),
            missing if remove_missing else (),
            () if remove_missing else missing,
            len(new) - len(added) - len(changed),
        )
        edits.applied(old)  # raises if two labels would read the same
        return edits

    def applied(self, labels: LabelSet) -> LabelSet:
        """The labels after the edits, in order; new ones at the end."""
        gone = {label.id for label in self.removed}
        changed = {own.id: other for own, other in self.changed}
        stay = tuple(changed.get(label.id, label) for label in labels.labels if label.id not in gone)
        return LabelSet((*stay, *self.added))

    def apply(self, matcher: EditablePredictor) -> None:
        """Edit the labels of a classifier or export, in one step."""
        matcher.edit_labels(
            add=LabelSet(self.added) if self.added else None,
            change=LabelSet(tuple(other for _, other in self.changed)) if self.changed else None,
            remove=[label.id for label in self.removed],
        )

    def to_dict(self) -> dict[str, Any]:
        """The edits as plain JSON."""
        return {
            "added": [label_to_json(label) for label in self.added],
            "changed": [{"from": label_to_json(own), "to": label_to_json(other)} for own, other in self.changed],
            "removed": [label_to_json(label) for label in self.removed],
            "missing": [label_to_json(label)["id"] for label in self.missing],
            "unchanged": self.unchanged,
        }

    def __str__(self) -> str:
        lines = [f"+ {_shown_id(label.id)}{_described(label)}" for label in self.added]
        for own, other in self.changed:
            lines.append(f"~ {_shown_id(own.id)}")
            for name in LABEL_FIELDS:
                before, after = getattr(own, name), getattr(other, name)
                if before != after:
                    lines.append(f"    {SHOWN.get(name, name)}: {_shown(before)} -> {_shown(after)}")
        lines += [f"- {_shown_id(label.id)}{_described(label)}" for label in self.removed]
        return "\n".join(lines) if lines else "nothing changes"


def read_label_file(source: str) -> tuple[LabelSet, frozenset[str]]:
    """The labels of a file, or of the content of one, and the fields that it has.

    A table has those of its columns, so that a file without descriptions does not take them away. So has a list of
    objects in JSON, as ``labels show --json`` prints it, those of its keys; for a label that lacks one, it is empty. A
    mapping has what its values are, and a list of names has none.
    """
    labels = load_labels(_on_one_line(source))
    path = os.path.expanduser(source)
    is_file = os.path.isfile(path)
    if path.lower().endswith(".json") if is_file else source.lstrip()[:1] in ("[", "{"):
        text = source
        if is_file:
            with open(path, encoding="utf-8-sig") as file:
                text = file.read()
        return labels, frozenset(_json_fields(text) & set(LABEL_FIELDS))
    columns = {name for row in read_rows(path) for name in row.fields} if is_file else set(table_header(source) or ())
    columns = {COLUMN_ALIASES.get(name, ROW_COLUMNS.get(name, name)) for name in map(str.strip, columns)}
    return labels, frozenset(columns & set(LABEL_FIELDS))


def _json_fields(text: str) -> set[str]:
    """What JSON says about labels; nothing if these are lines of names that only begin like JSON."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return set()
    if isinstance(data, list):
        return {name for item in data if isinstance(item, dict) for name in item}
    numbers = data != with_integer_keys(data)
    found: set[str] = set()
    for value in data.values():
        if isinstance(value, str):
            found.add("name" if numbers else "description")
        elif isinstance(value, list):
            found.add("phrases")
        elif isinstance(value, dict):
            found.update(value)
    return found


def _on_one_line(source: str) -> str:
    """JSON of several lines on one; anything else as it is."""
    if source.lstrip()[:1] not in ("[", "{") or "\n" not in source:
        return source
    try:
        return json.dumps(json.loads(source))
    except (ValueError, RecursionError):
        return source


def check_known(labels: LabelSet, id_: Hashable) -> Label:
    """The label with an id that may be spelled as text; MaskMatchError if there is none."""
    return labels.label(labels.resolve(id_))


def _described(label: Label) -> str:
    """What describes a label besides its id, in parentheses; empty if there is nothing."""
    parts = [] if label.id_is_name else [f"reads {label.name!r}"]
    parts += [f"{name} {_shown(getattr(label, name))}" for name in LABEL_FIELDS[1:] if getattr(label, name)]
    return f" ({', '.join(parts)})" if parts else ""


def _shown_id(id_: Hashable) -> str:
    return id_ if isinstance(id_, str) else repr(id_)


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else f"[{', '.join(map(repr, value))}]"
