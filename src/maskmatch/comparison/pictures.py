"""The pictures of a comparison: scores with their spread, and scores over the time of training."""

from __future__ import annotations

from math import ceil, floor, log10
from typing import TYPE_CHECKING

from maskmatch.evaluation.display import shorten_name, text_width
from maskmatch.evaluation.svg import COLUMN_WIDTH, picture, text_at, title

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from maskmatch.comparison.cells import Cell
    from maskmatch.comparison.results import TableRow

COLOURS = 10
"""How many methods have a colour of their own; further ones begin again."""

NAME_COLUMNS = 24


def colours_of(methods: Sequence[str]) -> dict[str, str]:
    """The style of each method, the same in all pictures."""
    return {method: f"m{place % COLOURS}" for place, method in enumerate(dict.fromkeys(methods))}


def score_dots(rows: Sequence[TableRow], cells: Mapping[str, Sequence[Cell]], colours: Mapping[str, str]) -> str:
    """For each regime and method a dot at the mean, a line of a standard deviation to both sides, a tick a seed.

    Args:
        rows: The rows of a dataset.
        cells: The cells of each row, by regime and method with a blank line between them.
        colours: The style of each method.
    """
    called = {row.method: shorten_name(row.method, NAME_COLUMNS) for row in rows}
    left = max(text_width(name) for name in called.values()) * COLUMN_WIDTH + 16
    width, line, head, top = 400.0, 20, 26, 8
    low, high = score_range([cell.figures.score for each in cells.values() for cell in each])
    parts: list[str] = []
    y = float(top)
    regime = None
    for row in rows:
        if row.regime != regime:
            regime = row.regime
            y += head
            parts.append(text_at(8, y - 8, regime, "group"))
        parts += _score_line(
            row, cells[f"{row.regime}\n{row.method}"], (left, y + line / 2, width), (low, high), colours
        )
        parts.append(text_at(left - 10, y + line / 2 + 4, called[row.method], "name", anchor="end", tooltip=row.method))
        y += line
    axis = _score_axis(left, top, width, y + 4 - top, (low, high))
    parts.append(text_at(left + width / 2, y + 40, rows[0].metric, "axis", anchor="middle"))
    return picture(left + width + 64, y + 48, f"Scores on {rows[0].dataset}", [*axis, *parts])


def seconds_and_scores(rows: Sequence[TableRow], colours: Mapping[str, str]) -> str:
    """The mean score of each method over the seconds that its training took, on a logarithmic scale."""
    trained = [row for row in rows if _mean(row, "training_seconds") > 0]
    if not trained:
        return ""
    left, top, width, height = 58.0, 14.0, 360.0, 260.0
    seconds = [max(_mean(row, "training_seconds"), 0.01) for row in trained]
    first, last = floor(log10(min(seconds))), ceil(log10(max(seconds)) + 1e-9)
    last = max(last, first + 1)
    low, high = score_range([_mean(row, "score") for row in trained])
    parts = []
    for power in range(first, last + 1):
        x = left + width * (power - first) / (last - first)
        parts.append(f'<path class="grid" d="M{x:.1f} {top}v{height}"/>')
        parts.append(text_at(x, top + height + 18, f"{10.0**power:,g}", "tick", anchor="middle"))
    for value in score_ticks(low, high):
        y = top + height * (high - value) / (high - low)
        parts.append(f'<path class="grid" d="M{left} {y:.1f}h{width}"/>')
        parts.append(text_at(left - 8, y + 4, f"{value:.2f}", "tick", anchor="end"))
    parts.append(f'<rect class="frame" x="{left}" y="{top}" width="{width}" height="{height}"/>')
    regimes = list(dict.fromkeys(row.regime for row in trained))
    for row, time in zip(trained, seconds, strict=True):
        x = left + width * (log10(time) - first) / (last - first)
        y = top + height * (high - _mean(row, "score")) / (high - low)
        tooltip = f"{row.method}, {row.regime}: {row.metric} {_mean(row, 'score'):.3f} after {time:,.1f} s"
        parts.append(_mark(x, y, regimes.index(row.regime), colours[row.method], tooltip))
    x = left
    if len(regimes) > 1:
        for place, regime in enumerate(regimes):
            parts.append(_mark(x + 6, top + height + 62, place, "plain", regime))
            parts.append(text_at(x + 18, top + height + 66, regime, "tick"))
            x += 18 + text_width(regime) * COLUMN_WIDTH + 16
    parts.append(text_at(left + width / 2, top + height + 38, "seconds of training", "axis", anchor="middle"))
    parts.append(
        f'<text class="axis" text-anchor="middle" transform="translate(14 {top + height / 2}) rotate(-90)">'
        f"{trained[0].metric}</text>"
    )
    return picture(
        max(left + width + 16, x),
        top + height + (74 if len(regimes) > 1 else 48),
        f"Training time and scores on {rows[0].dataset}",
        parts,
    )


