"""The map of labels: a projection of their vectors to two dimensions, in which similar labels are near each other."""

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
LINE_HEIGHT = 13.0
MOST_NAMES = 150
"""With more labels, only those with a finding show their name; the others show it as a tooltip."""


def project(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Project vectors to their first two principal components, scaled to 0…1: (K, dim) → (K, 2)."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0)
    if len(vectors) < 2 or not np.any(np.abs(centred) > 1e-9):
        return np.full((len(vectors), 2), 0.5)
    left, singular_values, _ = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(vectors), 2))
    points[:, : min(2, len(singular_values))] = (left * singular_values)[:, :2]
    # The sign of a component is arbitrary: put the label with the largest absolute value to the right and to the top.
    points *= np.where(points[np.abs(points).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    low, high = points.min(axis=0), points.max(axis=0)
    return np.asarray(np.where(high - low > 1e-9, (points - low) / np.maximum(high - low, 1e-9), 0.5))


def explained_variance(vectors: NDArray[np.float32]) -> float:
    """Return the share of the variance of vectors (K, dim) that their projection explains."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0)
    variances = np.linalg.svd(centred, compute_uv=False) ** 2
    total = float(variances.sum())
    return float(variances[:2].sum()) / total if total > 1e-12 else 1.0


def draw_map(
    names: Sequence[str],
    projection: NDArray[np.float64],
    has_finding: Sequence[bool],
    close_pairs: Sequence[tuple[int, int]],
) -> str:
    """Draw the map as SVG.

    Args:
        names: The names of the labels.
        projection: (K, 2), their positions on the map, from 0 to 1.
        has_finding: Per label, whether there is a finding about it.
        close_pairs: Pairs of labels that are too close; a line joins them.
    """
    points = [
        (EDGE + float(x) * (WIDTH - 2 * EDGE), TOP + EDGE / 2 + (1 - float(y)) * (HEIGHT - TOP - EDGE))
        for x, y in projection
    ]
    parts = legend(EDGE, [("label", "right"), ("label with a finding", "wrong")])
    parts += [
        _line(points[first], points[second], f"{names[first]} and {names[second]}") for first, second in close_pairs
    ]
    for (x, y), name, finding in zip(points, names, has_finding, strict=True):
        style = "wrong" if finding else "right"
        parts.append(f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="5">{title(name)}</circle>')
    parts += _draw_names(names, points, has_finding)
    return picture(WIDTH, HEIGHT, "Map of labels", parts)


def _line(first: tuple[float, float], second: tuple[float, float], tooltip: str) -> str:
    ends = f'x1="{first[0]:.1f}" y1="{first[1]:.1f}" x2="{second[0]:.1f}" y2="{second[1]:.1f}"'
    return f'<line class="diagonal" {ends}>{title(tooltip)}</line>'


def _draw_names(names: Sequence[str], points: Sequence[tuple[float, float]], has_finding: Sequence[bool]) -> list[str]:
    """Draw names beside their points if there is room. Names with a finding come first and are always drawn."""
    drawn: list[tuple[float, float, float]] = []  # left, right, y
    parts = []
    for index in sorted(range(len(names)), key=lambda index: not has_finding[index]):
        if len(names) > MOST_NAMES and not has_finding[index]:
            continue
        x, y = points[index]
        shown = shorten_name(names[index], NAME_COLUMNS)
        length = text_width(shown) * COLUMN_WIDTH
        left = x - 8 - length if x + 8 + length > WIDTH else x + 8
        overlaps = any(
            left < right and start < left + length and abs(y - other) < LINE_HEIGHT for start, right, other in drawn
        )
        if overlaps and not has_finding[index]:
            continue
        drawn.append((left, left + length, y))
        parts.append(text_at(left, y + 4, shown, "name", tooltip=names[index]))
    return parts
