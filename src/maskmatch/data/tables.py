"""Write tables piece by piece: whole or not at all, in constant memory, and so that a run that stopped can go on."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from maskmatch.data.formats import WRITERS, read_rows, written_format
from maskmatch.errors import MaskMatchError
from maskmatch.files import locked, write_file, write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from maskmatch.data.pieces import Cells, Pieces

SAVE_EVERY = 5.0
"""After how many seconds the progress of a run that may resume is saved again."""

AT_ONCE = 2048
"""How many rows are written at once."""

LOCK_SECONDS = 1.0
"""How long to wait for another run that writes the same file."""


@dataclass(frozen=True)
class Resumable:
    """What says whether a partial file can be continued.

    Args:
        key: What the rows depend on, each with a name that a user understands: the classifier, the labels, the options,
            the input. It is called when the progress is first saved, as it may have to read the whole input.
        resume: Whether to continue a partial file, if there is one.
    """

    key: Callable[[], Mapping[str, Any]]
    resume: bool = False


def write_table(path: str | os.PathLike[str], columns: Sequence[str], rows: Iterable[Cells]) -> Path:
    """Write rows to a file that :func:`read_rows` reads; its ending says the format. No reader sees half of the file.

    Args:
        path: The file.
        columns: The columns, in order. A row may lack some; in JSON and Parquet it may have others, too.
        rows: The cells of each row, by column.
    """
    target = Path(path).expanduser()
    with writing_table(target, columns) as table:
        waiting: list[Cells] = []
        for row in rows:
            waiting.append(row)
            if len(waiting) == AT_ONCE:
                table.write(waiting)
                waiting = []
        table.write(waiting)
    return target


@contextmanager
def writing_table(
    path: Path, columns: Sequence[str], *, append: bool = False, resumable: Resumable | None = None
) -> Iterator[TableWriter]:
    """Write a table: it gets its name when the block ends, and an existing file stays as it is until then.

    Args:
        path: The file; its ending says the format.
        columns: The columns, in order.
        append: Whether to keep the rows of the existing file, which must have the same columns.
        resumable: What the rows depend on. If the block fails, the partial file then stays, and can be continued.
    """
    path = path.expanduser()
    pieces = WRITERS[written_format(path)]
    if path.is_dir():
        raise MaskMatchError(f"{path} is a folder; give a file in it.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path, LOCK_SECONDS):
            table = TableWriter(path, columns, pieces, resumable)
            try:
                table.start(append)
                yield table
            except BaseException:
                table.stop()
                raise
            table.finish()
    except OSError as error:
        raise MaskMatchError(f"{path} cannot be written: {error.strerror or error}.") from error


def partial_files(path: Path) -> tuple[Path, Path]:
    """The partial file of a table, and the file with its progress."""
    return path.with_name(f"{path.name}.partial"), path.with_name(f"{path.name}.partial.json")


class CannotResumeError(MaskMatchError):
    """A partial file was made from something else."""


class TableWriter:
    """A table that is being written into a partial file beside its name; :func:`writing_table` makes it.

    Attributes:
        columns: The columns that every row has.
        done: How many rows of the source the rows so far stand for.
        rows: How many rows the table has so far.
        counts: What callers count, such as rows with an error.
    """

    def __init__(self, path: Path, columns: Sequence[str], pieces: Pieces, resumable: Resumable | None) -> None:
        self.columns = tuple(columns)
        self.done, self.rows = 0, 0
        self.counts: dict[str, int] = {}
        self._path, self._pieces, self._resumable = path, pieces, resumable
        self._partial, self._progress = partial_files(path)
        zipped = path.suffix.lower() == ".gz"
        self._zip_pieces, self._zip_all = zipped and pieces.finish is None, zipped and pieces.finish is not None
        self._key: dict[str, Any] | None = None
        self._saved_at, self._saved_rows = time.monotonic(), 0
        self._file: IO[bytes] | None = None
        self._size = 0  # the bytes of the rows that are counted: an interrupted write leaves some more
        self._copying = False

    def write(self, rows: Sequence[Cells], done: int | None = None, **counts: int) -> None:
        """Append some rows.

        Args:
            rows: The rows; missing cells are empty.
            done: How many rows of the source they and all rows before them stand for.
            **counts: What to add to ``counts``.
        """
        if not self._pieces.any_columns:
            self._check_columns(rows)
        self._append(self._pieces.rows(self.columns, rows, self.rows))
        counted = {name: self.counts.get(name, 0) + number for name, number in counts.items()}
        self._count(len(rows), self.done if done is None else done, {**self.counts, **counted})
        if self._resumable is not None and not self._copying and time.monotonic() - self._saved_at >= SAVE_EVERY:
            self._save()

    def _count(self, rows: int, done: int, counts: dict[str, int]) -> None:
        """Count the rows that were written, with the bytes up to their end."""
        assert self._file is not None
        self.rows, self.done, self.counts, self._size = self.rows + rows, done, counts, self._file.tell()

    def start(self, append: bool) -> None:
        """Continue the partial file, or begin a new one."""
        state = self._state()
        if state is not None:
            self._file = open(self._partial, "r+b")  # noqa: SIM115 (closed by stop or finish)
            self._file.truncate(state["bytes"])
            self._file.seek(state["bytes"])
            self._size = state["bytes"]
            self._key, self.columns = state["key"], tuple(state["columns"])
            self.done, self.rows, self.counts = state["done"], state["rows"], state["counts"]
            return
        self._progress.unlink(missing_ok=True)
        self._file = open(self._partial, "wb")  # noqa: SIM115
        if append and self._path.exists() and self._path.stat().st_size:
            self._copy_existing()
        else:
            self._append(self._pieces.start(self.columns))
        self._size = self._file.tell()

    def stop(self) -> None:
        """Keep the rows so far if the run can be continued, and remove them otherwise."""
        if self._file is None:
            return
        try:
            if self._resumable is not None and self.done and not self._copying:
                self._save()
        finally:
            self._file.close()
            if not self._progress.exists():
                self._partial.unlink(missing_ok=True)

    def finish(self) -> None:
        """Give the table its name; if that fails, the rows so far stay only where a run can be continued."""
        try:
            self._finish()
        except BaseException:
            if not self._progress.exists():
                self._partial.unlink(missing_ok=True)
            raise

    def _finish(self) -> None:
        assert self._file is not None
        with self._file:
            self._append(self._pieces.end)
        with write_file(self._path) as scratch:
            if self._pieces.finish is None:
                self._partial.replace(scratch)
            else:
                self._pieces.finish(self._partial, scratch)
                if self._zip_all:
                    _zip(scratch)
        for each in (self._progress, self._partial):
            each.unlink(missing_ok=True)

    def _append(self, piece: bytes) -> None:
        assert self._file is not None
        if piece:
            self._file.write(gzip.compress(piece, mtime=0) if self._zip_pieces else piece)

    def _check_columns(self, rows: Iterable[Cells]) -> None:
        known = set(self.columns)
        for row in rows:
            extra = next((name for name in row if name not in known), None)
            if extra is not None:
                raise MaskMatchError(
                    f"A row has the column {extra!r}, which the first rows lack, and {self._path} has its columns in "
                    "the header; write .jsonl or .parquet, or choose columns with --keep."
                )

    def _copy_existing(self) -> None:
        """Begin with the rows of the existing file; raise if it has other columns."""
        waiting: list[Cells] = []
        begun = False

        def copy() -> None:
            nonlocal begun
            if not begun and waiting:
                self.columns = _same_columns(waiting, self.columns, self._path)
            if not begun:
                self._append(self._pieces.start(self.columns))
            self.write(waiting)
            waiting.clear()
            begun = True

        self._copying = True  # until all of them are there, the run cannot be continued
        for row in read_rows(self._path, may_be_empty=True):
            waiting.append(row.fields)
            if len(waiting) == AT_ONCE:
                copy()
        if waiting or not begun:
            copy()
        self._copying = False

    def _save(self) -> None:
        """Save how far it is, after all rows so far are on the disk."""
        assert self._file is not None
        assert self._resumable is not None
        if self._key is None:
            self._key = _plain(self._resumable.key())
        self._file.flush()
        os.fsync(self._file.fileno())
        state = {"key": self._key, "columns": self.columns, "bytes": self._size, "done": self.done, "rows": self.rows}
        write_text(self._progress, json.dumps({**state, "counts": self.counts}))
        self._saved_at = time.monotonic()

    def _state(self) -> dict[str, Any] | None:
        """The saved progress, if it is to be continued; MaskMatchError if it does not belong to this run."""
        resumable = self._resumable
        if resumable is None or not resumable.resume or not (self._progress.exists() and self._partial.exists()):
            return None
        try:
            state = json.loads(self._progress.read_text(encoding="utf-8"))
            saved = {name: state[name] for name in ("key", "columns", "bytes", "done", "rows", "counts")}
            before = dict(saved["key"])
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise MaskMatchError(f"{self._progress} is damaged; leave --resume out to start again.") from error
        key = _plain(resumable.key())
        differs = [
            name if not isinstance(value, dict) else _different(before.get(name), value)
            for name, value in key.items()
            if before.get(name) != value
        ]
        if set(saved["columns"]) != set(self.columns):
            differs.append("set of columns")
        if self._partial.stat().st_size < saved["bytes"]:
            differs.append("size")
        if differs:
            raise CannotResumeError(
                f"{self._partial} cannot be continued, because it was made with another {' and '.join(differs)}; leave "
                "--resume out to start again."
            )
        return saved


def _different(before: Any, now: Mapping[str, Any]) -> str:
    """The options that differ, in words."""
    old = before if isinstance(before, dict) else {}
    return " and ".join(name.replace("_", " ") for name in now if old.get(name) != now[name]) or "set of options"


def _plain(key: Mapping[str, Any]) -> dict[str, Any]:
    """A key as JSON gives it back."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(key), default=str))
    return plain


def _same_columns(rows: Iterable[Cells], wanted: Sequence[str], path: Path) -> tuple[str, ...]:
    """The columns of an existing table, in its order; raise unless they are the same."""
    found = tuple(dict.fromkeys(name for row in rows for name in row))
    lacks = [name for name in wanted if name not in found]
    more = [name for name in found if name not in wanted]
    if lacks or more:
        what = [f"it lacks {', '.join(map(repr, lacks))}"] if lacks else []
        what += [f"it also has {', '.join(map(repr, more))}"] if more else []
        raise MaskMatchError(
            f"Rows cannot be appended to {path}, because its columns differ: {' and '.join(what)}; choose another "
            "file, or the same columns with --keep and --prefix."
        )
    return found


def _zip(path: Path) -> None:
    """Compress a file in its place."""
    zipped = path.with_name(f"{path.name}.gz")
    try:
        with path.open("rb") as source, gzip.GzipFile(zipped, "wb", mtime=0) as target:
            shutil.copyfileobj(source, target)
        zipped.replace(path)
    finally:
        zipped.unlink(missing_ok=True)
