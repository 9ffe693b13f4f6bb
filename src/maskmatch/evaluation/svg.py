"""SVG elements for charts in web pages: texts, tooltips, a legend, the svg element itself."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from maskmatch.evaluation.display import one_line, text_width

if TYPE_CHECKING:
    from collections.abc import Sequence

COLUMN_WIDTH = 7.2
"""Width in pixels of a 12-pixel character: an upper bound for common sans-serif fonts."""


def legend(left: float, entries: Sequence[tuple[str, str]]) -> list[str]:
    """A legend in one row at the top of a chart: a coloured square and a text per entry (text, CSS class)."""
    parts = []
    x = left
    for meaning, style in entries:
        parts.append(f'<rect class="{style}" x="{x:.1f}" y="6" width="13" height="13" rx="2"/>')
        parts.append(text_at(x + 19, 17, meaning, "tick"))
        x += 19 + text_width(meaning) * COLUMN_WIDTH + 18
    return parts


def text_at(x: float, y: float, content: str, style: str, *, anchor: str = "start", tooltip: str = "") -> str:
    """A text element at a position."""
    hint = title(tooltip) if tooltip else ""
    position = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{style}" {position}>{hint}{escape(content)}</text>'


def title(text: str) -> str:
    """The tooltip of the enclosing element."""
    return f"<title>{escape(one_line(text))}</title>"


def picture(width: float, height: float, name: str, parts: Sequence[str]) -> str:
    """The svg element with all its parts; `name` is its label for screen readers."""
    # Up to this width, a chart stays legible when a phone shrinks it. A wider one scrolls instead.
    fits = ' class="fits"' if width <= 560 else ""
    return (
        f'<svg{fits} role="img" aria-label="{escape(name)}" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">{"".join(parts)}</svg>'
    )
