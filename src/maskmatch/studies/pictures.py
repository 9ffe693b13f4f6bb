"""The pictures of studies."""

from __future__ import annotations

from math import ceil, floor, log10
from typing import TYPE_CHECKING

from maskmatch.comparison.pictures import COLOURS, colours_of, score_range, score_ticks
from maskmatch.evaluation.display import shorten_name, text_width
from maskmatch.evaluation.svg import COLUMN_WIDTH, picture, text_at, title

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from maskmatch.studies.study import Found

NAME_COLUMNS = 60
WIDTH = 360.0
LEGEND_LINE = 18.0


def dot_plot(
    found: Found,
    regime: str,
    names: Sequence[str],
    heading: str = "",
    *,
    datasets: Sequence[str] | None = None,
    called: Mapping[str, str] | None = None,
) -> str:
    """A line for each variant: its mean accuracy over datasets, all of them or some, and each as a small tick.

    Args:
        found: What was found.
        regime: The regime.
        names: The variants.
        heading: What stands above; the regime if it is left out.
        datasets: On which datasets; None: on all.
        called: What to call variants, if not by their names.
    """
    shown = list(found.datasets) if datasets is None else datasets
    rows = [(name, found.comparison.accuracy(name, regime, shown)) for name in names]
    known = [(name, value) for name, value in rows if value is not None]
    if not known:
        return ""
    singles = {name: _by_dataset(found, name, regime, shown) for name, _ in known}
    low, high = score_range([value for each in singles.values() for value in each.values()])
    every = len({dataset for each in singles.values() for dataset in each})
    shown_as = {
        name: shorten_name((called or {}).get(name, name), NAME_COLUMNS) + _of_some(len(singles[name]), every)
        for name, _ in known
    }
    left = max(text_width(name) for name in shown_as.values()) * COLUMN_WIDTH + 16
    top, line = 34.0, 20.0

    def x_of(value: float) -> float:
        return left + WIDTH * (value - low) / (high - low)

    parts = [text_at(8, 18, heading or regime, "group")]
    height = line * len(known) + 6
    for value in score_ticks(low, high):
        parts.append(f'<path class="grid" d="M{x_of(value):.1f} {top}v{height:.1f}"/>')
        parts.append(text_at(x_of(value), top + height + 16, f"{value:.2f}", "tick", anchor="middle"))
    for place, (name, mean) in enumerate(known):
        y = top + line * (place + 0.5) + 3
        style = f"m{place % COLOURS}"
        parts.append(text_at(left - 10, y + 4, shown_as[name], "name", anchor="end", tooltip=name))
        for dataset, value in singles[name].items() if len(singles[name]) > 1 else ():
            hint = title(f"{name}, {regime}, {dataset}: {value:.3f}")
            parts.append(f'<path class="{style} seed" d="M{x_of(value):.1f} {y - 5:.1f}v10">{hint}</path>')
        hint = title(f"{name}, {regime}: {mean:.3f}")
        parts.append(f'<circle class="{style}" cx="{x_of(mean):.1f}" cy="{y:.1f}" r="5">{hint}</circle>')
        parts.append(text_at(left + WIDTH + 12, y + 4, f"{mean:.3f}", "tick"))
    label = "accuracy, mean over datasets" if every > 1 else "accuracy"
    parts.append(text_at(left + WIDTH / 2, top + height + 38, label, "axis", anchor="middle"))
    return picture(left + WIDTH + 64, top + height + 48, f"Accuracy, {heading or regime}", parts)


def _by_dataset(found: Found, name: str, regime: str, datasets: Sequence[str]) -> dict[str, float]:
    """The accuracy of a variant on each dataset that it was tried on."""
    scores = {dataset: found.comparison.accuracy(name, regime, [dataset]) for dataset in datasets}
    return {dataset: score for dataset, score in scores.items() if score is not None}


def _of_some(datasets: int, every: int) -> str:
    """A remark for a variant that was not tried on every dataset: its mean is not one over the same."""
    return "" if datasets == every else f" ({datasets} of {every} datasets)"


