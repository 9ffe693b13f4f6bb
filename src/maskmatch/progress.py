"""Progress on standard error: a bar on a terminal, a line every ten seconds in a log file, nothing if silenced."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FIRST_SECONDS = 2
"""Work that takes less time shows no progress."""

SECONDS_BETWEEN_LINES = 10

_verbose = ContextVar("maskmatch_verbose", default=True)
_purpose = ContextVar("maskmatch_purpose", default="")


def set_verbose(verbose: bool) -> None:
    """Show progress, or show none from now on."""
    _verbose.set(verbose)


@contextmanager
def showing_progress(shown: bool) -> Iterator[None]:
    """Progress within is shown only if this says so, and everything around it does too."""
    token = _verbose.set(_verbose.get() and shown)
    try:
        yield
    finally:
        _verbose.reset(token)


@contextmanager
def progress_for(purpose: str) -> Iterator[None]:
    """Progress within says what the work is for, such as "calibration, fold 1 of 3"."""
    token = _purpose.set(purpose)
    try:
        yield
    finally:
        _purpose.reset(token)


def progress_bar(total: int, task: str, unit: str = "it") -> Any:
    """A progress bar with ``update(count)``, ``close()`` and ``show(figures)``; use it in a ``with`` statement.

    Args:
        total: How many steps there are.
        task: What is done, such as "classifying".
        unit: What a step is called.
    """
    if not _verbose.get():
        return _NoProgress(total)
    if _purpose.get():
        task = f"{task} ({_purpose.get()})"
    if not sys.stderr.isatty() and "ipykernel" not in sys.modules:  # notebooks show bars, too
        return _ProgressLines(total, task)
    from tqdm.auto import tqdm

    class Bar(tqdm):  # type: ignore[misc]
        def show(self, figures: Mapping[str, Any]) -> None:
            self.set_postfix(figures, refresh=False)

    return Bar(total=total, desc=task, unit=unit, delay=FIRST_SECONDS, leave=False)


class _NoProgress:
    """Counts, and shows nothing."""

    def __init__(self, total: int) -> None:
        self.n, self.total = 0, total

    def __enter__(self) -> _NoProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def update(self, count: int = 1) -> None:
        """Count so many steps as done."""
        self.n += count

    def show(self, figures: Mapping[str, Any]) -> None:
        """Show figures beside the bar."""

    def close(self) -> None:
        """End the bar."""


class _ProgressLines(_NoProgress):
    """Writes whole lines, at most one every ten seconds: what a log file should hold."""

    def __init__(self, total: int, task: str) -> None:
        super().__init__(total)
        self._task, self._last = task, time.monotonic()
        self._figures, self._written = "", 0

    def update(self, count: int = 1) -> None:
        """Count so many steps as done; write a line if the last one is ten seconds old."""
        super().update(count)
        if time.monotonic() - self._last >= SECONDS_BETWEEN_LINES:
            self._write()

    def close(self) -> None:
        """Write the last line of work that wrote lines before."""
        if 0 < self._written < self.n:
            self._write()

    def _write(self) -> None:
        self._last, self._written = time.monotonic(), self.n
        sys.stderr.write(f"{self._task}: {self.n} of {self.total}{self._figures}\n")
        sys.stderr.flush()

    def show(self, figures: Mapping[str, Any]) -> None:
        """Show figures in the next line."""
        self._figures = "".join(
            f", {name} {value:.3g}" if isinstance(value, float) else f", {name} {value}"
            for name, value in figures.items()
        )
