"""The store of a project: what a page shows as done is in the database by then."""

from __future__ import annotations

import random
import threading
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, event, func, insert, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from maskmatch.data.cells import json_value
from maskmatch.errors import MaskMatchError
from maskmatch.labels import LabelSet
from maskmatch.workbench.records import (
    Change,
    ChangedMeanwhileError,
    ChangeKind,
    Labels,
    Mark,
    ProjectLabel,
    Undone,
)
from maskmatch.workbench.rows import (
    append_setting,
    log_change,
    make_marks,
    mark_before,
    mark_of,
    next_key,
    now,
    put_mark,
    read_labels,
    searched,
    set_setting,
    zoned,
)
from maskmatch.workbench.schema import Base, ChangeRow, MarkRow, RunRow, SettingRow, TextRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Connection, Engine

FORMAT = 1
LOCK = 2312_08726
"""The number of the lock that a workbench holds in a database on a server."""

IMPORTED_AT_ONCE = 2_000
MOST_DRAW = 2**31 - 1


class Store:
    """The database of a project.

    Args:
        url: Its address, such as ``sqlite:///project.db``.
    """

    def __init__(self, url: str) -> None:
        try:
            self._engine: Engine = create_engine(url)
        except (SQLAlchemyError, ImportError) as error:
            raise MaskMatchError(f"The database cannot be used: {error}") from error
        if self._engine.dialect.name == "sqlite":
            event.listen(self._engine, "connect", _durable)
        self._sessions = sessionmaker(self._engine)
        self._held = self._hold()
        self._writing = threading.Lock()
        self._drawn: list[int] = []
        try:
            Base.metadata.create_all(self._engine)
            with self._write() as session:
                known = session.get(SettingRow, "format")
                if known is None:
                    session.add(SettingRow(name="format", value=FORMAT))
                elif known.value != FORMAT:
                    raise MaskMatchError(
                        f"The project has format {known.value}, and this version reads {FORMAT}; use a newer maskmatch."
                    )
        except SQLAlchemyError as error:
            raise MaskMatchError(f"The database cannot be used: {_reason(error)}") from error

    def _hold(self) -> Connection | None:
        """Keep other workbenches out of a database on a server; the folder of a project has a lock of its own."""
        if self._engine.dialect.name != "postgresql":
            return None
        try:
            connection = self._engine.connect()
            if not connection.scalar(select(func.pg_try_advisory_lock(LOCK))):
                connection.close()
                raise MaskMatchError("This database is open in another workbench; close that first.")
            connection.commit()  # the lock is the connection's, not the transaction's
        except SQLAlchemyError as error:
            raise MaskMatchError(f"The database cannot be used: {_reason(error)}") from error
        return connection

    def close(self) -> None:
        """Close all connections."""
        if self._held is not None:
            self._held.close()
        self._engine.dispose()

    @contextmanager
    def _read(self) -> Iterator[Session]:
        with _plain_errors(), self._sessions() as session:
            yield session

    @contextmanager
    def _write(self) -> Iterator[Session]:
        """A transaction: all of it is there afterwards, or nothing."""
        with _plain_errors(), self._writing, self._sessions.begin() as session:
            yield session

    # -- settings --------------------------------------------------------------------------------------------

    def setting(self, name: str, default: Any = None) -> Any:
        """A setting of the project."""
        with self._read() as session:
            row = session.get(SettingRow, name)
            return default if row is None else row.value

    def set(self, name: str, value: Any) -> None:
        """Change a setting of the project."""
        with self._write() as session:
            set_setting(session, name, value)

    # -- texts -----------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """How many texts there are."""
        with self._read() as session:
            return session.scalar(select(func.count()).select_from(TextRow)) or 0

    def import_texts(
        self,
        rows: Iterable[tuple[Any, Mapping[str, Any]]],
        *,
        digest: str | None = None,
    ) -> int | None:
        """Add texts with the columns that they came with, all or none.

        Args:
            rows: The texts and their columns.
            digest: What identifies them; if texts with this digest are there, nothing is added.

        Returns:
            How many were added; None if they are there already.
        """
        iterator = iter(list(rows))  # read before the database is locked
        with self._write() as session:
            if digest is not None and not append_setting(session, "imported", digest):
                return None
            first = count = session.scalar(select(func.count()).select_from(TextRow)) or 0
            rng = random.Random(first)  # other numbers for each import
            while part := list(islice(iterator, IMPORTED_AT_ONCE)):
                session.execute(
                    insert(TextRow),
                    [
                        {
                            "id": count + place,
                            "content": content,
                            "plain": searched(content, columns),
                            "columns": json_value(columns),
                            "draw": rng.randrange(MOST_DRAW),
                        }
                        for place, (content, columns) in enumerate(part)
                    ],
                )
                count += len(part)
        return count - first

    def texts(self, ids: Sequence[int]) -> list[Any]:
        """The texts with these numbers, in this order."""
        return [content for content, _ in self.rows(ids)]

    def rows(self, ids: Sequence[int]) -> list[tuple[Any, dict[str, Any]]]:
        """The texts with these numbers, in this order, and their columns."""
        with self._read() as session:
            found = {
                row.id: (row.content, row.columns)
                for row in session.execute(
                    select(TextRow.id, TextRow.content, TextRow.columns).where(TextRow.id.in_(list(ids)))
                )
            }
        return [found[each] for each in ids]

    def all_rows(self, start: int = 0) -> Iterator[list[tuple[Any, dict[str, Any]]]]:
        """All texts from a number on, in order, in parts."""
        while True:
            with self._read() as session:
                part = session.execute(
                    select(TextRow.content, TextRow.columns)
                    .where(TextRow.id >= start, TextRow.id < start + IMPORTED_AT_ONCE)
                    .order_by(TextRow.id)
                ).all()
            if not part:
                return
            yield [(row.content, row.columns) for row in part]
            start += len(part)

    def search(self, words: str) -> list[int]:
        """The numbers of the texts that contain this, whatever the case."""
        with self._read() as session:
            found = select(TextRow.id).where(TextRow.plain.contains(words.lower(), autoescape=True))
            return list(session.scalars(found.order_by(TextRow.id)))

    def drawn(self) -> list[int]:
        """The numbers of all texts in random order, which is always the same."""
        count = self.count
        if len(self._drawn) != count:
            with self._read() as session:
                self._drawn = list(session.scalars(select(TextRow.id).order_by(TextRow.draw, TextRow.id)))
        return self._drawn

    # -- labels and marks ------------------------------------------------------------------------------------

    def labels(self) -> Labels:
        """The labels."""
        with self._read() as session:
            return read_labels(session)

    def marks(self) -> list[Mark]:
        """All marks, oldest first."""
        with self._read() as session:
            rows = session.scalars(select(MarkRow).order_by(MarkRow.at, MarkRow.text, MarkRow.who))
            return [mark_of(row) for row in rows]

    def set_labels(
        self,
        labels: Sequence[ProjectLabel],
        what: str,
        *,
        who: str,
        expected: int,
        moved: Mapping[int, int] | None = None,
        marks: Sequence[Mark] = (),
    ) -> Labels:
        """Take other labels. Marks of labels that are gone lose them, or get the one that they moved to.

        Args:
            labels: The labels.
            what: What was done, in words.
            who: Who does it.
            expected: The version of the labels that this is based on.
            moved: The key that takes the marks of a key that is gone.
            marks: Marks that are made with it.
        """
        LabelSet(tuple(label.inside() for label in labels))  # raises if two read alike
        stay, moved = {label.key for label in labels}, dict(moved or {})
        with self._write() as session:
            old = read_labels(session, locked=True)
            if old.version != expected:
                raise ChangedMeanwhileError("Somebody has changed the labels meanwhile; look at them again.")
            every = [mark_of(row) for row in session.scalars(select(MarkRow))]
            gone = [mark for mark in every if not stay.issuperset(mark.labels)]
            changed: list[tuple[Mark, Mark | None]] = []
            for mark in gone:
                kept = tuple(dict.fromkeys(moved.get(key, key) for key in mark.labels if moved.get(key, key) in stay))
                changed.append((mark, replace(mark, labels=kept) if kept else None))
                put_mark(session, *changed[-1])
            log = [(mark.text, mark.who, mark, after) for mark, after in changed]
            change = log_change(session, who, what, old, [*log, *make_marks(session, marks)])
            set_setting(session, "labels", {"labels": [asdict(label) for label in labels], "version": change})
            set_setting(session, "next key", max([next_key(session), *(label.key + 1 for label in labels)]))
            return read_labels(session)

    def new_key(self) -> int:
        """A key that no label had."""
        with self._write() as session:
            key = next_key(session)
            set_setting(session, "next key", key + 1)
            return key

    def mark(self, marks: Sequence[Mark], what: str, *, who: str) -> None:
        """Mark texts."""
        with self._write() as session:
            known = {label.key for label in read_labels(session, locked=True).labels}
            if not all(known.issuperset(mark.labels) for mark in marks):
                raise ChangedMeanwhileError("This label is no longer there; somebody has removed it.")
            log_change(session, who, what, None, make_marks(session, marks))

    def undo(self, who: str, kind: ChangeKind) -> Undone | None:
        """Undo a person's last change of labels, or of marks; returns what it was, None if there is none.

        A mark that was changed again since stays as it is. One that had a label that is gone loses it.
        """
        with self._write() as session:
            read_labels(session, locked=True)
            row = session.scalar(
                select(ChangeRow)
                .where(ChangeRow.undone.is_(False), ChangeRow.who == who, ChangeRow.kind == kind)
                .order_by(ChangeRow.id.desc())
                .limit(1)
            )
            if row is None:
                return None
            before = row.before
            if before.get("labels") is not None:
                if read_labels(session, locked=True).version != row.id:
                    raise ChangedMeanwhileError("Somebody has changed the labels since, so this cannot be undone.")
                set_setting(session, "labels", before["labels"])
            known, taken_back = {label.key for label in read_labels(session).labels}, []
            for text, person, old, made_at in before["marks"]:
                found = session.get(MarkRow, (text, person))
                own = None if found is None else mark_of(found)
                if (None if own is None else own.at.isoformat()) != made_at:
                    continue
                if own is not None:
                    taken_back.append(own)
                put_mark(session, own, None if old is None else mark_before(text, person, old, known))
            row.undone = True
            return Undone(row.what, tuple(taken_back))

    def changes(self, kind: ChangeKind, most: int = 50) -> list[Change]:
        """The last changes of labels, or of marks, newest first."""
        with self._read() as session:
            found = select(ChangeRow).where(ChangeRow.kind == kind).order_by(ChangeRow.id.desc()).limit(most)
            return [Change(row.id, row.who, zoned(row.at), row.what, row.undone) for row in session.scalars(found)]

    # -- runs ------------------------------------------------------------------------------------------------

    def start_run(self, kind: str, who: str) -> int:
        """Write down that a run has started; returns its number."""
        with self._write() as session:
            row = RunRow(kind=kind, who=who, started=now(), state="running", figures={})
            session.add(row)
            session.flush()
            return row.id

    def finish_run(self, run: int, state: str, figures: Mapping[str, Any], folder: str = "") -> None:
        """Write down how a run has ended."""
        with self._write() as session:
            session.execute(
                update(RunRow).where(RunRow.id == run).values(state=state, figures=dict(figures), folder=folder)
            )

    def runs(self) -> list[dict[str, Any]]:
        """All runs, newest first."""
        with self._read() as session:
            return [
                {name: getattr(row, name) for name in ("id", "kind", "who", "started", "state", "folder", "figures")}
                for row in session.scalars(select(RunRow).order_by(RunRow.id.desc()))
            ]


def _durable(connection: Any, _: Any) -> None:
    """What is committed survives a crash; readers do not wait for a writer."""
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=10000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _reason(error: SQLAlchemyError) -> str:
    return str(getattr(error, "orig", None) or error).splitlines()[0]


@contextmanager
def _plain_errors() -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        raise MaskMatchError(f"The database cannot be used: {_reason(error)}") from error
