"""The charts of a report as SVG elements; the page's style sheet colours them."""

from __future__ import annotations

from html import escape
from math import sqrt
from typing import TYPE_CHECKING

from maskmatch.evaluation.display import counted, shorten_name, text_width
from maskmatch.evaluation.svg import COLUMN_WIDTH, legend, picture, text_at, title

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from maskmatch.evaluation.calibration import ReliabilityBin
    from maskmatch.evaluation.display import LabelNames
    from maskmatch.evaluation.report import EvaluationReport
    from maskmatch.evaluation.scores import LabelScore
    from maskmatch.evaluation.selective import SelectivePoint

MAX_LABELS = 40
"""The number of labels that a chart has room for."""

_NAME_WIDTH = 24
_OUTCOMES = (("right", "correct"), ("missed", "missed"), ("wrong", "wrong"))
"""The CSS class and the name of true positives, false negatives and false positives."""


def labels_to_draw(report: EvaluationReport) -> list[LabelScore]:
    """All labels, or the 40 with the most errors, in the model's order."""
    scores = report.per_label
    if len(scores) <= MAX_LABELS:
        return list(scores)
    worst = sorted(range(len(scores)), key=lambda index: -scores[index].errors)[:MAX_LABELS]
    return [scores[index] for index in sorted(worst)]


