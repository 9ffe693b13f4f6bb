"""What the store does within a transaction: settings, labels, marks, and the log of changes."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert

from maskmatch.workbench.records import Labels, Mark, ProjectLabel, plain
from maskmatch.workbench.schema import ChangeRow, MarkRow, SettingRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.orm import Session


def now() -> datetime:
    """The time of now, with its zone."""
    return datetime.now(timezone.utc)


def set_setting(session: Session, name: str, value: Any) -> None:
    """Change a setting of the project."""
    row = session.get(SettingRow, name)
    if row is None:
        session.add(SettingRow(name=name, value=value))
    else:
        row.value = value
    session.flush()


def append_setting(session: Session, name: str, value: Any) -> bool:
    """Append to a setting that is a list, unless it is in it; returns whether it was not."""
    row = session.get(SettingRow, name, with_for_update=True)
    known: list[Any] = [] if row is None else row.value
    if value in known:
        return False
    set_setting(session, name, [*known, value])
    return True


def next_key(session: Session) -> int:
    """A key that no label had."""
    row = session.get(SettingRow, "next key")
    return 1 if row is None else int(row.value)


def read_labels(session: Session, *, locked: bool = False) -> Labels:
    """The labels; if ``locked``, no other process changes them before this transaction ends."""
    row = session.get(SettingRow, "labels", with_for_update=locked)
    if row is None:
        return Labels(())
    rows: list[dict[str, Any]] = [
        {name: tuple(part) if isinstance(part, list) else part for name, part in each.items()}
        for each in row.value["labels"]
    ]
    return Labels(tuple(ProjectLabel(**each) for each in rows), row.value["version"])


def mark_of(row: MarkRow) -> Mark:
    """The mark in a row."""
    return Mark(row.text, row.who, tuple(row.labels), row.reason, zoned(row.at))


def zoned(at: datetime) -> datetime:
    """A time with its zone: SQLite drops it, PostgreSQL gives that of its session."""
    return at.astimezone(timezone.utc) if at.tzinfo else at.replace(tzinfo=timezone.utc)


def make_marks(session: Session, marks: Sequence[Mark]) -> list[tuple[int, str, Mark | None, Mark | None]]:
    """Make marks; returns each with what was there before."""
    made: list[tuple[int, str, Mark | None, Mark | None]] = []
    for mark in marks:
        row = session.get(MarkRow, (mark.text, mark.who))
        old = None if row is None else mark_of(row)
        # A text that was drawn at random stays in the sample.
        new = mark if old is None or old.reason != "random" else replace(mark, reason="random")
        put_mark(session, old, new)
        made.append((mark.text, mark.who, old, new))
    return made


def searched(content: Any, columns: Mapping[str, Any]) -> str:
    """What search looks through: the text and all other columns, in lower case."""
    others = (str(value) for value in columns.values() if value is not None and value != content)
    return " ".join([plain(content), *others]).lower().replace("\0", "")  # PostgreSQL refuses NUL in text


def put_mark(session: Session, old: Mark | None, new: Mark | None) -> None:
    """Replace a mark; None: there is none."""
    if old is not None:
        session.execute(delete(MarkRow).where(MarkRow.text == old.text, MarkRow.who == old.who))
    if new is not None:
        session.execute(
            insert(MarkRow).values(text=new.text, who=new.who, labels=list(new.labels), reason=new.reason, at=new.at)
        )


def mark_before(text: int, person: str, old: Mapping[str, Any], known: set[int]) -> Mark | None:
    """A mark as it was before a change, less labels that are gone; None if it had no others."""
    labels = tuple(key for key in old["labels"] if key in known)
    if old["labels"] and not labels:
        return None
    return Mark(text, person, labels, old["reason"], datetime.fromisoformat(old["at"]))


def log_change(
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
    kind = "marks" if labels is None else "labels"
    row = ChangeRow(who=who, at=now(), what=what, kind=kind, before=before, undone=False)
    session.add(row)
    session.flush()
    return row.id
