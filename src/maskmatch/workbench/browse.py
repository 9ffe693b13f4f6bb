"""Which texts a page shows: filtered and ordered by search, label, probability and marks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from maskmatch.evaluation.display import shorten
from maskmatch.workbench.records import plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from maskmatch.workbench.project import Project
    from maskmatch.workbench.records import Mark

Marked = Literal["all", "marked", "unmarked", "disagreement", "wrong"]
Order = Literal["file", "uncertain", "certain", "novel"]
MARKED: dict[Marked, str] = {
    "all": "all texts",
    "marked": "marked",
    "unmarked": "not marked",
    "disagreement": "people disagree",
    "wrong": "mark differs from prediction",
}
ORDERS: dict[Order, str] = {
    "file": "as in the file",
    "uncertain": "least certain first",
    "certain": "most certain first",
    "novel": "furthest from all labels first",
}


@dataclass(frozen=True)
class Filter:
    """What texts to show.

    Attributes:
        words: Words that the text contains.
        label: The key of the predicted label; None: any.
        marked: Which marks it has.
        least: The lowest probability of its label.
        most: The highest probability of its label.
        order: In which order.
    """

    words: str = ""
    label: int | None = None
    marked: Marked = "all"
    least: float = 0.0
    most: float = 1.0
    order: Order = "file"


@dataclass(frozen=True)
class ShownText:
    """A text as a page shows it.

    Attributes:
        id: Its number.
        text: The text.
        label: The key of its predicted label; None: it is not encoded yet.
        probability: The probability of that label.
        marks: What people say of it.
        others: The other columns of its row.
    """

    id: int
    text: str
    label: int | None
    probability: float
    marks: tuple[Mark, ...]
    others: Mapping[str, Any]


def said(text: str, labels: Sequence[str]) -> str:
    """What somebody says of a text, for the history.

    >>> said("Where is my money?", ["refund"])
    'marked “Where is my money?” as “refund”'
    """
    listed = " and ".join(f"“{label}”" for label in labels) or "none of the labels"
    return f"marked “{shorten(' '.join(text.split()), 60)}” as {listed}"


def find(project: Project, wanted: Filter) -> NDArray[np.int64]:
    """The numbers of the texts that a filter lets through, in its order."""
    predictions = project.engine.predictions(project.labels)
    count = len(predictions)
    needs_predictions = wanted.label is not None or wanted.least > 0 or wanted.most < 1 or wanted.order != "file"
    total = count if needs_predictions or wanted.marked == "wrong" else project.store.count
    kept = np.ones(total, bool)
    if wanted.label is not None:
        kept &= predictions.keys == wanted.label
    if wanted.least > 0 or wanted.most < 1:
        kept &= (predictions.probabilities >= wanted.least) & (predictions.probabilities <= wanted.most)
    if wanted.marked != "all":
        by_text: dict[int, list[Mark]] = {}
        for mark in project.store.marks():
            by_text.setdefault(mark.text, []).append(mark)
        if wanted.marked == "disagreement":
            chosen = [text for text, own in by_text.items() if len({frozenset(mark.labels) for mark in own}) > 1]
        elif wanted.marked == "wrong":
            chosen = [
                text
                for text, own in by_text.items()
                if text < count and int(predictions.keys[text]) not in own[-1].labels
            ]
        else:
            chosen = list(by_text)
        at = np.zeros(total, bool)
        at[[text for text in chosen if text < total]] = True
        kept &= ~at if wanted.marked == "unmarked" else at
    if wanted.words.strip():
        at = np.zeros(total, bool)
        at[[text for text in project.store.search(wanted.words.strip()) if text < total]] = True
        kept &= at
    found = np.flatnonzero(kept)
    if wanted.order != "file":
        if wanted.order == "novel":
            values = -project.engine.novelty(project.labels)[found]
        else:
            values = np.asarray(predictions.margins[found] * (1 if wanted.order == "uncertain" else -1), np.float64)
        found = found[np.argsort(values, kind="stable")]
    return found


def shown(project: Project, ids: NDArray[np.int64] | list[int]) -> list[ShownText]:
    """Some texts with their predictions and marks."""
    numbers = [int(each) for each in ids]
    predictions = project.engine.predictions(project.labels)
    marks: dict[int, list[Any]] = {}
    wanted = set(numbers)
    for mark in project.store.marks():
        if mark.text in wanted:
            marks.setdefault(mark.text, []).append(mark)
    return [
        ShownText(
            id=number,
            text=plain(content),
            label=int(predictions.keys[number]) if number < len(predictions) else None,
            probability=float(predictions.probabilities[number]) if number < len(predictions) else 0.0,
            marks=tuple(marks.get(number, ())),
            others=other_columns(content, columns),
        )
        for number, (content, columns) in zip(numbers, project.store.rows(numbers), strict=True)
    ]


def other_columns(content: Any, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a row that are not the text itself, and not empty.

    >>> other_columns("where is it", {"id": 7, "message": "where is it", "note": None})
    {'id': 7}
    """
    shown_anyway = [content] if isinstance(content, str) else list(content.values())
    return {name: value for name, value in columns.items() if value not in (None, "", *shown_anyway)}
