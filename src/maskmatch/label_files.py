"""Labels from a file, or from a list on the command line."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, get_args

from maskmatch.data import Format, read_rows
from maskmatch.errors import MaskMatchError
from maskmatch.labels import Label, LabelSet

COLUMNS = ("label", "name", "description", "phrases", "words")
PHRASE_MARK = "|"
"""What stands between phrases or words in one cell of a CSV file."""

FILE_ENDINGS = tuple(f".{name}{end}" for name in get_args(Format) for end in ("", ".gz"))
PATH_STARTS = ("/", "./", "../", "~/")
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def load_labels(source: str | Path) -> LabelSet:
    """Labels from ``"refund, card lost"`` or from a file.

    A text file has one name a line; a JSON file a list of names or a mapping, as ``LabelSet.of`` takes it, in
    which ``{"0": "negative", "1": "positive"}`` names the numbers 0 and 1; a CSV, TSV or JSONL file has the
    columns ``label``, and if wanted ``name``, ``description``, ``phrases`` and ``words`` (with ``|`` between them).
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
    return LabelSet(tuple(_label(row.fields, row.where) for row in read_rows(path)))


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
    phrases, words = (_parts(fields.get(name) or ()) for name in ("phrases", "words"))
    try:
        return Label(fields["label"], fields.get("name") or "", fields.get("description") or "", phrases, words)
    except MaskMatchError as error:
        raise MaskMatchError(f"{where}: {error}") from None


def _parts(cell: Any) -> Any:
    """What one cell holds: phrases or words with marks between them; a list stays one."""
    return tuple(part for part in cell.split(PHRASE_MARK) if part.strip()) if isinstance(cell, str) else cell
