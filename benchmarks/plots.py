"""Pictures for the pages of figures: curves over a logarithmic scale, dots on a line, marks of differing shapes."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10
from typing import TYPE_CHECKING

from maskmatch.evaluation.display import text_width
from maskmatch.evaluation.svg import COLUMN_WIDTH, text_at, title

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

COLOURS = ("#2166ac", "#c4561b", "#2e8b57", "#8e44ad", "#b8860b", "#17879c", "#b03060", "#5f6870", "#1d2226")
SHAPES = ("circle", "square", "diamond", "triangle", "cross")
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1d2226}.quiet{fill:#5f6870}.grid{stroke:#dfe3e1;fill:none}"
    ".frame{stroke:#5f6870;fill:none}.line{fill:none;stroke-width:1.8}"
)
ROUND = (1, 2, 5)
DECADES_WITH_STEPS = 2.5
"""An axis over fewer powers of ten also names the steps between them."""

WIDTH = 688.0
LEFT, TOP, PLOT_WIDTH, PLOT_HEIGHT = 76.0, 14.0, 560.0, 300.0


@dataclass(frozen=True)
class Axis:
    """An axis.

    Attributes:
        name: What it shows.
        label: How a value is written at a tick.
        logarithmic: Whether equal ratios are equally far apart.
    """

    name: str
    label: Callable[[float], str]
    logarithmic: bool = True

    def range(self, values: Sequence[float]) -> tuple[float, float]:
        """Bounds that hold all values and are easy to read; logarithms of them, if the axis is logarithmic.

        Example:
            >>> Axis("", str).range([8, 192]) == (log10(5), log10(200))
            True
        """
        if self.logarithmic:
            around = range(floor(log10(min(values))) - 1, ceil(log10(max(values))) + 2)
            round_ones = [factor * 10.0**power for power in around for factor in ROUND]
            low = max(value for value in round_ones if value <= min(values) * (1 + 1e-9))
            high = min(value for value in round_ones if value >= max(values) * (1 - 1e-9))
            return log10(low), log10(high if high > low else 10 * low)
        step = 0.05
        low, high = floor(min(values) / step) * step, ceil(max(values) / step) * step
        return low, max(high, low + step)

    def ticks(self, low: float, high: float) -> list[float]:
        """The values that are named."""
        if self.logarithmic:
            factors = ROUND if high - low < DECADES_WITH_STEPS else ROUND[:1]
            values = [factor * 10.0**power for power in range(floor(low) - 1, ceil(high) + 1) for factor in factors]
            return [value for value in values if low - 1e-9 <= log10(value) <= high + 1e-9]
        step = next(step for step in (0.01, 0.05, 0.1, 0.2, 0.5) if (high - low) / step <= 8 or step == 0.5)
        return [round(step * place, 4) for place in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]

    def place(self, value: float, low: float, high: float) -> float:
        """How far along the axis a value is, from 0 to 1."""
        found = log10(value) if self.logarithmic else value
        return (found - low) / (high - low)


def line_chart(name: str, series: Mapping[str, Sequence[tuple[float, float]]], across: Axis, up: Axis) -> str:
    """Curves with a mark at each point; their names stand below.

    Args:
        name: What a reader who cannot see the picture is told.
        series: The points of each curve.
        across: The horizontal axis.
        up: The vertical axis.
    """
    xs, ys = ([point[place] for points in series.values() for point in points] for place in (0, 1))
    x_range, y_range = across.range(xs), up.range(ys)
    parts = []
    for tick in across.ticks(*x_range):
        x = LEFT + PLOT_WIDTH * across.place(tick, *x_range)
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP}v{PLOT_HEIGHT}"/>')
        parts.append(text_at(x, TOP + PLOT_HEIGHT + 18, across.label(tick), "quiet", anchor="middle"))
    for tick in up.ticks(*y_range):
        y = TOP + PLOT_HEIGHT * (1 - up.place(tick, *y_range))
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}h{PLOT_WIDTH}"/>')
        parts.append(text_at(LEFT - 8, y + 4, up.label(tick), "quiet", anchor="end"))
    parts.append(f'<rect class="frame" x="{LEFT}" y="{TOP}" width="{PLOT_WIDTH}" height="{PLOT_HEIGHT}"/>')
    for number, (curve, points) in enumerate(series.items()):
        places = [
            (
                LEFT + PLOT_WIDTH * across.place(x, *x_range),
                TOP + PLOT_HEIGHT * (1 - up.place(y, *y_range)),
                f"{curve}, {across.label(x)}: {up.label(y)}",
            )
            for x, y in sorted(points)
        ]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in places)
        parts.append(f'<path class="line" stroke="{_colour(number)}" d="M{path}"/>')
        parts += [mark(number, x, y, tooltip) for x, y, tooltip in places]
    bottom = TOP + PLOT_HEIGHT + 38
    parts.append(text_at(LEFT + PLOT_WIDTH / 2, bottom, across.name, "quiet", anchor="middle"))
    middle = TOP + PLOT_HEIGHT / 2
    parts.append(
        f'<text class="quiet" text-anchor="middle" transform="translate(14 {middle}) rotate(-90)">{up.name}</text>'
    )
    names, height = _names(list(series), bottom + 14)
    return whole(name, [*parts, *names], WIDTH, height, colours=len(series))


def dot_chart(name: str, values: Mapping[str, float], axis: Axis) -> str:
    """A line for each name with a mark at its value, on one axis."""
    left, line = 16 + max(map(text_width, values)) * COLUMN_WIDTH, 24.0
    width = WIDTH + 140 - left
    low, high = axis.range(list(values.values()))
    bottom = TOP + line * len(values)
    parts = []
    for tick in axis.ticks(low, high):
        x = left + width * axis.place(tick, low, high)
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{bottom:.1f}"/>')
        parts.append(text_at(x, bottom + 18, axis.label(tick), "quiet", anchor="middle"))
    for place, (what, value) in enumerate(values.items()):
        y = TOP + line * (place + 0.5)
        parts.append(text_at(left - 12, y + 4, what, "name", anchor="end"))
        parts.append(f'<path class="grid" d="M{left:.1f} {y:.1f}h{width:.1f}"/>')
        number = 0 if what.startswith("maskmatch") else 1
        parts.append(mark(number, left + width * axis.place(value, low, high), y, f"{what}: {axis.label(value)}"))
    parts.append(text_at(left + width / 2, bottom + 38, axis.name, "quiet", anchor="middle"))
    return whole(name, parts, left + width + 40, bottom + 48, colours=2)


def mark(number: int, x: float, y: float, tooltip: str) -> str:
    """A mark of the shape and colour of this number."""
    style, name = f'class="m{number % len(COLOURS)}"', title(tooltip)
    shape = SHAPES[number % len(SHAPES)]
    if shape == "circle":
        return f'<circle {style} cx="{x:.1f}" cy="{y:.1f}" r="5">{name}</circle>'
    path = {
        "square": f"M{x - 4.5:.1f} {y - 4.5:.1f}h9v9h-9z",
        "diamond": f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z",
        "triangle": f"M{x:.1f} {y - 6:.1f}l6 10h-12z",
        "cross": f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8",
    }[shape]
    width = ' stroke-width="2.5"' if shape == "cross" else ""
    return f'<path {style}{width} d="{path}">{name}</path>'


def whole(name: str, parts: Sequence[str], width: float, height: float, colours: int) -> str:
    """A whole picture, a file of its own, with the styles of so many marks."""
    styles = "".join(f".m{number}{{fill:{colour};stroke:{colour}}}" for number, colour in enumerate(COLOURS[:colours]))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{name}"><style>{STYLE}{styles}</style>'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _names(names: Sequence[str], top: float) -> tuple[list[str], float]:
    """The marks with their names in rows, and where these end."""
    parts, x, y = [], LEFT, top + 8
    for number, name in enumerate(names):
        needed = 17 + text_width(name) * COLUMN_WIDTH + 18
        if x > LEFT and x + needed > WIDTH:
            x, y = LEFT, y + 22
        parts += [mark(number, x + 6, y, name), text_at(x + 17, y + 4, name, "name")]
        x += needed
    return parts, y + 18


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]
