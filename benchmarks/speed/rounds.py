"""Rounds: works of several peers that are run in turns, so that a busy moment of the machine hits all of them."""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.peers.process import PeerError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.peers.process import Crew

RUN_LIMITS = 4
"""A curve also ends before a size at which a run would take so many times the limit, by proportion."""

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
    units: int = 1
    size: int = 0

    @property
    def name(self) -> str:
        """What tells it from others of a round."""
        return f"{self.curve}/{self.size}"


@dataclass
class Point:
    """What was found for a work: seconds of its runs, or why there are none."""

    work: Work
    seconds: list[float] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    ended: str | None = None
    prepared_in: float = 0.0
    life: int = 0
    """In which life of the peer's process it was prepared."""

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

    A curve ends behind the size at which a run took longer than the limit, and before one at which it would take far
    longer by proportion, or failed.

    Args:
        crew: The peers' processes.
        works: What to measure; the points of a curve by growing size.
        repeats: How many turns.
        limit: The most seconds of a run.
    """
    points = [Point(work) for work in works]
    last: dict[str, Point] = {}
    for point in points:
        before = last.get(point.work.curve)
        point.ended = None if before is None else _reason_to_end(before, point.work.size, limit)
        if point.ended is None:
            _prepare(crew, point, limit)
        _tell(point)
        last[point.work.curve] = point
    living = [point for point in points if point.ended is None]
    for point in living:
        point.seconds = []  # of warming up
    for _ in range(repeats):
        for point in living:
            if point.ended is None:
                _turn(crew, point, limit)
    for point in living:
        if crew.lives[point.work.peer] == point.life:
            crew.ask(point.work.peer, "drop", name=point.work.name)
    return points


def _reason_to_end(before: Point, size: int, limit: float) -> str | None:
    if before.ended is not None:
        return before.ended
    growth = size / max(1, before.work.size)
    run, preparing = before.seconds[-1], before.prepared_in
    if run > limit or run * growth > RUN_LIMITS * limit:
        return f"a run would take about {run * growth:.0f} s or more"
    if preparing * growth > PREPARING_LIMITS * limit:
        return f"preparing would take about {preparing * growth:.0f} s or more"
    return None


def _prepare(crew: Crew, point: Point, limit: float) -> None:
    work = point.work
    try:
        answer = crew.ask(
            work.peer,
            "prepare",
            name=work.name,
            kind=work.kind,
            settings=dict(work.settings),
            longest=PREPARING_LIMITS * limit,
        )
        point.prepared_in = answer["seconds"]
        point.life = crew.lives[work.peer]
        _run(crew, point, limit)
    except PeerError as error:
        point.ended = str(error)


def _turn(crew: Crew, point: Point, limit: float) -> None:
    try:
        if crew.lives[point.work.peer] != point.life:  # its process died over another work
            measured = point.seconds
            _prepare(crew, point, limit)
            point.seconds = measured
        if point.ended is None:
            _run(crew, point, limit)
    except PeerError as error:
        point.ended = str(error)


def _run(crew: Crew, point: Point, limit: float) -> None:
    answer = crew.ask(point.work.peer, "run", name=point.work.name, longest=PREPARING_LIMITS * limit)
    point.seconds.append(answer.pop("seconds"))
    answer.pop("peak_megabytes", None)  # of a process that holds more than this work
    point.facts = answer


def _tell(point: Point) -> None:
    told = point.ended or f"prepared in {point.prepared_in:.1f} s, ran in {point.seconds[-1]:.2f} s"
    print(f"  {point.work.curve}, {point.work.size or 'one size'}: {told}", file=sys.stderr, flush=True)
