"""The report in plain text, for a terminal of 100 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskmatch.evaluation.display import LabelNames, counted, pad, shorten, shorten_name, text_width, wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.evaluation.metrics import LabelScore
    from maskmatch.evaluation.report import EvaluationReport

WIDTH = 100
ALL_LABELS_UP_TO = 30
WORST_LABELS = 15
WORST_CONFUSIONS = 10


def report_text(report: EvaluationReport) -> str:
    """The report as lines of at most 100 columns, in signs that every terminal has."""
    names = LabelNames(score.label for score in report.per_label)
    sections = [_headline(report), _notes(report), _label_table(report, names), _confusions(report, names)]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def labels_to_show(scores: Sequence[LabelScore]) -> list[LabelScore]:
    """All labels in the order of the model if they are few, or else those with the lowest F1 first."""
    if len(scores) <= ALL_LABELS_UP_TO:
        return list(scores)
    return worst_first(scores)[:WORST_LABELS]


def worst_first(scores: Sequence[LabelScore]) -> list[LabelScore]:
    """The labels with the lowest F1 first, of equal ones the most frequent; those that do not occur last."""
    return sorted(scores, key=lambda score: (not score.occurs, score.f1, -score.support))


def _headline(report: EvaluationReport) -> list[str]:
    known = len(report.per_label) - len(report.unseen)
    lines = [f"Evaluation of {counted(report.rows, 'text')} with {counted(known, 'label')}"]
    origin = [("model", report.model), ("data", report.data), ("date", report.date)]
    lines += [f"  {name:<6}{shorten(value, WIDTH - 8)}" for name, value in origin if value]
    lines.append("")
    figures = [
        ("score", f"{report.score:.3f} ({report.metric})"),
        (
            "accuracy",
            f"{report.accuracy:.3f}" + (" (all labels of a text right)" if report.multi_label else ""),
        ),
        ("macro-F1", f"{report.macro_f1:.3f}"),
        ("micro-F1", f"{report.micro_f1:.3f}"),
    ]
    if report.expected_calibration_error is not None:
        figures.append(("expected calibration error", f"{report.expected_calibration_error:.3f}"))
    if report.threshold is not None:
        figures.append(("threshold", f"{report.threshold:.3f}"))
    if report.texts_per_second is not None:
        speed = f"{report.texts_per_second:,.1f} texts per second ({report.seconds:,.1f} seconds in all)"
        figures.append(("speed", speed))
    return lines + [f"  {name:<28}{figure}" for name, figure in figures]


def _notes(report: EvaluationReport) -> list[str]:
    return [line for note in report.notes for line in wrap(f"* {note}", WIDTH, indent="  ")]


def _label_table(report: EvaluationReport, names: LabelNames) -> list[str]:
    shown = labels_to_show(report.per_label)
    hidden = len(report.per_label) - len(shown)
    unseen = {each.label for each in report.unseen}
    marks = [" (unknown)" if score.label in unseen else "" for score in shown]
    called = [shorten_name(names[score.label], 54 - len(mark)) + mark for score, mark in zip(shown, marks, strict=True)]
    width = max(len("label"), *map(text_width, called))
    lines = [f"The {len(shown)} worst labels by F1"] if hidden else ["Labels"]
    lines.append(f"  {pad('label', width)}  {'precision':>9}  {'recall':>6}  {'F1':>6}  {'support':>8}")
    for score, name in zip(shown, called, strict=True):
        figures = [score.precision, score.recall, score.f1]
        precision, recall, f1 = (f"{figure:.3f}" if score.occurs else "-" for figure in figures)
        lines.append(f"  {pad(name, width)}  {precision:>9}  {recall:>6}  {f1:>6}  {score.support:>8,}")
    if hidden:
        lines.append(f"  {counted(hidden, 'other label')} not shown.")
    return lines


def _confusions(report: EvaluationReport, names: LabelNames) -> list[str]:
    shown = report.confusions[:WORST_CONFUSIONS]
    if not shown:
        return ["No mistakes."]
    lines = ["Most frequent mistakes (true -> predicted; rows are counted from 0)"]
    for each in shown:
        true, predicted = (shorten_name(names[label], 40) for label in (each.true, each.predicted))
        lines.append(f"{each.count:>7,}  {true} -> {predicted}")
        for example in each.examples[:1]:
            start = f"         row {example.row}: "
            lines.append(start + shorten(example.text, WIDTH - len(start)))
    hidden = len(report.confusions) - len(shown)
    if hidden:
        lines.append(f"  {counted(hidden, 'other pair')} of labels not shown.")
    return lines
