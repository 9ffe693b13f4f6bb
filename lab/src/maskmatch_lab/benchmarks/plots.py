"""Pictures for the pages of benchmarks: curves, dots, and scores of several methods by dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from maskmatch_lab import drawing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes

OURS = "maskmatch"


@dataclass(frozen=True)
class Axis:
    """An axis.

    Attributes:
        name: What it shows.
        label: How a value is written at a tick.
        logarithmic: Whether the axis is logarithmic.
    """

    name: str
    label: Callable[[float], str]
    logarithmic: bool = True

    def apply(self, axes: Axes, side: str) -> None:
        """Give the axis of a picture, ``"x"`` or ``"y"``, its scale, ticks and name."""
        axis = getattr(axes, f"{side}axis")
        if self.logarithmic:
            drawing.use_logarithm(axes, side, self.label)
        else:
            axis.set_major_formatter(lambda value, _: self.label(value))
        axis.set_label_text(drawing.readable(self.name))


def line_chart(name: str, series: Mapping[str, Sequence[tuple[float, float]]], across: Axis, up: Axis) -> str:
    """Curves with a marker at each point, and a legend below.

    Args:
        name: What the picture shows, for readers who cannot see it.
        series: The points of each curve.
        across: The horizontal axis.
        up: The vertical axis.
    """
    styles = drawing.styles_of(series)
    with drawing.style():
        figure = drawing.new_figure(7.6, 4.2 + 0.24 * -(-len(series) // 2))
        axes = figure.add_subplot()
        for curve, points in series.items():
            axes.plot(*zip(*sorted(points), strict=True), **styles[curve], label=drawing.readable(curve))
        across.apply(axes, "x")
        up.apply(axes, "y")
        figure.legend(loc="outside lower center", ncols=2)
        return drawing.as_svg(figure, name)


def dot_chart(name: str, values: Mapping[str, float], axis: Axis) -> str:
    """One row per name with a marker at its value; those of maskmatch have a colour of their own."""
    with drawing.style():
        figure = drawing.new_figure(8, drawing.row_height(len(values)))
        axes = figure.add_subplot()
        for place, (each, value) in enumerate(values.items()):
            axes.plot(value, place, "o", color=drawing.COLOURS[0] if each.startswith(OURS) else drawing.COLOURS[1])
            drawing.value_column(axes, place, drawing.readable(axis.label(value)))
        axis.apply(axes, "x")
        drawing.name_rows(axes, values)
        return drawing.as_svg(figure, name)


def score_chart(name: str, scores: Mapping[str, Mapping[str, tuple[float, float | None]]], across: str) -> str:
    """One row per dataset with a marker for each method, and a line of one standard deviation to both sides.

    Args:
        name: What the picture shows, for readers who cannot see it.
        scores: By dataset and method, the mean and the standard deviation over seeds, None for a single seed.
        across: What the scores are.
    """
    styles = drawing.styles_of(method for row in scores.values() for method in row)
    with drawing.style():
        figure = drawing.new_figure(8, drawing.row_height(len(scores)) + 0.22 * len(scores) + 0.3)
        axes = figure.add_subplot(xlabel=across, xlim=(0, 1))
        for place, row in enumerate(scores.values()):
            for number, (method, (mean, sd)) in enumerate(row.items()):
                y = place + 0.7 * ((number + 0.5) / len(row) - 0.5)  # one below the other, so that none hides another
                axes.errorbar(mean, y, xerr=sd, **styles[method], linestyle="", elinewidth=1.2, markersize=5)
        drawing.name_rows(axes, scores)
        for place in range(1, len(scores)):
            axes.axhline(place - 0.5, color=drawing.QUIET, linewidth=0.3)
        handles = [
            axes.plot([], [], linestyle="", **style, label=drawing.readable(each))[0] for each, style in styles.items()
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
        return drawing.as_svg(figure, name)
