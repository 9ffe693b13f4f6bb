"""Rounds: the work of several peers runs in turns, so that a busy moment of the machine affects all of them."""

from __future__ import annotations

import statistics
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from math import log
from typing import TYPE_CHECKING, Any

from maskmatch_lab.benchmarks.peers.process import PeerError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from maskmatch_lab.benchmarks.peers.process import Crew

PREPARING_LIMITS = 40
"""Preparation, which happens once, may take this many times the limit."""


@dataclass(frozen=True)
class Work:
    """A measurement to make.

    Attributes:
        curve: Its name; with a size, it is a point of the curve with this name.
        peer: The peer that runs it.
        kind: The kind of work.
        settings: The settings of the peer.
        units: The number of texts or steps per run; the result is the time per unit.
        size: The place on the curve.
    """

    curve: str
    peer: str
    kind: str
    settings: Mapping[str, Any]
    units: float = 1
    size: int = 0
    room: str = ""
    """The process of the peer; work that needs much memory has a process of its own."""
    asked: Sequence[Any] = ()
    """Texts whose predicted labels are asked for after all turns."""

    @property
    def name(self) -> str:
        """Its name, unique in a round."""
        return f"{self.curve}/{self.size}"

    @property
    def place(self) -> tuple[str, str]:
        """The process that runs it."""
        return self.peer, self.room


@dataclass
class Point:
    """The result of a measurement: the seconds of its runs, or the reason why there are none."""

    work: Work
    seconds: list[float] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    ended: str | None = None
    prepared_in: float = 0.0
    life: int = 0
    """The number of starts of the process when it was prepared."""
    answers: list[str] = field(default_factory=list)
    """The labels of the texts that were asked for."""

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON, with the median of the seconds per text or step."""
        data: dict[str, Any] = {"way": self.work.curve, "peer": self.work.peer, "size": self.work.size}
        if self.ended is not None:
            return {**data, "ended": self.ended}
        return {
            **data,
            "seconds": float(f"{statistics.median(self.seconds) / self.work.units:.4g}"),
            "runs": [round(taken, 4) for taken in self.seconds],
            "units": self.work.units,
            "prepared_in": round(self.prepared_in, 2),
            **self.facts,
        }


def alternate(crew: Crew, works: Sequence[Work], repeats: int, limit: float) -> list[Point]:
    """Prepare all measurements, run each once to warm up, then all in turns.

    A curve ends at the first size that fails, or whose run would take longer than the limit by extrapolation.

    Args:
        crew: The peers' processes.
        works: The measurements; the points of a curve in order of size.
        repeats: The number of turns.
        limit: The largest number of seconds per run.
    """
    points = [Point(work) for work in works]
    curves: dict[str, list[Point]] = {}
    for point in points:
        before = curves.setdefault(point.work.curve, [])
        point.ended = _reason_to_end(before, point.work.size, limit) if before else None
        if point.ended is None:
            _prepare(crew, point, limit)
        _log(point)
        before.append(point)
    living = [point for point in points if point.ended is None]
    for point in living:
        point.seconds = []  # without the warm-up
    for _ in range(repeats):
        for point in living:
            if point.ended is None:
                _turn(crew, point, limit)
    for point in living:
        _finish(crew, point)
    return points


def _reason_to_end(before: Sequence[Point], size: int, limit: float) -> str | None:
    """The reason why a curve ends before a size, or None."""
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
    """The seconds at a size, extrapolated from the last two sizes; after a single size, no growth is assumed.

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
        if point.seconds[-1] > limit / 100:  # the first run may include compilation
            _run(crew, point, limit)
    except PeerError as error:
        point.ended = str(error)


def _turn(crew: Crew, point: Point, limit: float) -> None:
    try:
        if crew.lives[point.work.place] != point.life:  # its process died during another measurement
            measured, point.seconds = point.seconds, []
            _prepare(crew, point, limit)
            point.seconds = measured
        if point.ended is None:
            _run(crew, point, limit)
    except PeerError as error:
        point.ended = str(error)


def _finish(crew: Crew, point: Point) -> None:
    """Ask for labels if they are wanted, and free the memory."""
    if crew.lives[point.work.place] != point.life:
        return
    with suppress(PeerError):  # the measurements stay valid
        if point.work.asked and point.ended is None:
            point.answers = _ask(crew, point.work, "predict", texts=list(point.work.asked))["labels"]
        _ask(crew, point.work, "drop")


def _run(crew: Crew, point: Point, limit: float) -> None:
    answer = _ask(crew, point.work, "run", longest=PREPARING_LIMITS * limit)
    point.seconds.append(answer.pop("seconds"))
    answer.pop("peak_megabytes", None)  # the process also has other work in memory
    point.facts = answer


def _ask(crew: Crew, work: Work, command: str, **arguments: Any) -> dict[str, Any]:
    return crew.ask(work.peer, command, room=work.room, name=work.name, **arguments)


def _log(point: Point) -> None:
    outcome = point.ended or f"prepared in {point.prepared_in:.1f} s, ran in {point.seconds[-1]:.2f} s"
    print(f"  {point.work.curve}, {point.work.size or 'one size'}: {outcome}", file=sys.stderr, flush=True)
