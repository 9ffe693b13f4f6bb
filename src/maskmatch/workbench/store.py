"""The store of a project: what a page shows as done is in the database by then."""

from __future__ import annotations

import random
import threading
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, delete, event, func, insert, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from maskmatch.data.cells import json_value
from maskmatch.errors import MaskMatchError
from maskmatch.labels import Label, LabelSet
from maskmatch.workbench.schema import Base, ChangeRow, MarkRow, RunRow, SettingRow, TextRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Engine

FORMAT = 1
IMPORTED_AT_ONCE = 2_000
MOST_DRAW = 2**31 - 1


class ChangedMeanwhileError(MaskMatchError):
    """Somebody else has changed what an edit is based on."""


@dataclass(frozen=True)
class ProjectLabel:
    """A label of a project. Its key stays the same whatever it is called.

    Attributes:
        key: What marks and classifiers of the project call it.
        id: What predictions call it that leave the project; "" for the name.
        name: Its name.
        description: What it means.
        phrases: Other names.
        words: Its verbalizer, which the pages do not show.
        examples: Texts that have it, which the pages do not show.
    """

    key: int
    name: str
    id: Any = ""
    description: str = ""
    phrases: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    @classmethod
    def of(cls, key: int, label: Label) -> ProjectLabel:
        """A label with a key."""
        own = "" if label.id == label.name or label.id_is_name else label.id
        return cls(key, label.name, own, label.description, label.phrases, label.words, label.examples)

    def inside(self) -> Label:
        """The label as the project's classifiers have it."""
        return Label(self.key, self.name, self.description, self.phrases, self.words, self.examples)

    def outside(self) -> Label:
        """The label as it leaves the project."""
        id_ = self.name if self.id == "" else self.id
        return Label(id_, self.name, self.description, self.phrases, self.words, self.examples)


@dataclass(frozen=True)
class Labels:
    """The labels of a project, and the number of the change that made them."""

    labels: tuple[ProjectLabel, ...]
    version: int = 0

    @property
    def names(self) -> dict[int, str]:
        """The names by key."""
        return {label.key: label.name for label in self.labels}

    def find(self, key: int) -> ProjectLabel:
        """A label by its key."""
        found = next((label for label in self.labels if label.key == key), None)
        if found is None:
            raise ChangedMeanwhileError("This label is no longer there; somebody has removed it.")
        return found

    def inside(self) -> LabelSet:
        """The label set of the project's classifiers."""
        return LabelSet(tuple(label.inside() for label in self.labels))

    def outside(self) -> LabelSet:
        """The label set as it leaves the project."""
        return LabelSet(tuple(label.outside() for label in self.labels))


@dataclass(frozen=True)
class Mark:
    """What somebody said of a text."""

    text: int
    who: str
    labels: tuple[int, ...]
    reason: str = ""
    at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))


@dataclass(frozen=True)
class Change:
    """A change of labels or marks."""

    id: int
    who: str
    at: datetime
    what: str
    undone: bool


