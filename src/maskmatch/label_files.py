"""Labels from a file, or from a list on the command line."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from maskmatch.choices import Format
from maskmatch.data import read_rows
from maskmatch.errors import MaskMatchError
from maskmatch.labels import Label, LabelSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from maskmatch.data import Row

COLUMNS = ("label", "name", "description", "phrases", "words", "examples")
PHRASE_COLUMNS = ("label", "name", "description", "words", "phrase", "example", "score", "lead", "source")
"""The columns of a file with a row for each phrase or example: score, lead and source are for the reader alone."""

ROW_A_PHRASE = {"phrase", "example", "source"}
"""Columns by which such a file is known."""

PHRASE_MARK = "|"
"""What stands between phrases or words in one cell of a CSV file."""

FILE_ENDINGS = tuple(f".{name}{end}" for name in get_args(Format) for end in ("", ".gz"))
PATH_STARTS = ("/", "./", "../", "~/")
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def load_labels(source: str | Path) -> LabelSet:
    """Labels from ``"refund, card lost"`` or from a file.

    A text file has one name a line; a JSON file a list of names or a mapping, as ``LabelSet.of`` takes it, in
    which ``{"0": "negative", "1": "positive"}`` names the numbers 0 and 1; a CSV, TSV or JSONL file has the
    columns ``label``, and if wanted ``name``, ``description``, ``phrases``, ``words`` and ``examples`` (with ``|``
    between them). With a column ``phrase`` or ``example`` it has a row for each of them, as ``maskmatch labels expand``
    writes it: rows of the same label belong together.
    """
    path = Path(os.path.expanduser(source))
    if not os.path.isfile(path):  # Path.is_file fails where a list of names is too long for a file's name
        return _labels_in_line(str(source))
    if path.suffix.lower() == ".json":
        try:
            return LabelSet.of(_with_numbers(json.loads(path.read_text(encoding="utf-8-sig"))))
        except MaskMatchError as error:
            raise MaskMatchError(f"{path}: {error}") from None
        except (ValueError, OSError) as error:
            raise MaskMatchError(f"{path} is not valid JSON: {error}") from error
    rows = list(read_rows(path))
    if any(ROW_A_PHRASE & set(row.fields) for row in rows):
        return LabelSet(tuple(_label_of_rows(own) for own in _by_label(rows).values()))
    return LabelSet(tuple(_label(row.fields, row.where) for row in rows))


def _labels_in_line(source: str) -> LabelSet:
    """Names with commas between them; what can only be meant as a file is refused."""
    if "," not in source:
        if os.path.isdir(os.path.expanduser(source)):
            raise MaskMatchError(f"{source} is a folder; name a label file in it, or names with commas between them.")
        if source.startswith(PATH_STARTS) or source.lower().endswith(FILE_ENDINGS):
            raise MaskMatchError(f"There is no label file {source}; give a file, or names with commas between them.")
    return LabelSet.of([name for part in source.split(",") if (name := part.strip())])


def _with_numbers(data: Any) -> Any:
    """JSON has only texts for keys: where every key is a whole number, numbers are meant, as in {0: name}."""
    if isinstance(data, dict) and data and all(WHOLE_NUMBER.fullmatch(key) for key in data):
        return {int(key): value for key, value in data.items()}
    return data


def _label(fields: dict[str, Any], where: str) -> Label:
    if set(fields) == {"text"}:  # one name a line
        name = fields["text"]
        fields = {"label": name.strip() if isinstance(name, str) else name}
    unknown = set(fields) - set(COLUMNS)
    if "label" not in fields or unknown:
        raise MaskMatchError(
            f"{where}: a label file has the columns {', '.join(COLUMNS)}, of which label is needed; "
            f"this one has {', '.join(fields)}."
        )
    phrases, words, examples = (_parts(fields.get(name) or ()) for name in ("phrases", "words", "examples"))
    try:
        return Label(
            fields["label"], fields.get("name") or "", fields.get("description") or "", phrases, words, examples
        )
    except MaskMatchError as error:
        raise MaskMatchError(f"{where}: {error}") from None


def _by_label(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each label, in their order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        unknown = set(row.fields) - set(PHRASE_COLUMNS)
        if row.fields.get("label") in (None, "") or unknown:
            raise MaskMatchError(
                f"{row.where}: a label file with a row for each phrase has the columns {', '.join(PHRASE_COLUMNS)}, of "
                f"which label is needed; this row has {', '.join(name for name, cell in row.fields.items() if cell)}."
            )
        found.setdefault(repr(row.fields["label"]), []).append(row)
    return found


def _label_of_rows(rows: Sequence[Row]) -> Label:
    """One label from the rows of its phrases and examples."""
    fields: dict[str, Any] = {"label": rows[0].fields["label"]}
    for name in ("name", "description", "words"):
        cells = {str(row.fields[name]): row.fields[name] for row in rows if row.fields.get(name)}
        if len(cells) > 1:
            raise MaskMatchError(
                f"{rows[0].where}: the label {fields['label']!r} has more than one {name}: {', '.join(cells)}."
            )
        fields[name] = next(iter(cells.values()), None)
    for name in ("phrase", "example"):
        fields[f"{name}s"] = tuple(row.fields[name] for row in rows if row.fields.get(name))
    return _label(fields, rows[0].where)


def _parts(cell: Any) -> Any:
    """What one cell holds: phrases or words with marks between them; a list stays one."""
    return tuple(part for part in cell.split(PHRASE_MARK) if part.strip()) if isinstance(cell, str) else cell
