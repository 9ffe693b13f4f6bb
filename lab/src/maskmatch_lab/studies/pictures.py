"""The pictures of studies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from maskmatch.evaluation.display import shorten_name
from maskmatch_lab import drawing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from maskmatch_lab.studies.rank_correlation import RankCorrelation
    from maskmatch_lab.studies.study import Evidence

NAME_COLUMNS = 60
LEAST_RANGE = 0.08
"""The range of accuracies that lines are shown in at least."""

LOGARITHM_FROM = 20
"""From this ratio of the largest to the smallest value on, the vertical axis is logarithmic."""

LEAST_WIDTH = 7.0
"""In inches; the line below dots needs so much."""

LINES_ACROSS = 3
"""How many panels of lines stand side by side."""


@dataclass(frozen=True)
class Panel:
    """A part of a picture.

    Attributes:
        regime: The regime that it shows.
        heading: Its title; the regime if it is empty.
        datasets: The datasets that it shows, with the variants that ran on all of them; None: all datasets, and
            variants that ran on some of them too.
    """

    regime: str
    heading: str = ""
    datasets: tuple[str, ...] | None = None


def dot_plot(
    evidence: Evidence,
    panels: Sequence[Panel],
    names: Sequence[str],
    reference: str,
    *,
    called: Mapping[str, str] | None = None,
) -> str:
    """One row per variant: its mean accuracy over datasets, with the interval of its difference from the reference.

    Args:
        evidence: The cells to show.
        panels: The regimes, side by side; those in which none of the variants ran are left out.
        names: The variants, in their order.
        reference: The variant that the others are compared with: a vertical line.
        called: How to call variants, if not by their names.
    """
    shown = {
        panel: own
        for panel in panels
        if (own := {name: row for name in names if (row := _row(evidence, panel, name, reference)) is not None})
    }
    if not shown:
        return ""
    rows = [name for name in names if any(name in own for own in shown.values())]
    labels = [shorten_name((called or {}).get(name, name), NAME_COLUMNS) for name in rows]
    with drawing.style():
        width = 0.085 * max(map(len, labels)) + 3.1 * len(shown) + 0.6
        figure = drawing.new_figure(max(width, LEAST_WIDTH), drawing.row_height(len(rows)) + 0.3)
        grid = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
        for axes, (panel, own) in zip(grid, shown.items(), strict=True):
            _draw_dots(axes, rows, own, reference)
            axes.set_title(drawing.readable(panel.heading or panel.regime))
            axes.set_xlabel("accuracy" + (", mean over datasets" if _datasets_in(own) > 1 else ""))
        drawing.name_rows(grid[0], labels)
        for axes in grid[1:]:
            axes.tick_params(axis="y", length=0)
            axes.spines["left"].set_visible(False)
        what = drawing.readable((called or {}).get(reference, reference))
        caption = f"Bars: 95 % interval of the difference from “{what}” (paired bootstrap over test rows)."
        figure.supxlabel(caption, fontsize=8.5, color=drawing.QUIET)
        return drawing.as_svg(figure, f"Accuracy, {', '.join(panel.heading or panel.regime for panel in shown)}")


@dataclass(frozen=True)
class _Row:
    """A variant in a panel: its accuracy, the interval of its difference, and on how many datasets it ran."""

    accuracy: float
    below: float
    above: float
    datasets: int


def _row(evidence: Evidence, panel: Panel, name: str, reference: str) -> _Row | None:
    shown = list(evidence.datasets) if panel.datasets is None else panel.datasets
    accuracy = evidence.comparison.accuracy(name, panel.regime, shown)
    if accuracy is None:
        return None
    ran = [data for data in shown if evidence.comparison.accuracy(name, panel.regime, [data]) is not None]
    if panel.datasets is not None and len(ran) < len(shown):
        return None
    result = None if name == reference else evidence.comparison.difference(name, reference, panel.regime, shown)
    if result is None:
        return _Row(accuracy, 0.0, 0.0, len(ran))
    return _Row(accuracy, *_distances(result.low, result.difference, result.high), len(ran))


def _distances(low: float, value: float, high: float) -> tuple[float, float]:
    """How far the ends of an interval are from its value; rounding may put an end on the wrong side."""
    return max(0.0, value - low), max(0.0, high - value)


def _draw_dots(axes: Axes, names: Sequence[str], rows: Mapping[str, _Row], reference: str) -> None:
    if reference in rows:
        axes.axvline(rows[reference].accuracy, color=drawing.QUIET, linewidth=1, linestyle="--")
    every = _datasets_in(rows)
    for name, row in rows.items():
        place, colour = names.index(name), drawing.INK if name == reference else drawing.COLOURS[0]
        axes.errorbar(row.accuracy, place, xerr=[[row.below], [row.above]], fmt="o", color=colour, elinewidth=1.6)
        some = "" if row.datasets == every else f" ({row.datasets} of {every})"
        drawing.value_column(axes, place, f"{row.accuracy:.3f}{some}")
    axes.margins(x=0.08)


def _datasets_in(rows: Mapping[str, _Row]) -> int:
    return max(row.datasets for row in rows.values())


@dataclass(frozen=True)
class Lines:
    """A panel of lines.

    Attributes:
        heading: What it shows.
        lines: By name, the value at each place.
        up: What the values are.
    """

    heading: str
    lines: Mapping[str, Mapping[float, float]]
    up: str = "accuracy"


def line_plot(
    panels: Sequence[Lines], across: str, *, ticks: Mapping[float, str] | None = None, logarithmic: bool = False
) -> str:
    """Lines through the points of each name, in one panel or several that share a legend.

    Args:
        panels: The panels; those without points are left out.
        across: What the places are.
        ticks: What to write below places; None: the places themselves.
        logarithmic: Whether the horizontal axis is logarithmic.
    """
    shown = [(panel, {name: dict(sorted(own.items())) for name, own in panel.lines.items() if own}) for panel in panels]
    shown = [(panel, lines) for panel, lines in shown if lines]
    if not shown:
        return ""
    styles = drawing.styles_of(name for _, lines in shown for name in lines)
    columns = min(LINES_ACROSS, len(shown))
    count = -(-len(shown) // columns)
    with drawing.style():
        figure = drawing.new_figure(
            6.4 if columns == 1 else 3.6 * columns, 3.4 * count + 0.25 * -(-len(styles) // columns)
        )
        grid = figure.subplots(count, columns, squeeze=False).flat
        for axes, (panel, lines) in zip(grid, shown, strict=False):
            for name, points in lines.items():
                axes.plot(list(points), list(points.values()), **styles[name], clip_on=False)
            axes.set_title(drawing.readable(panel.heading))
            axes.set_xlabel(across)
            axes.set_ylabel(panel.up)
            _fit_values(axes, panel.up)
            if logarithmic:
                drawing.use_logarithm(axes, "x")
            else:
                places = sorted({place for own in lines.values() for place in own})
                axes.set_xticks(places, [(ticks or {}).get(place, f"{place:,g}") for place in places])
        for axes in list(grid)[len(shown) :]:
            axes.remove()
        handles = [
            figure.axes[0].plot([], [], **style, label=drawing.readable(name))[0] for name, style in styles.items()
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=2 if columns == 1 else columns)
        return drawing.as_svg(figure, "; ".join(panel.heading for panel, _ in shown))


def _fit_values(axes: Axes, what: str) -> None:
    """A vertical axis that does not make small differences look large, and keeps very different values apart."""
    low, high = axes.get_ylim()
    if what == "accuracy":
        missing = max(0.0, LEAST_RANGE - (high - low)) / 2
        axes.set_ylim(low - missing, high + missing)
    elif max(axes.yaxis.get_data_interval()) > LOGARITHM_FROM * min(axes.yaxis.get_data_interval()):
        drawing.use_logarithm(axes, "y")
    else:
        axes.set_ylim(0, high)


def interval_plot(correlations: Mapping[str, RankCorrelation | None], heading: str, wanted: float) -> str:
    """One row per score: its rank correlation with its 95 % interval, and the value that is wanted as a line."""
    known = {name: each for name, each in correlations.items() if each is not None}
    if not known:
        return ""
    with drawing.style():
        figure = drawing.new_figure(7, drawing.row_height(len(known)) + 0.3)
        axes = figure.add_subplot(
            title=drawing.readable(heading),
            xlabel=f"rank correlation with its 95 % interval; dashed: the wanted {wanted:g}",
        )
        axes.set_xlim(-1, 1.02)
        axes.axvline(0, color=drawing.QUIET, linewidth=1)
        axes.axvline(wanted, color=drawing.QUIET, linewidth=1, linestyle="--")
        for place, each in enumerate(known.values()):
            ends = _distances(each.low, each.value, each.high)
            axes.errorbar(
                each.value, place, xerr=[[ends[0]], [ends[1]]], fmt="o", color=drawing.COLOURS[0], elinewidth=1.6
            )
        drawing.name_rows(axes, known)
        return drawing.as_svg(figure, heading)