@dataclass(frozen=True)
class Undone:
    """A change that was undone: what it was, and the marks that it took back."""

    what: str
    marks: tuple[Mark, ...]


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

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _read(self) -> Iterator[Session]:
        with self._sessions() as session:
            yield session

    @contextmanager
    def _write(self) -> Iterator[Session]:
        """A transaction: all of it is there afterwards, or nothing."""
        with self._writing, self._sessions.begin() as session:
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
            _set(session, name, value)

    # -- texts -----------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """How many texts there are."""
        with self._read() as session:
            return session.scalar(select(func.count()).select_from(TextRow)) or 0

    def import_texts(
        self, rows: Iterable[tuple[Any, Mapping[str, Any]]], *, digest: str | None = None, source: str | None = None
    ) -> int | None:
        """Add texts with the columns that they came with, all or none.

        Args:
            rows: The texts and their columns.
            digest: What identifies them; if texts with this digest are there, nothing is added.
            source: The file that they came from.

        Returns:
            How many were added; None if they are there already.
        """
        iterator = iter(rows)
        with self._write() as session:
            if digest is not None and not _append(session, "imported", digest):
                return None
            if source is not None:
                _append(session, "sources", source)
            first = count = session.scalar(select(func.count()).select_from(TextRow)) or 0
            rng = random.Random(first)  # other numbers for each import
            while part := list(islice(iterator, IMPORTED_AT_ONCE)):
                session.execute(
                    insert(TextRow),
                    [
                        {
                            "id": count + place,
                            "content": content,
                            "plain": plain(content).lower().replace("\0", ""),  # PostgreSQL refuses it in text
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
            return _labels(session)

    def marks(self) -> list[Mark]:
        """All marks, oldest first."""
        with self._read() as session:
            rows = session.scalars(select(MarkRow).order_by(MarkRow.at, MarkRow.text, MarkRow.who))
            return [_mark(row) for row in rows]

    def set_labels(
        self,
        labels: Sequence[ProjectLabel],
        what: str,
        *,
        who: str,
        expected: int,
        moved: Mapping[int, int] | None = None,
    ) -> Labels:
        """Take other labels. Marks of labels that are gone lose them, or get the one that they moved to.

        Args:
            labels: The labels.
            what: What was done, in words.
            who: Who does it.
            expected: The version of the labels that this is based on.
            moved: The key that takes the marks of a key that is gone.
        """
        LabelSet(tuple(label.inside() for label in labels))  # raises if two read alike
        stay, moved = {label.key for label in labels}, dict(moved or {})
        with self._write() as session:
            old = _labels(session, locked=True)
            if old.version != expected:
                raise ChangedMeanwhileError("Somebody has changed the labels meanwhile; look at them again.")
            marks = [_mark(row) for row in session.scalars(select(MarkRow))]
            gone = [mark for mark in marks if not stay.issuperset(mark.labels)]
            changed: list[tuple[Mark, Mark | None]] = []
            for mark in gone:
                kept = tuple(dict.fromkeys(moved.get(key, key) for key in mark.labels if moved.get(key, key) in stay))
                changed.append((mark, replace(mark, labels=kept) if kept else None))
                _put(session, *changed[-1])
            change = _log(session, who, what, old, [(mark.text, mark.who, mark, after) for mark, after in changed])
            _set(session, "labels", {"labels": [asdict(label) for label in labels], "version": change})
            _set(session, "next key", max([_next_key(session), *(label.key + 1 for label in labels)]))
            return _labels(session)

    def new_key(self) -> int:
        """A key that no label had."""
        with self._write() as session:
            key = _next_key(session)
            _set(session, "next key", key + 1)
            return key

    def mark(self, marks: Sequence[Mark], what: str, *, who: str) -> None:
        """Mark texts."""
        with self._write() as session:
            known = {label.key for label in _labels(session, locked=True).labels}
            if not all(known.issuperset(mark.labels) for mark in marks):
                raise ChangedMeanwhileError("This label is no longer there; somebody has removed it.")
            before = [(mark.text, mark.who, session.get(MarkRow, (mark.text, mark.who))) for mark in marks]
            kept = [
                (text, person, None if row is None else _mark(row), mark)
                for (text, person, row), mark in zip(before, marks, strict=True)
            ]
            for _, _, old, mark in kept:  # a text that was drawn at random stays in the sample
                _put(session, old, mark if old is None or old.reason != "random" else replace(mark, reason="random"))
            _log(session, who, what, None, kept)

    def undo(self, who: str) -> Undone | None:
        """Undo the last change of a person that is not undone; returns what it was, None if there is none.

        A mark that was changed again since stays as it is. One that had a label that is gone loses it.
        """
        with self._write() as session:
            _labels(session, locked=True)
            row = session.scalar(
                select(ChangeRow)
                .where(ChangeRow.undone.is_(False), ChangeRow.who == who)
                .order_by(ChangeRow.id.desc())
                .limit(1)
            )
            if row is None:
                return None
            before = row.before
            if before.get("labels") is not None:
                if _labels(session, locked=True).version != row.id:
                    raise ChangedMeanwhileError("Somebody has changed the labels since, so this cannot be undone.")
                _set(session, "labels", before["labels"])
            known, taken_back = {label.key for label in _labels(session).labels}, []
            for text, person, old, made_at in before["marks"]:
                found = session.get(MarkRow, (text, person))
                own = None if found is None else _mark(found)
                if (None if own is None else own.at.isoformat()) != made_at:
                    continue
                if own is not None:
                    taken_back.append(own)
                _put(session, own, None if old is None else _before(text, person, old, known))
            row.undone = True
            return Undone(row.what, tuple(taken_back))

    def changes(self, most: int = 50) -> list[Change]:
        """The last changes, newest first."""
        with self._read() as session:
            rows = session.scalars(select(ChangeRow).order_by(ChangeRow.id.desc()).limit(most))
            return [Change(row.id, row.who, row.at, row.what, row.undone) for row in rows]

    # -- runs ------------------------------------------------------------------------------------------------

    def start_run(self, kind: str, who: str) -> int:
        """Write down that a run has started; returns its number."""
        with self._write() as session:
            row = RunRow(kind=kind, who=who, started=_now(), state="running", figures={})
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


def plain(content: Any) -> str:
    """A text as one string, for people and for search."""
    return content if isinstance(content, str) else " · ".join(str(value) for value in content.values())


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _durable(connection: Any, _: Any) -> None:
    """What is committed survives a crash; readers do not wait for a writer."""
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=10000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _reason(error: SQLAlchemyError) -> str:
    return str(getattr(error, "orig", None) or error).splitlines()[0]


def _set(session: Session, name: str, value: Any) -> None:
    row = session.get(SettingRow, name)
    if row is None:
        session.add(SettingRow(name=name, value=value))
    else:
        row.value = value
    session.flush()


def _append(session: Session, name: str, value: str) -> bool:
    """Append to a setting that is a list; returns whether it was not in it."""
    row = session.get(SettingRow, name, with_for_update=True)
    known: list[str] = [] if row is None else row.value
    _set(session, name, [*known, value])
    return value not in known


def _next_key(session: Session) -> int:
    row = session.get(SettingRow, "next key")
    return 1 if row is None else int(row.value)


def _labels(session: Session, *, locked: bool = False) -> Labels:
    """The labels; if ``locked``, no other process changes them before this transaction ends."""
    row = session.get(SettingRow, "labels", with_for_update=locked)
    if row is None:
        return Labels(())
    rows: list[dict[str, Any]] = [
        {name: tuple(part) if isinstance(part, list) else part for name, part in each.items()}
        for each in row.value["labels"]
    ]
    return Labels(tuple(ProjectLabel(**each) for each in rows), row.value["version"])


def _mark(row: MarkRow) -> Mark:
    # SQLite drops the zone; PostgreSQL gives that of its session.
    at = row.at.astimezone(timezone.utc) if row.at.tzinfo else row.at.replace(tzinfo=timezone.utc)
    return Mark(row.text, row.who, tuple(row.labels), row.reason, at)


def _put(session: Session, old: Mark | None, new: Mark | None) -> None:
    """Replace a mark; None: there is none."""
    if old is not None:
        session.execute(delete(MarkRow).where(MarkRow.text == old.text, MarkRow.who == old.who))
    if new is not None:
        session.execute(
            insert(MarkRow).values(text=new.text, who=new.who, labels=list(new.labels), reason=new.reason, at=new.at)
        )


def _before(text: int, person: str, old: Mapping[str, Any], known: set[int]) -> Mark | None:
    """A mark as it was before a change, less labels that are gone; None if it had no others."""
    labels = tuple(key for key in old["labels"] if key in known)
    if old["labels"] and not labels:
        return None
    return Mark(text, person, labels, old["reason"], datetime.fromisoformat(old["at"]))


def _log(
    session: Session,
    who: str,
    what: str,
    labels: Labels | None,
    marks: Sequence[tuple[int, str, Mark | None, Mark | None]],
) -> int:
    """Write down a change, with marks before and after it; returns its number."""
    before: dict[str, Any] = {
        "labels": None
        if labels is None
        else {"labels": [asdict(label) for label in labels.labels], "version": labels.version},
        "marks": [
            [
                text,
                person,
                None if old is None else {"labels": list(old.labels), "reason": old.reason, "at": old.at.isoformat()},
                None if new is None else new.at.isoformat(),  # edits of labels leave it, so it identifies the mark
            ]
            for text, person, old, new in marks
        ],
    }
    row = ChangeRow(who=who, at=_now(), what=what, before=before, undone=False)
    session.add(row)
    session.flush()
    return row.id
