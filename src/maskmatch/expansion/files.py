"""Expansions as label files with a row for each phrase, which a spreadsheet or an editor can change."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.data import read_rows
from maskmatch.errors import MaskMatchError
from maskmatch.expansion.phrases import Expansion, ScoredPhrase
from maskmatch.label_files import PHRASE_COLUMNS, PHRASE_MARK, load_labels
from maskmatch.labels import Label, LabelSet
from maskmatch.whole_folder import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

DELIMITERS = {".csv": ",", ".tsv": "\t"}
FORMATS = (".jsonl", *DELIMITERS)
GIVEN = "given"
"""The source of phrases that a label had before."""


def save_expansion(expansion: Expansion, path: str | Path) -> Path:
    """Write an expansion as a label file."""
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
    write_whole(path, text)
    return path


def check_file_name(path: Path) -> None:
    """Refuse a file whose ending does not tell a format that is written."""
    if path.suffix.lower() not in FORMATS:
        raise MaskMatchError(f"{path} cannot be written: phrases go into a file that ends in .csv, .tsv or .jsonl.")


def _rows(expansion: Expansion) -> Iterator[dict[str, Any]]:
    """A row for each label with what is known of it, and behind it one for each phrase and example."""
    for label, found in zip(expansion.labels.labels, expansion.found, strict=True):
        if isinstance(label.id, tuple):
            raise MaskMatchError(f"The label {label.id!r} is a tuple, which a label file cannot hold.")
        about = {"name": label.name, "description": label.description, "words": PHRASE_MARK.join(label.words)}
        yield _row(label, source="label", **about)
        for text in label.phrases:
            yield _row(label, phrase=text, source=GIVEN)
        for text in label.examples:
            yield _row(label, example=text, source=GIVEN)
        for each in found:
            figures = {"score": f"{each.score:.4f}", "lead": f"{each.lead:.4f}", "source": each.source}
            yield _row(label, **{each.kind: each.text}, **figures)


def _row(label: Label, **cells: str) -> dict[str, Any]:
    return {**dict.fromkeys(PHRASE_COLUMNS, ""), "label": label.id, **cells}


def load_expansion(path: str | Path) -> Expansion:
    """Read an expansion from a label file; what was added by hand counts as found, without figures."""
    path = Path(path).expanduser()
    labels = load_labels(path)  # checks all rows
    rows = [row.fields for row in read_rows(path)] if path.suffix.lower() in FORMATS else []
    bare, found = [], []
    for label in labels.labels:
        own = [row for row in rows if row.get("label") == label.id]
        given = [row for row in own if row.get("source") == GIVEN]
        of_row = [each for row in own if row not in given for each in _phrases_of(row)]
        later = {(each.kind, each.text) for each in of_row}
        # A label file of another form holds phrases and examples that no row of its own tells of.
        phrases = tuple(text for text in label.phrases if ("phrase", text) not in later)
        examples = tuple(text for text in label.examples if ("example", text) not in later)
        bare.append(Label(label.id, label.name, label.description, phrases, label.words, examples))
        found.append(tuple(of_row))
    return Expansion(LabelSet(tuple(bare)), tuple(found))


def _phrases_of(row: dict[str, Any]) -> Iterator[ScoredPhrase]:
    for kind in ("phrase", "example"):
        if row.get(kind):
            score, lead = (_number(row.get(name)) for name in ("score", "lead"))
            yield ScoredPhrase(row[kind], kind, score, lead, row.get("source") or "by hand")


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return 0.0
