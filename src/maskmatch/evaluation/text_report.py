"""The evaluation report as plain text, for a terminal of 100 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskmatch.evaluation.display import LabelNames, counted, pad, shorten, shorten_name, text_width, wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.evaluation.report import EvaluationReport
    from maskmatch.evaluation.scores import LabelScore

WIDTH = 100
ALL_LABELS_UP_TO = 30
WORST_LABELS = 15
WORST_CONFUSIONS = 10


def report_text(report: EvaluationReport) -> str:
    """The report as plain text in lines of at most 100 columns."""
    names = LabelNames(score.label for score in report.per_label)
    sections = [_headline(report), _notes(report), _label_table(report, names), _confusions(report, names)]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def labels_to_show(scores: Sequence[LabelScore]) -> list[LabelScore]:
    """All labels in the model's order if there are few; otherwise those with the lowest F1."""
    if len(scores) <= ALL_LABELS_UP_TO:
        return list(scores)
    return worst_first(scores)[:WORST_LABELS]


def worst_first(scores: Sequence[LabelScore]) -> list[LabelScore]:
    """Sort labels by ascending F1, ties by descending support; labels that do not occur come last."""
    return sorted(scores, key=lambda score: (not score.occurs, score.f1, -score.support))


def _headline(report: EvaluationReport) -> list[str]:
    known = len(report.per_label) - len(report.unseen)
    lines = [f"Evaluation of {counted(report.rows, 'text')} with {counted(known, 'label')}"]
    origin = [("model", report.model), ("data", report.data), ("date", report.date)]
    lines += [f"  {name:<6}{shorten(value, WIDTH - 8)}" for name, value in origin if value]
    lines.append("")
    exact = " (all labels of a text correct)" if report.multi_label else ""
    rows = [
        ("score", _figure(report, "score", f" ({report.metric})")),
        ("accuracy", _figure(report, "accuracy", exact)),
        ("macro-F1", _figure(report, "macro_f1")),
        ("micro-F1", _figure(report, "micro_f1")),
    ]
    if report.expected_calibration_error is not None:
        rows.append(("expected calibration error", f"{report.expected_calibration_error:.3f}"))
    if report.abstain > 0:
        rows += _selective(report)
    if report.threshold is not None:
        rows.append(("threshold", f"{report.threshold:.3f}"))
    if report.texts_per_second is not None:
        speed = f"{report.texts_per_second:,.1f} texts per second ({report.seconds:,.1f} seconds in total)"
        rows.append(("speed", speed))
    return lines + [f"  {name:<28}{value}" for name, value in rows]


def _figure(report: EvaluationReport, name: str, meaning: str = "") -> str:
    """A figure with its confidence interval."""
    interval = report.intervals.get(name)
    return f"{getattr(report, name):.3f}{meaning}" + ("" if interval is None else f", {interval}")


def _selective(report: EvaluationReport) -> list[tuple[str, str]]:
    """How many texts are answered, and how many of these answers are right."""
    if report.answered is None:
        return [("answered", f"none: no probability reaches {report.abstain:.3f}")]
    answered = f"{report.answered.coverage:.1%} of the texts, those with a probability of at least {report.abstain:.3f}"
    interval = report.intervals.get("answered_accuracy")
    more = "" if interval is None else f", {interval}"
    return [("answered", answered), ("accuracy of answers", f"{report.answered.accuracy:.3f}{more}")]


def _notes(report: EvaluationReport) -> list[str]:
    return [line for note in report.notes for line in wrap(f"* {note}", WIDTH, indent="  ")]


def _label_table(report: EvaluationReport, names: LabelNames) -> list[str]:
    shown = labels_to_show(report.per_label)
    hidden = len(report.per_label) - len(shown)
    unseen = {each.label for each in report.unseen}
    suffixes = [" (unknown)" if score.label in unseen else "" for score in shown]
    titles = [
        shorten_name(names[score.label], 54 - len(suffix)) + suffix
        for score, suffix in zip(shown, suffixes, strict=True)
    ]
    width = max(len("label"), *map(text_width, titles))
    lines = [f"The {len(shown)} worst labels by F1"] if hidden else ["Labels"]
    lines.append(f"  {pad('label', width)}  {'precision':>9}  {'recall':>6}  {'F1':>6}  {'support':>8}")
    for score, name in zip(shown, titles, strict=True):
        values = (score.precision, score.recall, score.f1)
        precision, recall, f1 = (f"{value:.3f}" if score.occurs else "-" for value in values)
        lines.append(f"  {pad(name, width)}  {precision:>9}  {recall:>6}  {f1:>6}  {score.support:>8,}")
    if hidden:
        lines.append(f"  {counted(hidden, 'other label')} not shown.")
    return lines


def _confusions(report: EvaluationReport, names: LabelNames) -> list[str]:
    shown = report.confusions[:WORST_CONFUSIONS]
    if not shown:
        return ["No errors."]
    lines = ["Most frequent errors (true -> predicted; rows are counted from 0)"]
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
