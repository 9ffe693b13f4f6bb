"""The style that all pictures of the lab share, and figures of matplotlib as SVG text.

The same data give the same bytes: ids have a fixed salt, and no date is written. Text stays text, so that it can be
searched and read aloud. The layout is computed for DejaVu Sans, which is wider than the fonts that browsers fall back
to, so labels do not overlap there either.
"""

from __future__ import annotations

import base64
import re
import warnings
from contextlib import contextmanager
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator, NullLocator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from matplotlib.axes import Axes

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f", "#6a3d9a", "#8b5a2b")
"""The colours of Okabe and Ito, which colour-blind readers can tell apart, without yellow; then a few more."""

MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*", "<", ">", "p")
INK, QUIET, GRID = "#1d2226", "#5f6870", "#dfe3e1"
ROW_HEIGHT = 0.26
"""Inches per row of a picture that has a row per name."""

DECADES_WITH_STEPS = 2.5
STYLE: Any = {
    "svg.hashsalt": "maskmatch",
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 10,
    "text.color": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": QUIET,
    "axes.labelcolor": QUIET,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 6,
}


@contextmanager
def style() -> Iterator[None]:
    """The style for everything that is drawn inside; fonts that lack a character do not warn."""
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches; labels get the room that they need."""
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))


def as_svg(figure: Figure, description: str) -> str:
    """A figure as a complete SVG file.

    Args:
        figure: The figure.
        description: What it shows, for readers who cannot see it.
    """
    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]  # without the prolog, whose document type browsers would have to load
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(readable(description))}" ', 1)


def embedded(svg: str) -> str:
    """An SVG file as an image inside a web page that needs no other file."""
    description = re.search(r'aria-label="([^"]*)"', svg)
    data = base64.b64encode(svg.encode()).decode()
    return (
        f'<img style="max-width: 100%; height: auto" alt="{description[1] if description else ""}" '
        f'src="data:image/svg+xml;base64,{data}">'
    )


def styles_of(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The colour and the marker of each name; both together differ for many more names than there are colours."""
    return {
        name: {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)]}
        for place, name in enumerate(dict.fromkeys(names))
    }


def readable(name: str) -> str:
    """A name as a label: without control characters, which no SVG may hold.

    Example:
        >>> readable("a" + chr(7) + "b")
        'a b'
    """
    shown = "".join(each if each.isprintable() else " " for each in name)
    return f"\u200b{shown}" if shown.startswith("_") else shown  # legends leave out names that begin with _


def name_rows(axes: Axes, names: Iterable[str]) -> None:
    """A row for each name, the first one on top, without vertical ticks."""
    labels = [readable(name) for name in names]
    axes.set_yticks(range(len(labels)), labels, color=INK)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y", visible=False)


def value_column(axes: Axes, place: float, text: str) -> None:
    """A figure to the right of a row."""
    where = ("axes fraction", "data")
    axes.annotate(text, (1.02, place), xycoords=where, va="center", fontsize=8.5, color=QUIET, annotation_clip=False)


def use_logarithm(axes: Axes, side: str, label: Callable[[float], str] = "{:,g}".format) -> None:
    """Make an axis, ``"x"`` or ``"y"``, logarithmic, with a label at each power of ten.

    An axis over few powers of ten also names the steps 2 and 5 between them.
    """
    getattr(axes, f"set_{side}scale")("log")
    axis = getattr(axes, f"{side}axis")
    low, high = axis.get_data_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < low * 10**DECADES_WITH_STEPS else (1,)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: label(value))


def row_height(rows: int) -> float:
    """The height of a picture with this many rows, in inches."""
    return 0.95 + ROW_HEIGHT * rows