def line_plot(
    lines: Mapping[str, Mapping[float, float]],
    heading: str,
    across: str,
    up: str = "accuracy",
    *,
    ticks: Mapping[float, str] | None = None,
    logarithmic: bool = False,
) -> str:
    """A line through the points of each name.

    Args:
        lines: By name, the value at each place.
        heading: What the picture shows.
        across: What the places are.
        up: What the values are.
        ticks: What to write below places; None: the places themselves.
        logarithmic: Whether places stand by their logarithm.
    """
    drawn = {name: dict(sorted(points.items())) for name, points in lines.items() if points}
    if not drawn:
        return ""
    places = sorted({place for points in drawn.values() for place in points})
    values = [value for points in drawn.values() for value in points.values()]
    scores = up == "accuracy"
    step = round_step(max(values))
    low, high = score_range(values) if scores else (0.0, step * max(1, ceil(max(values) / step)))
    left, top, height = 64.0, 34.0, 240.0
    positions = [log10(place) if logarithmic else place for place in places]
    first, last = positions[0], positions[-1]

    def x_of(place: float) -> float:
        position = log10(place) if logarithmic else place
        return left + WIDTH * ((position - first) / (last - first) if last > first else 0.5)

    def y_of(value: float) -> float:
        return top + height * (high - value) / (high - low)

    parts = [text_at(8, 18, heading, "group")]
    for value in score_ticks(low, high) if scores else [step * part for part in range(round(high / step) + 1)]:
        parts.append(f'<path class="grid" d="M{left} {y_of(value):.1f}h{WIDTH}"/>')
        told = f"{value:.2f}" if scores else f"{value:,.4g}"
        parts.append(text_at(left - 8, y_of(value) + 4, told, "tick", anchor="end"))
    for place in places:
        told = (ticks or {}).get(place, f"{place:,g}")
        parts.append(text_at(x_of(place), top + height + 18, told, "tick", anchor="middle"))
    parts.append(f'<rect class="frame" x="{left}" y="{top}" width="{WIDTH}" height="{height}"/>')
    styles = colours_of(list(drawn))
    for name, points in drawn.items():
        path = "L".join(f"{x_of(place):.1f} {y_of(value):.1f}" for place, value in points.items())
        parts.append(f'<path class="{styles[name]} spread" d="M{path}"/>')
        for place, value in points.items():
            hint = title(f"{name}, {across} {(ticks or {}).get(place, f'{place:,g}')}: {value:,.4g}")
            parts.append(
                f'<circle class="{styles[name]}" cx="{x_of(place):.1f}" cy="{y_of(value):.1f}" r="4">{hint}</circle>'
            )
    parts.append(text_at(left + WIDTH / 2, top + height + 38, across, "axis", anchor="middle"))
    parts.append(
        f'<text class="axis" text-anchor="middle" transform="translate(14 {top + height / 2}) rotate(-90)">{up}</text>'
    )
    below = top + height + 48
    parts += _legend(styles, left, below)
    return picture(left + WIDTH + 24, below + LEGEND_LINE * len(styles) + 8, heading, parts)


def _legend(styles: Mapping[str, str], left: float, top: float) -> list[str]:
    """What each colour stands for, one below the other."""
    parts = []
    for place, (name, style) in enumerate(styles.items()):
        y = top + LEGEND_LINE * place
        parts.append(f'<circle class="{style}" cx="{left + 6}" cy="{y + 8:.1f}" r="5"/>')
        parts.append(text_at(left + 18, y + 12, shorten_name(name, NAME_COLUMNS), "tick", tooltip=name))
    return parts


def round_step(most: float) -> float:
    """A round number of which some four or five, or fewer, reach the most.

    >>> round_step(152.0), round_step(487.0), round_step(0.31)
    (50.0, 100.0, 0.1)
    """
    if most <= 0:
        return 1.0
    size = 10.0 ** floor(log10(most / 5))
    return next(factor * size for factor in (1, 2, 5, 10) if most <= 5 * factor * size)


def scatter_plot(across: Mapping[str, float], up: Mapping[str, float], name: str) -> str:
    """A dot for each label set: a score of its names, and what they bring."""
    shared = [each for each in up if each in across]
    if len(shared) < 2:
        return ""
    left, top, height = 64.0, 34.0, 240.0
    bounds = []
    for values in ([across[each] for each in shared], [up[each] for each in shared]):
        room = (max(values) - min(values)) * 0.08 or 0.05
        bounds.append((min(values) - room, max(values) + room))
    (first, last), (low, high) = bounds
    parts = [text_at(8, 18, f"{name}, and what names bring", "group")]
    for part in range(5):
        x, y = left + WIDTH * part / 4, top + height * (4 - part) / 4
        parts.append(f'<path class="grid" d="M{left} {y:.1f}h{WIDTH}M{x:.1f} {top}v{height}"/>')
        parts.append(text_at(left - 8, y + 4, f"{low + (high - low) * part / 4:+.2f}", "tick", anchor="end"))
        parts.append(text_at(x, top + height + 18, f"{first + (last - first) * part / 4:.2f}", "tick", anchor="middle"))
    for place, each in enumerate(shared):
        x = left + WIDTH * (across[each] - first) / (last - first)
        y = top + height * (high - up[each]) / (high - low)
        hint = title(f"{each}: {name} {across[each]:.3f}, names bring {up[each]:+.3f}")
        parts.append(f'<circle class="m{place % COLOURS}" cx="{x:.1f}" cy="{y:.1f}" r="5">{hint}</circle>')
        parts.append(text_at(x + 8, y - 6, shorten_name(each, 20), "tick"))
    parts.append(text_at(left + WIDTH / 2, top + height + 38, name, "axis", anchor="middle"))
    return picture(left + WIDTH + 120, top + height + 48, f"{name} and what names bring", parts)
