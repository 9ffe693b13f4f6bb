"""The pictures of docs/results/speed.md, and how times and sizes are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskmatch_lab.benchmarks.plots import Axis, dot_chart, line_chart

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def training_picture(rows: Sequence[Mapping[str, Any]], dataset: str) -> str:
    """Accuracy over the seconds of training."""
    series: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["dataset"] == dataset:
            series.setdefault(row["way"], []).append((max(row["seconds"], 1e-3), row["accuracy"]))
    accuracy = Axis("accuracy", lambda value: f"{value:.2f}", logarithmic=False)
    return line_chart(f"Accuracy over seconds of training on {dataset}", series, _seconds("training time"), accuracy)


def prediction_picture(points: Sequence[Mapping[str, Any]]) -> str:
    """Texts per second of each library."""
    values = {point["way"]: 1 / point["seconds"] for point in points if "seconds" in point}
    axis = Axis("texts per second", lambda value: f"{value:,.3g}" if value < 1000 else f"{value:,.0f}")
    return dot_chart("Texts per second", values, axis)


def curve_picture(heading: str, across: str, points: Sequence[Mapping[str, Any]]) -> str:
    """Seconds per step or per text over a size."""
    what = "per step" if "step" in heading else "per text"
    return line_chart(heading, _series(points, "seconds"), _count(across), _seconds(f"time {what}"))


def memory_picture(heading: str, across: str, points: Sequence[Mapping[str, Any]]) -> str:
    """Peak memory over a size."""
    return line_chart(
        f"{heading}: memory", _series(points, "megabytes"), _count(across), Axis("peak memory", megabytes)
    )


def _series(points: Sequence[Mapping[str, Any]], field: str) -> dict[str, list[tuple[float, float]]]:
    series: dict[str, list[tuple[float, float]]] = {}
    for point in points:
        if field in point:
            series.setdefault(point["way"], []).append((point["size"], point[field]))
    return series


def _count(name: str) -> Axis:
    return Axis(name, lambda value: f"{value:,.0f}")


def _seconds(name: str) -> Axis:
    return Axis(name, seconds)


def seconds(value: float) -> str:
    """A time as it is read most easily.

    Example:
        >>> seconds(0.00012), seconds(0.25), seconds(12), seconds(1500)
        ('0.12 ms', '250 ms', '12 s', '1,500 s')
    """
    if value >= 1:
        return f"{value:.3g} s" if value < 100 else f"{value:,.0f} s"
    return f"{1000 * value:.3g} ms"


def megabytes(value: float) -> str:
    """A size of memory as it is read most easily.

    Example:
        >>> megabytes(512), megabytes(2048)
        ('512 MB', '2.0 GB')
    """
    return f"{value:.0f} MB" if value < 1000 else f"{value / 1024:.1f} GB"
