"""Partitions: which rows of which file make which file of answers, and how one of them is written.

A partition is written whole, under a name that follows from its rows. It says in its metadata what it was made from. So
a worker may write it again after a crash, and a later run knows whether it is done.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError
from maskmatch.integrations.arrow import ArrowPredictor, answer_fields, check_free
from maskmatch.integrations.places import Place
from maskmatch.integrations.rows import format_of, open_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from maskmatch.data.formats import Format
    from maskmatch.integrations.rows import ParquetRows, TextRows

logger = logging.getLogger("maskmatch")

METADATA = b"maskmatch"
"""The key of a partition's metadata in its Parquet file."""

ROW = "row"
"""The column with a row's number in its file, as ``maskmatch predict`` prints it."""


@dataclass(frozen=True)
class InputFile:
    """A file of rows as it was when the run began.

    Attributes:
        uri: The place that the user gave.
        below: The path below it.
        size: Bytes.
        changed: When it was changed last, in nanoseconds.
        format: Its format.
        encoding: Its encoding.
        rows: How many rows it has.
        columns: Its columns.
    """

    uri: str
    below: str
    size: int
    changed: int
    format: Format
    encoding: str
    rows: int = 0
    columns: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        """Where it is."""
        return Place(self.uri, self.below)

    def counted(self) -> InputFile:
        """The same, with its rows and columns, for which a text file is read once."""
        reader = open_rows(self.place, self.format, self.encoding)
        rows = reader.count()
        return replace(self, rows=rows, columns=tuple(reader.columns))

    def check_unchanged(self) -> None:
        """Raise if the file is not what it was when the run began."""
        info = self.place.info()
        if (info.size, info.mtime_ns) != (self.size, self.changed):
            raise MaskMatchError(f"{self.place} was changed during the run; run the command again.")


@dataclass(frozen=True)
class Partition:
    """Some rows of a file, and what their answers are made with.

    Attributes:
        file: The file.
        start: The place of the first row.
        stop: The place after the last row.
        made_with: The model, and the options that change answers.
    """

    file: InputFile
    start: int
    stop: int
    made_with: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of its file of answers."""
        path = self.file.below or self.file.uri
        stem = re.sub(r"[^\w.-]+", "_", path.rpartition("/")[2])[-60:].lstrip("._")
        return f"{stem}-{hashlib.sha256(path.encode()).hexdigest()[:8]}-{self.start:010d}.parquet"

    @property
    def identity(self) -> dict[str, Any]:
        """What its answers were made from, as plain JSON."""
        file = self.file
        name = file.below or file.uri.rstrip("/").rpartition("/")[2]  # no path of this machine
        source = {"input": name, "size": file.size, "changed": file.changed, "encoding": file.encoding}
        rows = {"format": file.format, "start": self.start, "stop": self.stop}
        found: dict[str, Any] = json.loads(json.dumps({**source, **rows, **self.made_with}))
        return found

    def to_json(self) -> str:
        """As a string, for a worker."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Partition:
        """What :meth:`to_json` wrote."""
        data = json.loads(text)
        columns = tuple(data["file"].pop("columns"))
        return cls(InputFile(**data["file"], columns=columns), data["start"], data["stop"], data["made_with"])


