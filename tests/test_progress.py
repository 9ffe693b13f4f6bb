"""Progress: a bar on a terminal, few lines in a log, nothing if silenced."""

from __future__ import annotations

import sys

import pytest

from maskmatch import progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def work(clock: list[float], steps: int, seconds: float) -> None:
    with progress.progress_bar(steps, "encoding texts") as bar:
        for _ in range(steps):
            clock[0] += seconds
            bar.update(1)
            bar.show({"loss": 0.5})


def test_a_log_gets_a_line_every_ten_seconds_at_most(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    work(clock, 1000, 0.125)  # 125 seconds
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 13
    assert lines[0] == "encoding texts: 80 of 1000, loss 0.5"
    assert lines[-1] == "encoding texts: 1000 of 1000, loss 0.5"


def test_short_work_writes_nothing(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    work(clock, 10, 0.5)
    assert capsys.readouterr().err == ""


def test_it_can_be_silenced(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with progress.showing_progress(False):
        work(clock, 1000, 1)
        with progress.showing_progress(True):  # what is around it decides
            work(clock, 1000, 1)
    assert capsys.readouterr().err == ""
    work(clock, 100, 1)
    assert capsys.readouterr().err


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress.progress_bar(3, "training", "step") as bar:
        bar.update(2)
        bar.show({"loss": 1.0})
        assert bar.n == 2


def test_a_purpose_is_shown(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress_for("calibration, fold 1 of 3"):
        work(clock, 100, 1)
    assert "encoding texts (calibration, fold 1 of 3): 10 of 100" in capsys.readouterr().err
