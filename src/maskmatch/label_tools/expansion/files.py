"""Save and load an expansion as a label file with one row per phrase, for a spreadsheet or an editor."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.data import read_rows
from maskmatch.errors import MaskMatchError
from maskmatch.files import write_text
from maskmatch.label_tools.expansion.result import Expansion, ScoredPhrase
from maskmatch.labels import Label, LabelSet
from maskmatch.labels.files import PHRASE_COLUMNS, SEPARATOR, load_labels

if TYPE_CHECKING:
    from collections.abc import Iterator

DELIMITERS = {".csv": ",", ".tsv": "\t"}
SUFFIXES = (".jsonl", *DELIMITERS)
GIVEN = "given"
"""The source of phrases and examples that the label had before the expansion."""


def save_expansion(expansion: Expansion, path: str | Path) -> Path:
    """Write an expansion to a label file."""
    path = Path(path).expanduser()
    check_file_name(path)
    rows = list(_rows(expansion))
    if path.suffix.lower() == ".jsonl":
        filled = ({name: cell for name, cell in row.items() if cell != ""} for row in rows)
        lines = [json.dumps(row, ensure_ascii=False) for row in filled]
        text = "\n".join(lines) + "\n"
    else:
        stream = io.StringIO()
        writer = csv.DictWriter(stream, PHRASE_COLUMNS, delimiter=DELIMITERS[path.suffix.lower()], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        text = stream.getvalue()
    write_text(path, text)
    return path


def check_file_name(path: Path) -> None:
    """Raise unless the suffix is one that can be written."""
    if path.suffix.lower() not in SUFFIXES:
        raise MaskMatchError(f"{path} cannot be written: phrases need a file that ends in .csv, .tsv or .jsonl.")


def _rows(expansion: Expansion) -> Iterator[dict[str, Any]]:
    """Yield one row per label with its name and description, followed by one row per phrase and example."""
    for label, found in zip(expansion.labels.labels, expansion.found, strict=True):
        if isinstance(label.id, tuple):
            raise MaskMatchError(f"The label {label.id!r} is a tuple, which a label file cannot hold.")
        about = {"name": label.name, "description": label.description, "words": SEPARATOR.join(label.words)}
        yield _row(label, source="label", **about)
        for text in label.phrases:
            yield _row(label, phrase=text, source=GIVEN)
        for text in label.examples:
            yield _row(label, example=text, source=GIVEN)
        for each in found:
            scores = {"score": f"{each.score:.4f}", "lead": f"{each.lead:.4f}", "source": each.source}
            yield _row(label, **{each.kind: each.text}, **scores)


def _row(label: Label, **cells: str) -> dict[str, Any]:
    return {**dict.fromkeys(PHRASE_COLUMNS, ""), "label": label.id, **cells}


def load_expansion(path: str | Path) -> Expansion:
    """Load an expansion from a label file. Rows that were added by hand count as found, with score and lead 0."""
    path = Path(path).expanduser()
    labels = load_labels(path)  # checks all rows
    rows = [row.fields for row in read_rows(path)] if path.suffix.lower() in SUFFIXES else []
    original, found = [], []
    for label in labels.labels:
        own = [row for row in rows if row.get("label") == label.id]
        given = [row for row in own if row.get("source") == GIVEN]
        new = [each for row in own if row not in given for each in _phrases_of_row(row)]
        new_texts = {(each.kind, each.text) for each in new}
        # Other label files have phrases and examples without rows of their own: these belong to the original label.
        phrases = tuple(text for text in label.phrases if ("phrase", text) not in new_texts)
        examples = tuple(text for text in label.examples if ("example", text) not in new_texts)
        original.append(Label(label.id, label.name, label.description, phrases, label.words, examples))
        found.append(tuple(new))
    return Expansion(LabelSet(tuple(original)), tuple(found))


def _phrases_of_row(row: dict[str, Any]) -> Iterator[ScoredPhrase]:
    for kind in ("phrase", "example"):
        if row.get(kind):
            score, lead = (_number(row.get(name)) for name in ("score", "lead"))
            yield ScoredPhrase(row[kind], kind, score, lead, row.get("source") or "by hand")


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return 0.0