@dataclass(frozen=True)
class Written:
    """What the metadata of a file of answers says.

    Attributes:
        name: The name of the file.
        identity: What its answers were made from.
        rows: How many rows it has.
        bad_rows: How many of them have an error.
        label_set: The digest of the labels.
    """

    name: str
    identity: dict[str, Any]
    rows: int
    bad_rows: int
    label_set: str

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON, for the manifest: without what all partitions have in common."""
        from_rows = {name: self.identity[name] for name in ("input", "start", "stop")}
        return {"file": self.name, **from_rows, "rows": self.rows, "bad_rows": self.bad_rows}


def find_files(source: str, format: Format | None, encoding: str) -> list[InputFile]:  # noqa: A002
    """The files of rows at a path or a URI: the file itself, or all files of a folder with a known suffix."""
    from pyarrow import fs

    place = Place.of(source)
    info = place.info()
    if info.type == fs.FileType.NotFound:
        raise MaskMatchError(f"There is no file or folder {source!r}; check the name.")
    found = [(place, info)] if info.type == fs.FileType.File else list(place.files())
    files = [
        InputFile(each.uri, each.below, about.size, about.mtime_ns or 0, known, encoding)
        for each, about in found
        if (known := format_of(str(each), format)) is not None
    ]
    read = {(file.uri, file.below) for file in files}
    others = [str(each) for each, _ in found if (each.uri, each.below) not in read]
    if files and others:
        logger.warning(
            "%d files of unknown formats are not read, such as %s; convert them, or give the format.",
            len(others),
            others[0],
        )
    if not files:
        raise MaskMatchError(f"{source} has no file of a known format; give the format with --format.")
    return files


def split(files: Iterable[InputFile], rows: int, made_with: Mapping[str, Any]) -> list[Partition]:
    """The partitions of files, with at most this many rows each."""
    return [
        Partition(file, start, min(start + rows, file.rows), dict(made_with))
        for file in files
        for start in range(0, file.rows, rows)
    ]


def read_written(place: Place) -> Written | None:
    """What a file of answers says of itself; None if it is none of ours, or there is no file."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import fs

    if place.info().type != fs.FileType.File:
        return None
    try:
        with place.open() as file:
            metadata = pq.read_metadata(file).metadata or {}
        data = json.loads(metadata[METADATA])
        return Written(place.below.rpartition("/")[2], **data)
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
        return None


class PartitionWriter:
    """Answers partitions and writes them; a worker has one, with one model.

    Args:
        folder: The folder of a saved classifier or of an export.
        options: The fields of ``AnswerOptions``.
        output: The folder of answers: a path or a URI.
    """

    def __init__(self, folder: str, options: Mapping[str, Any], output: str) -> None:
        self._folder, self._options, self._output = folder, dict(options), Place.of(output)
        self._predictor: ArrowPredictor | None = None
        self._file: InputFile | None = None
        self._reader: ParquetRows | TextRows | None = None

    def write(self, partition: Partition) -> Written:
        """Answer the rows of a partition, and write them whole."""
        if self._predictor is None:
            self._predictor = ArrowPredictor(self._folder, **self._options)
        predictor, file = self._predictor, partition.file
        file.check_unchanged()
        if self._reader is None or self._file != file:  # it is open still: the next rows follow those of the last call
            self._reader, self._file = open_rows(file.place, file.format, file.encoding), file
            self._reader.columns = list(file.columns)
        columns = predictor.columns(file.columns)
        rows = self._reader.read(partition.start, partition.stop, columns.values())
        answers = predictor.answers(rows.plain, columns, rows.problems)
        file.check_unchanged()
        if len(answers) != partition.stop - partition.start:
            raise MaskMatchError(f"{file.place} was changed during the run; run the command again.")
        bad = sum("error" in answer for answer in answers)
        written = Written(partition.name, partition.identity, len(answers), bad, predictor.label_set)
        table = predictor.joined(_numbered(rows.table, rows.numbers, predictor.options.prefix), answers)
        (self._output / partition.name).write(_parquet(table, written))
        return written


def check_columns(files: Sequence[InputFile], *, multi_label: bool, novelty: bool, prefix: str) -> None:
    """Raise if a file has a column already that answers have."""
    import pyarrow as pa

    fields = answer_fields(multi_label=multi_label, novelty=novelty, prefix=prefix)
    for file in files:
        check_free(file.columns, [pa.field(f"{prefix}{ROW}", pa.int64()), *fields])


def _numbered(table: pa.Table, numbers: Sequence[int], prefix: str) -> pa.Table:
    import pyarrow as pa

    return table.append_column(f"{prefix}{ROW}", pa.array(numbers, pa.int64()))


def _parquet(table: pa.Table, written: Written) -> Any:
    """A table as the content of a Parquet file, with the metadata of a partition."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = asdict(written)
    del data["name"]
    metadata = {**(table.schema.metadata or {}), METADATA: json.dumps(data, sort_keys=True).encode()}
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(metadata), sink)
    return sink.getvalue()
