"""Load labels from a file, or from a comma-separated list on the command line."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from maskmatch.data import read_rows
from maskmatch.data.formats import Format
from maskmatch.errors import MaskMatchError
from maskmatch.files import write_text
from maskmatch.labels.label import Label, label_from_json, label_to_json
from maskmatch.labels.label_set import LABEL_FIELDS, LabelSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from maskmatch.data import Row

COLUMNS = ("label", *LABEL_FIELDS)
"""The columns of a file with one row per label."""

COLUMN_ALIASES = {"reads": "name"}
"""Other names of columns: ``maskmatch labels show`` prints the name under "reads"."""

PHRASE_COLUMNS = ("label", "name", "description", "words", "phrase", "example", "score", "lead", "source")
"""The columns of a file with one row per phrase or example. Score, lead and source only inform the reader."""

PHRASE_ONLY_COLUMNS = {"phrase", "example", "source"}
"""Any of these columns marks a file with one row per phrase."""

JSON_KEYS = ("id", *LABEL_FIELDS)
"""The keys of a label in a JSON list, as ``maskmatch labels show --json`` prints it."""

SEPARATOR = "|"
"""Separates phrases, words or examples in one cell of a CSV file."""

FILE_SUFFIXES = tuple(f".{name}{end}" for name in get_args(Format) for end in ("", ".gz"))
PATH_PREFIXES = ("/", "./", "../", "~/")
COMMA = re.compile(r"[,\uff0c](?![^(]*\))")
"""A comma between names; one in parentheses, as in "Cause-Effect(e1,e2)", belongs to a name."""

TABLE_HEADER = re.compile(r"""\s*(("?)label\2([\t,]).*)""")
"""The first line of a table on standard input, and what separates its columns."""

INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def load_labels(source: str | Path) -> LabelSet:
    """Load labels from ``"refund, card lost"``, from a file, from ``-`` (standard input), or from a pasted table.

    - Text file: one name per line.
    - JSON file: a list of names, a list of objects as ``maskmatch labels show --json`` prints them, or a mapping as
      ``LabelSet.of`` accepts it. In a mapping, ``{"0": "negative", "1": "positive"}`` names the numbers 0 and 1.
    - CSV, TSV or JSONL file: the column ``label``, and optionally ``name`` (or ``reads``), ``description``,
      ``phrases``, ``words`` and ``examples``, with ``|`` between several in one cell. With a column ``phrase`` or
      ``example`` the file has one row per phrase or example, as ``maskmatch labels expand`` writes it; rows with the
      same label belong together.
    """
    if str(source) == "-":
        return _labels_from_lines(sys.stdin.read(), "standard input")
    if "\0" in str(source):
        raise MaskMatchError("These labels contain a NUL character, which no name and no file name can have.")
    path = Path(os.path.expanduser(source))
    if not os.path.isfile(path):  # Path.is_file raises if a list of names is too long for a file name
        return _labels_from_lines(str(source), "--labels") if "\n" in str(source) else _labels_from_list(str(source))
    if path.suffix.lower() == ".json":
        return _labels_from_json(path)
    return _labels_from_rows(read_rows(path))


def save_labels(labels: LabelSet, path: str | Path) -> Path:
    """Write labels with all that describes them to a JSON file that :func:`load_labels` reads. The write is atomic."""
    path = Path(path).expanduser()
    data = [label_to_json(label) for label in labels.labels]
    write_text(path, json.dumps(data, ensure_ascii=False, indent=1) + "\n")
    return path


def _labels_from_lines(text: str, name: str) -> LabelSet:
    """Load labels from the content of a file: one name per line, or a table as ``labels show`` prints it."""
    header = TABLE_HEADER.match(text)
    format_: Format = "txt" if header is None else "tsv" if header[3] == "\t" else "csv"
    stream = io.StringIO(text.strip("\r\n") + "\n")
    stream.name = name
    return _labels_from_rows(read_rows(stream, format=format_))


def table_header(text: str) -> list[str] | None:
    r"""The columns of a table that begins with the column of labels; None for the lines of a text.

    >>> table_header('"label","reads"\nrefund,money back'), table_header("card lost, stolen")
    (['label', 'reads'], None)
    """
    header = TABLE_HEADER.match(text)
    return None if header is None else next(csv.reader([header[1]], delimiter=header[3]))


def _labels_from_rows(source: Iterable[Row]) -> LabelSet:
    """Load labels from rows with one label each, or with one phrase or example each."""
    rows = [_with_standard_columns(row) for row in source]
    if any(PHRASE_ONLY_COLUMNS & set(row.fields) for row in rows):
        return LabelSet(tuple(_label_from_phrase_rows(group) for group in _group_by_label(rows).values()))
    return LabelSet(tuple(_label_from_row(row.fields, row.where) for row in rows))


def _labels_from_list(source: str) -> LabelSet:
    """Parse a comma-separated list of names; raise if the source can only be meant as a file."""
    if "," not in source:
        if os.path.isdir(os.path.expanduser(source)):
            raise MaskMatchError(f"{source} is a folder; give a label file in it, or names separated by commas.")
        if source.startswith(PATH_PREFIXES) or source.lower().endswith(FILE_SUFFIXES):
            raise MaskMatchError(f"There is no label file {source}; give a file, or names separated by commas.")
    if source.lstrip().startswith(("[", "{")):
        return _labels_from_text(source, "--labels")
    names = [part.strip() for part in COMMA.split(source)]
    if not names[-1]:  # a comma at the end
        names.pop()
    if any(names) and not all(names):
        raise MaskMatchError(f"A label name is blank in {source!r}; give a name between any two commas.")
    return LabelSet.of([name for name in names if name])


def _labels_from_json(path: Path) -> LabelSet:
    """Load labels from a JSON file; errors name the file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (ValueError, OSError) as error:
        raise MaskMatchError(f"{path} is not valid JSON: {error}") from error
    return _labels_from_text(text, str(path))


def _labels_from_text(text: str, path: str) -> LabelSet:
    """Load labels from JSON; errors name where it comes from."""
    try:
        data = json.loads(text)
        if isinstance(data, list):
            data = [_label_from_object(item) if isinstance(item, Mapping) else item for item in data]
        return LabelSet.of(with_integer_keys(data))
    except MaskMatchError as error:
        raise MaskMatchError(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise MaskMatchError(f"{path} is not valid JSON: {error}") from error


def _label_from_object(item: Mapping[str, Any]) -> Label:
    """Make a label from an object of a JSON list."""
    if "id" not in item or set(item) - set(JSON_KEYS):
        raise MaskMatchError(
            f"A label in a JSON list is a name, or an object with the keys {', '.join(JSON_KEYS)}, of which id is "
            f"required; this object has {', '.join(item) or 'no keys'}."
        )
    try:
        return label_from_json({"name": "", **item})
    except (KeyError, TypeError):  # the id is an object, but not {"tuple": […]}
        raise MaskMatchError(f"The label id {item['id']!r} is neither a string, nor a number, nor a tuple.") from None


def with_integer_keys(data: Any) -> Any:
    """Convert keys to integers if all look like integers: JSON keys are strings, so {0: name} is {"0": name}."""
    if isinstance(data, dict) and data and all(INTEGER.fullmatch(key) for key in data):
        return {int(key): value for key, value in data.items()}
    return data


def _with_standard_columns(row: Row) -> Row:
    """Replace column aliases; a file that has both names of a column keeps both, and is rejected as unknown later."""
    renamed = {old: new for old, new in COLUMN_ALIASES.items() if old in row.fields and new not in row.fields}
    if not renamed:
        return row
    return replace(row, fields={renamed.get(name, name): cell for name, cell in row.fields.items()})


def _label_from_row(fields: dict[str, Any], where: str) -> Label:
    """Make a label from a row with one label."""
    if set(fields) == {"text"}:  # a text file: one name per line
        name = fields["text"]
        fields = {"label": name.strip() if isinstance(name, str) else name}
    unknown = set(fields) - set(COLUMNS)
    if "label" not in fields or unknown:
        wrong = min(unknown) if unknown else None
        near = get_close_matches(wrong or "", [*COLUMNS, *COLUMN_ALIASES], n=1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        what = "the column label is missing" if wrong is None else f"{wrong!r} is none of them{meant}"
        raise MaskMatchError(
            f"{where}: a label file has the columns {', '.join(COLUMNS)}, of which label is required; {what}."
        )
    phrases, words, examples = (_split_cell(fields.get(name) or ()) for name in ("phrases", "words", "examples"))
    try:
        return Label(
            fields["label"], fields.get("name") or "", fields.get("description") or "", phrases, words, examples
        )
    except MaskMatchError as error:
        raise MaskMatchError(f"{where}: {error}") from None


def _group_by_label(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Group the rows of a file with one row per phrase; rows keep their order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        unknown = set(row.fields) - set(PHRASE_COLUMNS)
        if row.fields.get("label") in (None, "") or unknown:
            raise MaskMatchError(
                f"{row.where}: a label file with one row per phrase has the columns {', '.join(PHRASE_COLUMNS)}, of "
                f"which label is required; this row has {', '.join(name for name, cell in row.fields.items() if cell)}."
            )
        groups.setdefault(repr(row.fields["label"]), []).append(row)
    return groups


def _label_from_phrase_rows(rows: Sequence[Row]) -> Label:
    """Make one label from the rows of its phrases and examples."""
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
    return _label_from_row(fields, rows[0].where)


def _split_cell(cell: Any) -> Any:
    """Split a cell with several phrases or words; a list stays a list, also one in JSON."""
    if not isinstance(cell, str):
        return cell
    if cell.startswith("["):
        try:
            parts = json.loads(cell)
        except (ValueError, RecursionError):
            parts = None
        if isinstance(parts, list) and all(isinstance(part, str) for part in parts):
            return tuple(parts)
    return tuple(part for part in cell.split(SEPARATOR) if part.strip())


def join_cell(parts: Sequence[str]) -> str:
    """Several phrases, words or examples in one cell: as a JSON list if they could not be split again.

    >>> join_cell(["money back", "reimbursement"]), join_cell(["either | or"])
    ('money back|reimbursement', '["either | or"]')
    """
    joined = SEPARATOR.join(parts)
    return joined if _split_cell(joined) == tuple(parts) else json.dumps(list(parts), ensure_ascii=False)
