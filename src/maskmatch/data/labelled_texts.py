"""Label sets with example texts, from JSON files: training data for aligning an encoder to label names in general."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskmatch.data.values import is_blank, is_valid_unicode
from maskmatch.errors import MaskMatchError


@dataclass(frozen=True)
class LabelledTexts:
    """A label set with some texts per label.

    Attributes:
        name: Its name in error messages.
        task: The name of its task preset.
        names: Per label, its name, followed by its synonyms.
        texts: Per label, some texts: strings, or dicts of the task's fields.
    """

    name: str
    task: str
    names: tuple[tuple[str, ...], ...]
    texts: tuple[tuple[Any, ...], ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.texts):
            raise ValueError(
                f"The label set {self.name} has names for {len(self.names)} labels, but texts for {len(self.texts)}."
            )
        if len(self.names) < 2:
            raise MaskMatchError(f"The label set {self.name} has fewer than two labels.")
        for names, texts in zip(self.names, self.texts, strict=True):
            if not names or not all(_is_valid_name(name) for name in names):
                raise MaskMatchError(f"The label set {self.name} has a label without a name, or with a blank name.")
            if not texts:
                raise MaskMatchError(f"The label set {self.name} has no texts for the label {names[0]!r}.")
            for text in texts:
                if not isinstance(text, (str, Mapping)) or is_blank(text):
                    raise MaskMatchError(
                        f"The label set {self.name} has {text!r} instead of a text of the label {names[0]!r}; a text "
                        "is a string or a dict of fields, and not blank."
                    )

    @classmethod
    def of_rows(cls, name: str, task: str, texts: Sequence[Any], labels: Sequence[Any]) -> LabelledTexts:
        """Group labelled rows by label. A row has one label or a list of labels."""
        by_label: dict[str, list[Any]] = {}
        for text, row_labels in zip(texts, labels, strict=True):
            for label in row_labels if isinstance(row_labels, (list, tuple)) else [row_labels]:
                by_label.setdefault(str(label), []).append(text)
        return cls(name, task, tuple((label,) for label in by_label), tuple(map(tuple, by_label.values())))


def load_label_sets(folder: str | Path) -> list[LabelledTexts]:
    """Load all label sets below a folder, one per JSON file, sorted by path.

    A file holds ``{"kind": task, "labels": {name: [texts]}, "other_names": {name: [names]}}``.
    """
    folder = Path(folder).expanduser()
    files = sorted(folder.rglob("*.json"))
    if not files:
        raise MaskMatchError(f"There are no label sets (JSON files) in {folder}.")
    return [_load(file, str(file.relative_to(folder).with_suffix(""))) for file in files]


def _is_valid_name(name: object) -> bool:
    return isinstance(name, str) and not is_blank(name) and is_valid_unicode(name)


def _load(file: Path, name: str) -> LabelledTexts:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise MaskMatchError(f"{file} is not a label set in JSON: {error}") from error
    if not (
        isinstance(data, Mapping) and isinstance(data.get("kind"), str) and isinstance(data.get("labels"), Mapping)
    ):
        raise MaskMatchError(f'{file} is not a label set; it must be {{"kind": task, "labels": {{name: [texts]}}}}.')
    labels, synonyms = data["labels"], data.get("other_names", {})
    if not isinstance(synonyms, Mapping) or not synonyms.keys() <= labels.keys():
        raise MaskMatchError(f'{file}: "other_names" must be {{name: [names]}}, where each name is a label.')
    for part in (*labels.values(), *synonyms.values()):
        if not isinstance(part, list):
            raise MaskMatchError(f"{file}: each label needs a list of texts, or of other names, not {part!r:.60}.")
    return LabelledTexts(
        name,
        data["kind"],
        tuple((label, *synonyms.get(label, ())) for label in labels),
        tuple(tuple(texts) for texts in labels.values()),
    )
