"""The parts that pictures in pages are drawn with: texts, tooltips, a legend, the frame of a picture."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from maskmatch.evaluation.display import one_line, text_width

if TYPE_CHECKING:
    from collections.abc import Sequence

COLUMN_WIDTH = 7.2  # of one sign at 12 pixels, on the safe side for the usual sans-serif fonts


def legend(left: float, entries: Sequence[tuple[str, str]]) -> list[str]:
    """Squares in a row at the top of a picture, each with what its style means."""
    parts = []
    x = left
    for meaning, style in entries:
        parts.append(f'<rect class="{style}" x="{x:.1f}" y="6" width="13" height="13" rx="2"/>')
        parts.append(text_at(x + 19, 17, meaning, "tick"))
        x += 19 + text_width(meaning) * COLUMN_WIDTH + 18
    return parts


def text_at(x: float, y: float, content: str, style: str, *, anchor: str = "start", tooltip: str = "") -> str:
    """A text at a place."""
    hint = title(tooltip) if tooltip else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{style}" {place}>{hint}{escape(content)}</text>'


def title(text: str) -> str:
    """What a reader sees who points at the part that this stands in."""
    return f"<title>{escape(one_line(text))}</title>"


def picture(width: float, height: float, name: str, parts: Sequence[str]) -> str:
    """A whole picture."""
    # A picture of this size can still be read when a phone shrinks it; a larger one scrolls in its box.
    fits = ' class="fits"' if width <= 560 else ""
    return (
        f'<svg{fits} role="img" aria-label="{escape(name)}" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">{"".join(parts)}</svg>'
    )
