"""The tables of a project: texts, labels, marks, and every change that was made to labels and marks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, DateTime, ForeignKey, Index, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """Base class of the tables."""


class TextRow(Base):
    """A text.

    Attributes:
        id: Its number in the project, from 0.
        content: The text, or a dict of the task's fields.
        plain: The text as one lower-case string, for search.
        columns: The row of the file that it came from.
        draw: A random number. The texts with the lowest ones are the random sample that accuracy is estimated on.
    """

    __tablename__ = "texts"
    id: Mapped[int] = mapped_column(primary_key=True)
    content: Mapped[Any] = mapped_column(JSON)
    plain: Mapped[str] = mapped_column(Text)
    columns: Mapped[dict[str, Any]] = mapped_column(JSON)
    draw: Mapped[int] = mapped_column(index=True)


class MarkRow(Base):
    """What somebody says of a text: its labels; none if no label fits. One per text and person.

    Attributes:
        text: The text.
        who: The person.
        labels: The keys of its labels.
        reason: Why the text was shown, see :mod:`maskmatch.workbench.queue`.
        at: When it was marked.
    """

    __tablename__ = "marks"
    text: Mapped[int] = mapped_column(ForeignKey("texts.id"), primary_key=True)
    who: Mapped[str] = mapped_column(String(200), primary_key=True)
    labels: Mapped[list[int]] = mapped_column(JSON)
    reason: Mapped[str] = mapped_column(String(40))
    at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class ChangeRow(Base):
    """A change of labels and marks, with what was there before, so that it can be undone.

    Attributes:
        id: Changes are undone in the reverse order of their ids.
        who: Who made it.
        at: When.
        what: What was done, in words.
        kind: "labels" or "marks".
        before: The labels, if they changed, and each mark that changed, before; and when the mark after it was made.
        undone: Whether it was undone.
    """

    __tablename__ = "changes"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    who: Mapped[str] = mapped_column(String(200))
    at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    what: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(String(10))
    before: Mapped[dict[str, Any]] = mapped_column(JSON)
    undone: Mapped[bool] = mapped_column(default=False)
    __table_args__ = (Index("changes_undone", "undone", "id"),)


class RunRow(Base):
    """A classifier that was made: names alone, adapted to the texts, or trained on marks.

    Attributes:
        id: Its number.
        kind: "names", "adapt" or "train".
        who: Who started it.
        started: When it started.
        state: "running", "done", "failed" or "cancelled".
        folder: The name of its folder in the project; empty for names alone.
        figures: Its figures: marks, accuracy on held-back marks, seconds, or what went wrong.
    """

    __tablename__ = "runs"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    kind: Mapped[str] = mapped_column(String(20))
    who: Mapped[str] = mapped_column(String(200))
    started: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    state: Mapped[str] = mapped_column(String(20))
    folder: Mapped[str] = mapped_column(String(200), default="")
    figures: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)


class SettingRow(Base):
    """A setting of the project: its labels, its task, the run that predicts."""

    __tablename__ = "settings"
    name: Mapped[str] = mapped_column(String(50), primary_key=True)
    value: Mapped[Any] = mapped_column(JSON)