def score_range(scores: Sequence[float]) -> tuple[float, float]:
    """A range that holds all scores, with bounds that are easy to read.

    Example:
        >>> score_range([0.62, 0.71]), score_range([0.0, 1.0])
        ((0.6, 0.75), (0.0, 1.0))
    """
    step = 0.05
    low = max(0.0, floor(min(scores) / step - 0.2) * step) if min(scores) >= 0 else floor(min(scores) / step) * step
    high = min(1.0, ceil(max(scores) / step + 0.2) * step)
    if high - low < 2 * step:
        low = max(0.0, high - 2 * step)
        high = low + 2 * step
    return round(low, 2), round(high, 2)


def score_ticks(low: float, high: float) -> list[float]:
    """At most seven values between the bounds, at equal steps.

    Example:
        >>> score_ticks(0.6, 0.75)
        [0.6, 0.65, 0.7, 0.75]
    """
    step = next(step for step in (0.05, 0.1, 0.2, 0.25, 0.5, 1.0) if (high - low) / step <= 6.001)
    first = ceil(low / step - 1e-9)
    return [round(place * step, 2) for place in range(first, floor(high / step + 1e-9) + 1)]


def _score_line(
    row: TableRow,
    cells: Sequence[Cell],
    place: tuple[float, float, float],
    bounds: tuple[float, float],
    colours: Mapping[str, str],
) -> list[str]:
    left, y, width = place
    low, high = bounds

    def x_of(value: float) -> float:
        return left + width * (min(max(value, low), high) - low) / (high - low)

    figure = row.figures["score"]
    assert figure is not None
    style = colours[row.method]
    parts = [
        f'<path class="{style} seed" d="M{x_of(cell.figures.score):.1f} {y - 5:.1f}v10">'
        f"{title(f'seed {cell.seed}: {cell.figures.score:.3f}')}</path>"
        for cell in cells
        if len(cells) > 1
    ]
    if figure.sd is not None:
        ends = x_of(figure.mean - figure.sd), x_of(figure.mean + figure.sd)
        parts.append(f'<path class="{style} spread" d="M{ends[0]:.1f} {y:.1f}H{ends[1]:.1f}"/>')
    tooltip = f"{row.method}, {row.regime}: {row.metric} {figure} over {len(cells)} seeds"
    parts.append(f'<circle class="{style}" cx="{x_of(figure.mean):.1f}" cy="{y:.1f}" r="5">{title(tooltip)}</circle>')
    parts.append(text_at(left + width + 12, y + 4, f"{figure.mean:.3f}", "tick"))
    return parts


def _score_axis(left: float, top: float, width: float, height: float, bounds: tuple[float, float]) -> list[str]:
    low, high = bounds
    parts = []
    for value in score_ticks(low, high):
        x = left + width * (value - low) / (high - low)
        parts.append(f'<path class="grid" d="M{x:.1f} {top}v{height:.1f}"/>')
        parts.append(text_at(x, top + height + 16, f"{value:.2f}", "tick", anchor="middle"))
    return parts


def _mark(x: float, y: float, shape: int, style: str, tooltip: str) -> str:
    """A mark of one of four shapes: circle, square, diamond, triangle."""
    paths = {
        1: f"M{x - 5:.1f} {y - 5:.1f}h10v10h-10z",
        2: f"M{x:.1f} {y - 7:.1f}l7 7l-7 7l-7 -7z",
        3: f"M{x:.1f} {y - 6:.1f}l6.5 11h-13z",
    }
    if shape % 4 == 0:
        return f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="5.5">{title(tooltip)}</circle>'
    return f'<path class="{style}" d="{paths[shape % 4]}">{title(tooltip)}</path>'


def _mean(row: TableRow, name: str) -> float:
    figure = row.figures[name]
    return 0.0 if figure is None else figure.mean
