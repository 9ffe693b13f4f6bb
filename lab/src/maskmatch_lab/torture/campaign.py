"""A campaign: parts with many tries each, drawn from a fixed seed; every failure is kept with its try."""

from __future__ import annotations

import random
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from maskmatch_lab.torture.material import Material

FAILURES_KEPT = 20


class SkippedError(Exception):
    """A part cannot run here; the message says why."""


@dataclass
class Tally:
    """What the tries of a part came to.

    Attributes:
        part: The name of the part.
        wanted: How many tries to make.
        seed: The seed of all tries.
        deadline: When to stop, as ``time.monotonic()`` counts.
    """

    part: str
    wanted: int
    seed: int = 0
    deadline: float = float("inf")
    tries: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    failed: int = 0
    figures: dict[str, float] = field(default_factory=dict)

    def trials(self, wanted: int | None = None) -> Iterator[random.Random]:
        """A random generator per try, the same in every run, until there are enough tries or the time is over."""
        for number in range(self.wanted if wanted is None else wanted):
            if time.monotonic() > self.deadline:
                return
            self.tries += 1
            yield random.Random(f"{self.seed}/{self.part}/{number}")

    def share(self, part: float) -> int:
        """A share of the tries, at least one."""
        return max(1, round(self.wanted * part))

    def ended(self, outcome: str, *, unless: str | None = None) -> None:
        """A try ended, as it may or, if there is a reason against it, as it must not.

        Args:
            outcome: How it ended.
            unless: What is wrong with it; None: nothing.
        """
        if unless is not None:
            self.fail(unless)
        else:
            self.outcomes[outcome] += 1

    def fail(self, message: str) -> None:
        """A try ended as it must not."""
        self.failed += 1
        self.outcomes["failed"] += 1
        if len(self.failures) < FAILURES_KEPT:
            self.failures.append(f"try {self.tries}: {message[:400]}")

    @contextmanager
    def guarded(self, what: str) -> Iterator[None]:
        """Within it, an exception is a failure: everything that may be raised is caught before."""
        try:
            yield
        except Exception as error:
            self.fail(f"{what}: {type(error).__name__}: {error}")

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON."""
        return {
            "tries": self.tries,
            "planned": self.wanted,
            "failures": self.failed,
            "outcomes": dict(sorted(self.outcomes.items())),
            **({"figures": self.figures} if self.figures else {}),
            **({"first_failures": self.failures} if self.failures else {}),
        }


@dataclass(frozen=True)
class Part:
    """A part of the campaign.

    Attributes:
        name: Its name.
        promise: What must hold in every try.
        tries: The number of tries of the whole campaign.
        run: Makes the tries.
    """

    name: str
    promise: str
    tries: int
    run: Callable[[Material, Tally], None]


def run_part(part: Part, material: Material, *, scale: float, seed: int, seconds: float) -> dict[str, Any]:
    """Run a part and return its result.

    Args:
        part: The part.
        material: What is tortured.
        scale: The share of the tries of the whole campaign.
        seed: The seed.
        seconds: How long it may take.
    """
    started = time.monotonic()
    tally = Tally(part.name, max(1, round(part.tries * scale)), seed, started + seconds)
    result: dict[str, Any] = {"promise": part.promise}
    try:
        part.run(material, tally)
    except SkippedError as reason:
        return {**result, "tries": 0, "failures": 0, "skipped": str(reason)}
    except Exception as error:  # the other parts go on
        tally.fail(f"the part broke off: {type(error).__name__}: {error}")
    if time.monotonic() > tally.deadline:
        tally.fail(f"its time was over after {tally.tries} tries of {tally.wanted}")
    return {**result, "seed": seed, **tally.to_dict(), "seconds": round(time.monotonic() - started, 1)}
