"""Rounds: works of several peers that are run in turns, so that a busy moment of the machine hits all of them."""

from __future__ import annotations

import statistics
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from math import log
from typing import TYPE_CHECKING, Any

from benchmarks.peers.process import PeerError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.peers.process import Crew

PREPARING_LIMITS = 40
"""Preparing may take so many times the limit: it is done once."""


@dataclass(frozen=True)
class Work:
    """Something to measure.

    Attributes:
        curve: What it is called; with a size, a point of the curve of this name.
        peer: Who does it.
        kind: What is done.
        settings: What the peer needs to know.
        units: How many texts or steps a run is, to tell the seconds of one.
        size: The place on the curve.
    """

    curve: str
    peer: str
    kind: str
    settings: Mapping[str, Any]
    units: float = 1
    size: int = 0
    room: str = ""
    """Which process of the peer does it: what takes much memory has one of its own."""
    asked: Sequence[Any] = ()
    """Texts that are predicted once more after all turns, for their labels."""

    @property
    def name(self) -> str:
        """What tells it from others of a round."""
        return f"{self.curve}/{self.size}"

    @property
    def place(self) -> tuple[str, str]:
        """The process that does it."""
        return self.peer, self.room


@dataclass
class Point:
    """What was found for a work: seconds of its runs, or why there are none."""

    work: Work
    seconds: list[float] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    ended: str | None = None
    prepared_in: float = 0.0
    life: int = 0
    """In which life of the process it was prepared."""
    answers: list[str] = field(default_factory=list)
    """The labels of the texts that were asked for."""

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON, with the median of the seconds of one text or step."""
        found: dict[str, Any] = {"way": self.work.curve, "peer": self.work.peer, "size": self.work.size}
        if self.ended is not None:
            return {**found, "ended": self.ended}
        return {
            **found,
            "seconds": float(f"{statistics.median(self.seconds) / self.work.units:.4g}"),
            "runs": [round(taken, 4) for taken in self.seconds],
            "units": self.work.units,
            "prepared_in": round(self.prepared_in, 2),
            **self.facts,
        }


def alternate(crew: Crew, works: Sequence[Work], repeats: int, limit: float) -> list[Point]:
    """Prepare all works, run each once to warm up, then all in turns.

    A curve ends before the size at which a run would take longer than the limit, if its seconds go on growing as they
    did, or at which it failed.

    Args:
        crew: The peers' processes.
        works: What to measure; the points of a curve by growing size.
        repeats: How many turns.
        limit: The most seconds of a run.
    """
    points = [Point(work) for work in works]
    curves: dict[str, list[Point]] = {}
    for point in points:
        before = curves.setdefault(point.work.curve, [])
        point.ended = _reason_to_end(before, point.work.size, limit) if before else None
        if point.ended is None:
            _prepare(crew, point, limit)
        _tell(point)
        before.append(point)
    living = [point for point in points if point.ended is None]
    for point in living:
        point.seconds = []  # of warming up
    for _ in range(repeats):
        for point in living:
            if point.ended is None:
                _turn(crew, point, limit)
    for point in living:
        _finish(crew, point)
    return points


def _reason_to_end(before: Sequence[Point], size: int, limit: float) -> str | None:
    """Why a curve ends before a size, if it does."""
    if before[-1].ended is not None:
        return before[-1].ended
    sizes = [point.work.size for point in before]
    run = expected(sizes, [point.seconds[-1] for point in before], size)
    if run > limit:
        return f"a run would take about {run:.0f} s"
    preparing = expected(sizes, [point.prepared_in for point in before], size)
    if preparing > PREPARING_LIMITS * limit:
        return f"preparing would take about {preparing:.0f} s"
    return None


def expected(sizes: Sequence[int], seconds: Sequence[float], size: int) -> float:
    """The seconds at a size: they go on growing as between the last two sizes; after one, nothing is known of growth.

    Example:
        >>> expected([10], [1.0], 100), expected([10, 100], [1.0, 1.0], 1000), expected([1, 2], [1.0, 4.0], 4)
        (1.0, 1.0, 16.0)
    """
    power = 0.0
    if len(sizes) > 1:
        power = max(0.0, log(max(seconds[-1], 1e-6) / max(seconds[-2], 1e-6)) / log(sizes[-1] / sizes[-2]))
    return float(seconds[-1] * (size / sizes[-1]) ** power)


def _prepare(crew: Crew, point: Point, limit: float) -> None:
    work = point.work
    try:
        settings, longest = dict(work.settings), PREPARING_LIMITS * limit
        answer = _ask(crew, work, "prepare", kind=work.kind, settings=settings, longest=longest)
        point.prepared_in = answer["seconds"]
        point.life = crew.lives[work.place]
        _run(crew, point, limit)
        if point.seconds[-1] > limit / 100:  # a first run may have compiled things, which says nothing of further ones
            _run(crew, point, limit)
    except PeerError as error:
        point.ended = str(error)


def _turn(crew: Crew, point: Point, limit: float) -> None:
    try:
        if crew.lives[point.work.place] != point.life:  # its process died over another work
            measured, point.seconds = point.seconds, []
            _prepare(crew, point, limit)
            point.seconds = measured
        if point.ended is None:
            _run(crew, point, limit)
    except PeerError as error:
        point.ended = str(error)


def _finish(crew: Crew, point: Point) -> None:
    """Ask for labels, if they are wanted, and free the memory."""
    if crew.lives[point.work.place] != point.life:
        return
    with suppress(PeerError):  # what was measured holds
        if point.work.asked and point.ended is None:
            point.answers = _ask(crew, point.work, "predict", texts=list(point.work.asked))["labels"]
        _ask(crew, point.work, "drop")


def _run(crew: Crew, point: Point, limit: float) -> None:
    answer = _ask(crew, point.work, "run", longest=PREPARING_LIMITS * limit)
    point.seconds.append(answer.pop("seconds"))
    answer.pop("peak_megabytes", None)  # of a process that holds more than this work
    point.facts = answer


def _ask(crew: Crew, work: Work, command: str, **arguments: Any) -> dict[str, Any]:
    return crew.ask(work.peer, command, room=work.room, name=work.name, **arguments)


def _tell(point: Point) -> None:
    told = point.ended or f"prepared in {point.prepared_in:.1f} s, ran in {point.seconds[-1]:.2f} s"
    print(f"  {point.work.curve}, {point.work.size or 'one size'}: {told}", file=sys.stderr, flush=True)
