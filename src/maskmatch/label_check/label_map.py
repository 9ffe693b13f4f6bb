"""The map of labels: their vectors on a plane, so that labels which read alike lie close together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from maskmatch.evaluation.display import shorten_name, text_width
from maskmatch.evaluation.svg import COLUMN_WIDTH, legend, picture, text_at, title

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

WIDTH, HEIGHT = 900.0, 620.0
EDGE, TOP = 40.0, 34.0
NAME_COLUMNS = 28
LINE = 13.0
MOST_NAMES = 150
"""Beyond so many labels only those with a finding are named; the others show their name when pointed at."""


def positions(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Vectors (K, dim) on the plane of their two largest principal components, within 0 and 1: (K, 2)."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0)
    if len(vectors) < 2 or not np.any(np.abs(centred) > 1e-9):
        return np.full((len(vectors), 2), 0.5)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    plane = np.zeros((len(vectors), 2))
    plane[:, : min(2, len(sizes))] = (left * sizes)[:, :2]
    # A component's sign is arbitrary: the label that lies farthest out is put to the right and up.
    plane *= np.where(plane[np.abs(plane).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    low, high = plane.min(axis=0), plane.max(axis=0)
    return np.asarray(np.where(high - low > 1e-9, (plane - low) / np.maximum(high - low, 1e-9), 0.5))


def shown_share(vectors: NDArray[np.float32]) -> float:
    """The share of the spread of vectors (K, dim) that their map shows."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0)
    squares = np.linalg.svd(centred, compute_uv=False) ** 2
    total = float(squares.sum())
    return float(squares[:2].sum()) / total if total > 1e-12 else 1.0


def map_picture(
    names: Sequence[str],
    places: NDArray[np.float64],
    troubled: Sequence[bool],
    close: Sequence[tuple[int, int]],
) -> str:
    """The map as a picture.

    Args:
        names: The names of labels.
        places: Where they lie, (K, 2), within 0 and 1.
        troubled: Which labels have a finding.
        close: Pairs of labels that are too close; a line joins them.
    """
    points = [
        (EDGE + float(x) * (WIDTH - 2 * EDGE), TOP + EDGE / 2 + (1 - float(y)) * (HEIGHT - TOP - EDGE))
        for x, y in places
    ]
    parts = legend(EDGE, [("label", "right"), ("label with a finding", "wrong")])
    parts += [_line(points[first], points[second], f"{names[first]} and {names[second]}") for first, second in close]
    for (x, y), name, trouble in zip(points, names, troubled, strict=True):
        style = "wrong" if trouble else "right"
        parts.append(f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="5">{title(name)}</circle>')
    parts += _names(names, points, troubled)
    return picture(WIDTH, HEIGHT, "Map of labels", parts)


def _line(first: tuple[float, float], second: tuple[float, float], tooltip: str) -> str:
    place = f'x1="{first[0]:.1f}" y1="{first[1]:.1f}" x2="{second[0]:.1f}" y2="{second[1]:.1f}"'
    return f'<line class="diagonal" {place}>{title(tooltip)}</line>'


def _names(names: Sequence[str], points: Sequence[tuple[float, float]], troubled: Sequence[bool]) -> list[str]:
    """Names beside their points where there is room; those with a finding are placed first, and always."""
    taken: list[tuple[float, float, float]] = []  # left, right, y
    parts = []
    for place in sorted(range(len(names)), key=lambda place: not troubled[place]):
        if len(names) > MOST_NAMES and not troubled[place]:
            continue
        x, y = points[place]
        shown = shorten_name(names[place], NAME_COLUMNS)
        length = text_width(shown) * COLUMN_WIDTH
        left = x - 8 - length if x + 8 + length > WIDTH else x + 8
        crowded = any(left < right and start < left + length and abs(y - other) < LINE for start, right, other in taken)
        if crowded and not troubled[place]:
            continue
        taken.append((left, left + length, y))
        parts.append(text_at(left, y + 4, shown, "name", tooltip=names[place]))
    return parts
