"""Mutated data files: a reader gives the rows that an independent parser gives, or one clear error."""

from __future__ import annotations

import csv
import gzip
import io
import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from maskmatch import MaskMatchError, load_examples
from maskmatch.data import read_rows
from maskmatch.labels.files import load_labels
from maskmatch_lab.torture.mutations import mutated

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from maskmatch_lab.torture.campaign import Tally
    from maskmatch_lab.torture.material import Material

SECONDS = 5.0
"""A small file that takes longer has hung."""

ROWS = [
    {"text": "Where is my refund?", "label": "refund"},
    {"text": 'He said "no", twice', "label": "card lost"},
    {"text": "naïve café, 東京 🙂", "label": "exchange rate"},
    {"text": "two\nlines", "label": "refund"},
    {"text": "a; b | c\td", "label": "card lost"},
]
LABEL_FILES = {
    "txt": b"refund\ncard lost\nexchange rate\n",
    "json": json.dumps({"refund": "money back", "card lost": ["stolen", "gone"]}).encode(),
    "csv": b"label,name,description,phrases\n1,refund,money back,a|b\n2,card lost,,c\n",
}


def data_files(material: Material, tally: Tally) -> None:
    """Mutated files in every format, also gzipped, by file and by stream."""
    every = bases()
    room = material.room("data-files")
    for random in tally.trials():
        kind = random.choice(list(every))
        content = mutated(every[kind], random)
        plain: bytes | None = content  # what an independent parser reads
        zipped = random.random() < 0.15
        if zipped:
            content = gzip.compress(content, 1, mtime=0)
            if random.random() < 0.5:
                content, plain = mutated(content, random), None
        by_file = random.random() < 0.1 or zipped
        path = room / f"data.{kind}{'.gz' if zipped else ''}"
        if by_file:
            path.write_bytes(content)
        started = time.monotonic()

        def source(path: Path = path, content: bytes = content, by_file: bool = by_file) -> Any:
            return path if by_file else io.BytesIO(content)

        with tally.guarded(f"{kind}{' gzipped' if zipped else ''} {content[:200]!r}"):
            _try_file(source, kind, plain, tally)
        if time.monotonic() - started > SECONDS:
            tally.fail(f"{kind}: {time.monotonic() - started:.0f} s for {len(content)} bytes")


def label_files(material: Material, tally: Tally) -> None:
    """Mutated label files: labels, or one clear error."""
    room = material.room("label-files")
    for random in tally.trials():
        kind = random.choice(list(LABEL_FILES))
        path = room / f"labels.{kind}"
        path.write_bytes(mutated(LABEL_FILES[kind], random))
        with tally.guarded(f"labels in {path.read_bytes()[:200]!r}"):
            try:
                found = load_labels(path)
            except MaskMatchError:
                tally.ended("refused")
                continue
            nameless = len(found) < 1 or any(not label.name.strip() for label in found.labels)
            wrong = f"a label without a name from {path.read_bytes()[:200]!r}"
            tally.ended("read", unless=wrong if nameless else None)


def _try_file(source: Callable[[], Any], kind: str, plain: bytes | None, tally: Tally) -> None:
    skipped: Any = None
    with suppress(MaskMatchError):
        skipped = load_examples(source(), format=kind, skip_bad_rows=True)  # type: ignore[arg-type]
    try:
        rows = list(read_rows(source(), format=kind))  # type: ignore[arg-type]
    except MaskMatchError:
        if skipped is not None and not skipped.skipped:
            tally.fail(f"{kind}: rows cannot be read, but none of them is named as skipped")
            return
        tally.ended("refused" if skipped is None else "refused, or read with bad rows skipped")
        return
    expected = None if plain is None else _expected(kind, plain)
    found = [row.fields for row in rows]
    if expected is not None and _plain(found) != _plain(expected):
        tally.fail(f"{kind}: {len(found)} rows where a parser gives {len(expected)}, or others: {plain!r:.200}")
        return
    if skipped is not None and len(skipped.texts) + len(skipped.skipped) != len(rows):
        tally.fail(f"{kind}: {len(rows)} rows, but {len(skipped.texts)} texts and {len(skipped.skipped)} skipped rows")
        return
    try:
        examples = load_examples(source(), format=kind)  # type: ignore[arg-type]
    except MaskMatchError:
        tally.ended("rows, no examples")
        return
    lost = f"{kind}: {len(rows)} rows, but {len(examples.texts)} examples: {plain!r:.200}"
    outcome = "read" if expected is not None else "read, without an independent parser"
    tally.ended(outcome, unless=lost if len(examples.texts) != len(rows) else None)


def bases() -> dict[str, bytes]:
    """A file in each format, before it is mutated."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), table)
    found = {"parquet": table.getvalue(), "json": json.dumps(ROWS, ensure_ascii=False).encode()}
    found["jsonl"] = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode()
    found["txt"] = "".join(f"{row['text'].splitlines()[0]}\n" for row in ROWS).encode()
    for kind, delimiter in (("csv", ","), ("tsv", "\t")):
        lines = io.StringIO()
        writer = csv.DictWriter(lines, ["text", "label"], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(ROWS)
        found[kind] = lines.getvalue().encode()
    return found


# -- independent parsers -------------------------------------------------------------------------------------


def _expected(kind: str, content: bytes) -> list[dict[str, Any]] | None:
    """The rows by the parsers of the standard library and pyarrow; None if these cannot judge."""
    if kind == "parquet":
        import pyarrow.parquet as pq

        return [dict(row) for row in pq.read_table(io.BytesIO(content)).to_pylist()]
    if content.startswith((b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b")):
        return None
    text = content.decode("utf-8-sig")
    if kind == "txt":
        return [{"text": line} for line in _lines(text) if line.strip()]
    if kind == "jsonl":
        return [_record(json.loads(line)) for line in _lines(text) if line.strip()]
    return _json(text) if kind == "json" else _delimited(text, kind)


def _json(text: str) -> list[dict[str, Any]]:
    table = json.loads(text)
    if isinstance(table, dict):
        columns = [list(column) for column in table.values()]
        return [dict(zip(table, cells, strict=True)) for cells in zip(*columns, strict=True)]
    return [_record(item) for item in table]


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _record(item: Any) -> dict[str, Any]:
    return {"text": item} if isinstance(item, str) else dict(item)


def _delimited(text: str, kind: str) -> list[dict[str, Any]] | None:
    first = next(line for line in _lines(text) if line.strip())
    delimiter = "\t" if kind == "tsv" else ","
    if kind == "csv" and any(other in first for other in ";\t|"):
        return None  # which delimiter it is, is a guess
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    # A record of one blank cell is a blank line; with quotes it is a cell, which this parser cannot tell.
    records = [cells for cells in reader if len(cells) > 1 or "".join(cells).strip()]
    header = records[0]
    if len(header) == 1:
        return None
    return [dict(zip([name.strip() for name in header], cells, strict=True)) for cells in records[1:]]


def _plain(rows: list[dict[str, Any]]) -> str:
    """Rows in a form that can be compared: NaN equals NaN."""
    return repr([{str(key).strip().lstrip("\ufeff"): value for key, value in row.items()} for row in rows])