def confusion_matrix(report: EvaluationReport, names: LabelNames) -> str:
    """The confusion matrix: a row per true label, a column per predicted label, coloured by row fraction."""
    scores = labels_to_draw(report)
    cell = min(max(800 // len(scores), 21), 72)
    width = _NAME_WIDTH if len(scores) <= 20 else _NAME_WIDTH - 4
    titles = [shorten_name(names[score.label], width) for score in scores]
    longest = max(text_width(name) for name in titles) * COLUMN_WIDTH
    # Column names are rotated by 60 degrees: their height is sin 60 and their width cos 60 of their length.
    left, top, right = longest + 30, longest * 0.87 + 42, max(longest * 0.5 - cell / 2, 0) + 12
    side = cell * len(scores)
    parts = [
        text_at(left + side / 2, 14, "predicted", "axis", anchor="middle"),
        f'<text class="axis" text-anchor="middle" transform="translate(12 {top + side / 2:.1f}) rotate(-90)">'
        "true</text>",
    ]
    for index, (score, name) in enumerate(zip(scores, titles, strict=True)):
        middle = (index + 0.5) * cell
        full = names[score.label]
        parts.append(text_at(left - 8, top + middle + 4, name, "name", anchor="end", tooltip=full))
        parts.append(_rotated_text(left + middle + 3, top - 8, name, tooltip=full))
    parts += _cells(report, scores, names, (left, top, cell))
    parts.append(f'<rect class="frame" x="{left:.1f}" y="{top:.1f}" width="{side}" height="{side}"/>')
    return picture(left + side + right, top + side + 8, "Confusion matrix", parts)


def reliability_diagram(bins: Sequence[ReliabilityBin], confidence: str, accuracy: str) -> str:
    """The reliability diagram: accuracy over confidence, the diagonal, and below them a histogram of the bins."""
    left, top, side, strip = 58.0, 12.0, 320.0, 64.0
    strip_top = top + side + 34
    parts = _square_axes(left, top, side)
    largest = max(each.count for each in bins)
    points = []
    for each in bins:
        height = strip * each.count / largest
        tooltip = f"{each.low:.1f} to {each.high:.1f}: {counted(each.count, 'prediction')}"
        if each.mean_confidence is not None and each.accuracy is not None:
            tooltip += f", {confidence} {each.mean_confidence:.3f}, {accuracy} {each.accuracy:.3f}"
            x, y = left + side * each.mean_confidence, top + side * (1 - each.accuracy)
            points.append((x, y, 3.5 + 8 * sqrt(each.count / largest), tooltip))
        parts.append(
            f'<rect class="count" x="{left + side * each.low + 2:.1f}" y="{strip_top + strip - height:.1f}" '
            f'width="{side * (each.high - each.low) - 4:.1f}" height="{height:.1f}">{title(tooltip)}</rect>'
        )
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in points)
    parts.append(f'<polyline class="curve" points="{line}"/>')
    parts += [
        f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">{title(tooltip)}</circle>'
        for x, y, radius, tooltip in points
    ]
    floor = strip_top + strip
    parts += [
        f'<line class="frame" x1="{left}" y1="{floor}" x2="{left + side}" y2="{floor}"/>',
        text_at(left - 8, strip_top + 9, f"{largest:,}", "tick", anchor="end"),
        text_at(left - 8, floor, "0", "tick", anchor="end"),
        text_at(left + side / 2, floor + 20, confidence, "axis", anchor="middle"),
        f'<text class="axis" text-anchor="middle" transform="translate(14 {top + side / 2}) rotate(-90)">'
        f"{escape(accuracy)}</text>",
    ]
    return picture(left + side + 16, floor + 30, "Reliability diagram", parts)


def selective_curve(points: Sequence[SelectivePoint], now: SelectivePoint | None) -> str:
    """Accuracy over coverage, if the least confident texts are not answered; the setting of now is marked."""
    left, top, side = 58.0, 12.0, 320.0
    parts = _square_axes(left, top, side, diagonal=False)
    line = " ".join(f"{left + side * each.coverage:.1f},{top + side * (1 - each.accuracy):.1f}" for each in points)
    parts.append(f'<polyline class="curve" points="{line}"/>')
    step = max(1, len(points) // 20)
    shown = [each for number, each in enumerate(points) if number % step == 0 or number == len(points) - 1]
    parts += [
        f'<circle class="point" cx="{left + side * each.coverage:.1f}" cy="{top + side * (1 - each.accuracy):.1f}" '
        f'r="{7.0 if each is now else 3.5}">{title(_point_text(each))}</circle>'
        for each in [*shown, *([] if now is None else [now])]
    ]
    parts += [
        text_at(left + side / 2, top + side + 38, "share of texts that are answered", "axis", anchor="middle"),
        f'<text class="axis" text-anchor="middle" transform="translate(14 {top + side / 2}) rotate(-90)">'
        "accuracy of the answers</text>",
    ]
    return picture(left + side + 16, top + side + 48, "Accuracy by coverage", parts)


def _point_text(point: SelectivePoint) -> str:
    return (
        f"probability of at least {point.threshold:.3f}: {point.coverage:.1%} answered, accuracy {point.accuracy:.3f}"
    )


def label_bars(report: EvaluationReport, names: LabelNames) -> str:
    """A stacked bar per label: true positives (correct), false negatives (missed) and false positives (wrong)."""
    scores = labels_to_draw(report)
    titles = [shorten_name(names[score.label], _NAME_WIDTH + 4) for score in scores]
    left = max(text_width(name) for name in titles) * COLUMN_WIDTH + 14
    length, row, top = 640.0, 24, 34
    longest = max(1, *(score.support + score.predicted - score.correct for score in scores))
    parts = legend(left, [(text, style) for style, text in _OUTCOMES])
    for index, (score, name) in enumerate(zip(scores, titles, strict=True)):
        y = top + index * row
        full = names[score.label]
        parts.append(text_at(left - 8, y + 15, name, "name", anchor="end", tooltip=full))
        x = left
        counts = (score.correct, score.support - score.correct, score.predicted - score.correct)
        for count, (style, outcome) in zip(counts, _OUTCOMES, strict=True):
            width = length * count / longest
            tooltip = f"{full}: {count:,} {outcome}"
            parts.append(
                f'<rect class="{style}" x="{x:.1f}" y="{y + 3}" width="{width:.1f}" height="{row - 7}">'
                f"{title(tooltip)}</rect>"
            )
            x += width
        parts.append(text_at(x + 8, y + 15, " + ".join(f"{count:,}" for count in counts), "tick"))
    return picture(left + length + 120, top + len(scores) * row + 6, "Correct, missed and wrong predictions", parts)


def _cells(
    report: EvaluationReport,
    scores: Sequence[LabelScore],
    names: LabelNames,
    frame: tuple[float, float, int],
) -> list[str]:
    """The cells of the confusion matrix; `frame` is its left and top position and the size of a cell."""
    left, top, size = frame
    positions: dict[Hashable, int] = {score.label: index for index, score in enumerate(scores)}
    counts = {(index, index): score.correct for index, score in enumerate(scores) if score.correct}
    for each in report.confusions:
        if each.true in positions and each.predicted in positions:
            counts[positions[each.true], positions[each.predicted]] = each.count
    grid = [
        f'<path class="grid" d="M{left:.1f} {top + step * size:.1f}h{len(scores) * size}'
        f'M{left + step * size:.1f} {top:.1f}v{len(scores) * size}"/>'
        for step in range(1, len(scores))
    ]
    return grid + [
        _cell(
            (left + column * size, top + row * size, size),
            count,
            scores[row].support,
            names[scores[row].label],
            None if row == column else names[scores[column].label],
        )
        for (row, column), count in sorted(counts.items())
    ]


def _cell(frame: tuple[float, float, int], count: int, support: int, true: str, wrong: str | None) -> str:
    x, y, size = frame
    fraction = count / support
    style = "right" if wrong is None else "wrong"
    outcome = "correct" if wrong is None else f"predicted as {wrong}"
    tooltip = f"{true}: {count:,} of {support:,} {outcome} ({fraction:.0%})"
    cell = (
        f'<rect class="{style}" x="{x + 0.5:.1f}" y="{y + 0.5:.1f}" width="{size - 1}" height="{size - 1}" '
        # A minimum opacity keeps even one error in a thousand visible.
        f'fill-opacity="{0.12 + 0.88 * fraction:.2f}"/>'
    )
    font = min(max(size * 0.38, 9), 15)
    number = ""
    if text_width(f"{count:,}") * font * 0.6 <= size - 3:
        emphasis = "number strong" if fraction > 0.5 else "number"
        number = (
            f'<text class="{emphasis}" x="{x + size / 2:.1f}" y="{y + size / 2 + font * 0.36:.1f}" '
            f'font-size="{font:.1f}">{count:,}</text>'
        )
    return f"<g>{title(tooltip)}{cell}{number}</g>"


def _square_axes(left: float, top: float, side: float, *, diagonal: bool = True) -> list[str]:
    parts = []
    for step in range(6):
        value = step / 5
        x, y = left + side * value, top + side * (1 - value)
        parts += [
            f'<path class="grid" d="M{left} {y:.1f}h{side}M{x:.1f} {top}v{side}"/>',
            text_at(left - 8, y + 4, f"{value:.1f}", "tick", anchor="end"),
            text_at(x, top + side + 18, f"{value:.1f}", "tick", anchor="middle"),
        ]
    parts.append(f'<rect class="frame" x="{left}" y="{top}" width="{side}" height="{side}"/>')
    if diagonal:
        parts.append(f'<line class="diagonal" x1="{left}" y1="{top + side}" x2="{left + side}" y2="{top}"/>')
    return parts


def _rotated_text(x: float, y: float, content: str, tooltip: str) -> str:
    return (
        f'<text class="name" transform="translate({x:.1f} {y:.1f}) rotate(-60)">'
        f"{title(tooltip)}{escape(content)}</text>"
    )
