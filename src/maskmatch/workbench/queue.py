"""Which text to mark next: one drawn at random now and then, and otherwise the one that teaches most."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maskmatch.evaluation.intervals import wilson
from maskmatch.workbench.vectors import unit

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from maskmatch.evaluation.intervals import Interval
    from maskmatch.workbench.project import Project
    from maskmatch.workbench.records import Mark

RANDOM_EVERY = 4
"""Each fourth text is drawn at random: accuracy is estimated on these."""

POOL = 200
"""Among how many uncertain texts the one is chosen that is least like those that are marked."""

REASONS = {
    "random": "drawn at random, to estimate the accuracy",
    "uncertain": "the prediction is uncertain, and no similar text is marked",
    "rare": "its predicted label has few marks",
    "second look": "its mark differs from a confident prediction",
}
CONFIDENT = 0.95


@dataclass(frozen=True)
class Suggestion:
    """A text to mark, and why; ``undone``: its mark was taken back."""

    text: int
    reason: str
    undone: bool = False


@dataclass(frozen=True)
class Estimate:
    """The accuracy on a random sample of texts, less those that the classifier has learnt from.

    Attributes:
        right: How many of their predictions are right.
        count: How many there are.
        interval: The confidence interval.
    """

    right: int
    count: int
    interval: Interval


def suggest(project: Project, who: str, *, skipped: Collection[int] = ()) -> Suggestion | None:
    """The next text for a person; None if there is none left."""
    labels = project.labels
    predictions = project.engine.predictions(labels)
    if not len(predictions):
        return None
    marks = project.store.marks()
    taken = {mark.text for mark in marks if mark.who == who} | set(skipped)
    free = np.ones(len(predictions), bool)
    free[[text for text in taken if text < len(free)]] = False
    turn = sum(mark.who == who and mark.reason in REASONS for mark in marks) + len(skipped)
    if turn % RANDOM_EVERY == 0 or not free.any():  # texts that are not encoded yet, too: the sample is of all texts
        drawn = next((text for text in project.store.drawn() if text not in taken), None)
        return None if drawn is None else Suggestion(drawn, "random")
    if turn % RANDOM_EVERY == 2:
        second = _second_look(project, who, skipped)
        if second is not None:
            return Suggestion(second, "second look")
    counts = Counter(key for mark in marks for key in mark.labels)
    reason, candidates = "uncertain", np.flatnonzero(free)
    if turn % RANDOM_EVERY == 3:
        keys, texts = np.unique(predictions.keys[candidates], return_counts=True)
        rarest = min(zip(keys.tolist(), texts.tolist(), strict=True), key=lambda pair: (counts[pair[0]], -pair[1]))[0]
        reason, candidates = "rare", candidates[predictions.keys[candidates] == rarest]
    pool = candidates[np.argsort(predictions.margins[candidates], kind="stable")[:POOL]]
    marked = sorted({mark.text for mark in marks if mark.text < len(predictions)})
    return Suggestion(int(_least_alike(project, pool, marked)), reason)


def _least_alike(project: Project, pool: NDArray[np.int64], marked: list[int]) -> int:
    """The text of a pool that is least like all marked texts; the most uncertain one if there are none."""
    if not marked:
        return int(pool[0])
    vectors = project.engine.vectors
    nearest = (unit(vectors[pool]) @ unit(vectors[marked]).T).max(axis=1)
    return int(pool[np.argmin(nearest)])


def _second_look(project: Project, who: str, skipped: Collection[int]) -> int | None:
    """A text that somebody else has marked otherwise than a confident prediction says."""
    predictions = project.engine.predictions(project.labels)
    marks = project.store.marks()
    own = {mark.text for mark in marks if mark.who == who}
    for mark in marks:
        text = mark.text
        if text in own or text in skipped or text >= len(predictions) or mark.who == who:
            continue
        if predictions.probabilities[text] >= CONFIDENT and int(predictions.keys[text]) not in mark.labels:
            return text
    return None


def random_marks(project: Project) -> dict[int, Mark]:
    """The last mark of each text of the random sample: those up to the last one that was drawn, whoever chose them."""
    every = project.store.marks()
    marks = {mark.text: mark for mark in every}
    were_drawn = {mark.text for mark in every if mark.reason == "random"}  # whoever has marked them otherwise since
    left = len(were_drawn)
    found: dict[int, Mark] = {}
    for text in project.store.drawn():
        if not left:
            break
        if text in marks:
            found[text] = marks[text]
            left -= text in were_drawn
    return found


def judging_marks(project: Project) -> list[Mark]:
    """The marks of the random sample whose texts are encoded, and that the classifier has not learnt from."""
    encoded, seen = project.engine.encoded, project.learnt_from
    return [mark for text, mark in random_marks(project).items() if text < encoded and text not in seen]


def estimate(project: Project) -> Estimate | None:
    """The accuracy by the marks of a random sample that the classifier has not seen; None if there are none."""
    rows = judging_marks(project)
    if not rows:
        return None
    keys = project.engine.predictions(project.labels).keys
    right = sum(int(keys[mark.text]) in mark.labels for mark in rows)
    return Estimate(right, len(rows), wilson(right, len(rows)))


def similar_marked(project: Project, text: int, most: int = 3) -> list[tuple[int, float]]:
    """The marked texts that are most like a text, with their cosine similarity."""
    marked = sorted({mark.text for mark in project.store.marks() if mark.text < project.engine.encoded} - {text})
    if not marked or text >= project.engine.encoded:
        return []
    vectors = project.engine.vectors
    own, others = unit(vectors[[text]]), unit(vectors[marked])
    cosines = (others @ own.T)[:, 0]
    return [(marked[place], float(cosines[place])) for place in np.argsort(-cosines)[:most].tolist()]
