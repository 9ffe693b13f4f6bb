"""Label sets with texts: many small ones, to learn from what label names mean in general."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskmatch.data.sources import is_unicode
from maskmatch.errors import MaskMatchError


@dataclass(frozen=True)
class LabelledTexts:
    """A label set with some texts for each of its labels.

    Attributes:
        name: What to call it in messages.
        task: The task preset that fits it, by name.
        names: For each label its name, followed by other names for the same.
        texts: For each label some texts: strings, or dicts of the task's fields.
    """

    name: str
    task: str
    names: tuple[tuple[str, ...], ...]
    texts: tuple[tuple[Any, ...], ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.texts):
            raise ValueError(f"The label set {self.name} names {len(self.names)} labels and has texts of others.")
        if len(self.names) < 2:
            raise MaskMatchError(f"The label set {self.name} has fewer than two labels.")
        for names, texts in zip(self.names, self.texts, strict=True):
            if not names or not all(isinstance(name, str) and name.strip() and is_unicode(name) for name in names):
                raise MaskMatchError(f"The label set {self.name} has a label without a name, or with one of no words.")
            if not texts:
                raise MaskMatchError(f"The label set {self.name} has no texts for the label {names[0]!r}.")
            for text in texts:
                if not isinstance(text, (str, Mapping)) or not text or (isinstance(text, str) and not text.strip()):
                    raise MaskMatchError(
                        f"The label set {self.name} has {text!r} where a text of the label {names[0]!r} belongs: a "
                        "string, or a dict of fields."
                    )

    @classmethod
    def of_rows(cls, name: str, task: str, texts: Sequence[Any], labels: Sequence[Any]) -> LabelledTexts:
        """A label set from labelled rows, each with one label or with a list of them."""
        by_label: dict[str, list[Any]] = {}
        for text, row_labels in zip(texts, labels, strict=True):
            for label in row_labels if isinstance(row_labels, (list, tuple)) else [row_labels]:
                by_label.setdefault(str(label), []).append(text)
        return cls(name, task, tuple((label,) for label in by_label), tuple(map(tuple, by_label.values())))


def load_label_sets(folder: str | Path) -> list[LabelledTexts]:
    """All label sets below a folder, one in each JSON file, in the order of their paths.

    A file holds ``{"kind": task, "labels": {name: [texts]}, "other_names": {name: [names]}}``.
    """
    folder = Path(folder).expanduser()
    files = sorted(folder.rglob("*.json"))
    if not files:
        raise MaskMatchError(f"There are no label sets (JSON files) in {folder}.")
    return [_load(file, str(file.relative_to(folder).with_suffix(""))) for file in files]


def _load(file: Path, name: str) -> LabelledTexts:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise MaskMatchError(f"{file} is not a label set in JSON: {error}") from error
    if not (
        isinstance(data, Mapping) and isinstance(data.get("kind"), str) and isinstance(data.get("labels"), Mapping)
    ):
        raise MaskMatchError(f'{file} is no label set; it has to hold {{"kind": task, "labels": {{name: [texts]}}}}.')
    labels, other = data["labels"], data.get("other_names", {})
    if not isinstance(other, Mapping) or not other.keys() <= labels.keys():
        raise MaskMatchError(f'{file}: "other_names" has to be {{name: [names]}} for names that are labels.')
    for part in (*labels.values(), *other.values()):
        if not isinstance(part, list):
            raise MaskMatchError(f"{file}: each label has a list of texts, or of other names, not {part!r:.60}.")
    return LabelledTexts(
        name,
        data["kind"],
        tuple((label, *other.get(label, ())) for label in labels),
        tuple(tuple(texts) for texts in labels.values()),
    )
