"""The evaluation report as a self-contained web page: no scripts, no links, and all user text escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from maskmatch.evaluation.charts import MAX_LABELS, confusion_matrix, label_bars, reliability_diagram, selective_curve
from maskmatch.evaluation.display import LabelNames, counted, shorten, shorten_name
from maskmatch.evaluation.style import STYLE
from maskmatch.evaluation.text_report import ALL_LABELS_UP_TO, worst_first

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.evaluation.calibration import ReliabilityBin
    from maskmatch.evaluation.report import Confusion, EvaluationReport
    from maskmatch.evaluation.scores import LabelScore

MAX_CONFUSIONS = 24
SMALL_MATRIX_UP_TO = 6


def report_page(report: EvaluationReport) -> str:
    """The report as a web page."""
    names = LabelNames(score.label for score in report.per_label)
    known = len(report.per_label) - len(report.unseen)
    kind = "any number of labels per text" if report.multi_label else "one label per text"
    body = [
        "<header><h1>Evaluation report</h1>",
        f'<div class="quiet">{counted(report.rows, "text")}, {counted(known, "label")}, {kind}</div>',
        _origin(report),
        "</header>",
        _tiles(report),
        _notes(report),
        _charts(report, names),
        _label_table(report, names),
        _confusions(report, names),
        "<footer>Created by maskmatch. Rows are counted from 0. Macro-F1 is the mean over the labels that occur "
        "in the truth or in the predictions.</footer>",
    ]
    return whole_page("Evaluation report", body)


def whole_page(title: str, body: Sequence[str], style: str = "") -> str:
    """A self-contained web page; `style` is added to the common style sheet."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in body if part)
        + "\n</body>\n</html>\n"
    )


def _origin(report: EvaluationReport) -> str:
    """The evaluated model, the data and the date."""
    parts = [("Model", report.model), ("Data", report.data), ("Date", report.date)]
    line = "; ".join(f"{name}: {escape(shorten(value, 200))}" for name, value in parts if value)
    return f'<div class="quiet">{line}</div>' if line else ""


def _tiles(report: EvaluationReport) -> str:
    correct = "texts with exactly the true labels" if report.multi_label else "texts with the true label"
    tiles = [
        ("Score", f"{report.score:.3f}", escape(report.metric)),
        ("Accuracy", f"{report.accuracy:.3f}", correct),
        ("Macro-F1", f"{report.macro_f1:.3f}", "mean over labels"),
        ("Micro-F1", f"{report.micro_f1:.3f}", "over all predictions"),
    ]
    if report.expected_calibration_error is not None:
        error = f"{report.expected_calibration_error:.3f}"
        tiles.append(("Calibration error", error, "expected gap between confidence and accuracy; 0 is best"))
    if report.answered is not None:
        tiles.append(("Answered", f"{report.answered.coverage:.1%}", f"probability of at least {report.abstain:.3f}"))
        tiles.append(("Accuracy of answers", f"{report.answered.accuracy:.3f}", "of the texts that are answered"))
    if report.threshold is not None:
        tiles.append(("Threshold", f"{report.threshold:.3f}", "probability from which a label is predicted"))
    if report.texts_per_second is not None:
        speed = report.texts_per_second
        rounded = f"{speed:,.0f}" if speed >= 100 else f"{speed:.3g}"
        tiles.append(("Texts per second", rounded, f"{report.seconds:,.1f} seconds in total"))
    figures = {"Score": "score", "Accuracy": "accuracy", "Macro-F1": "macro_f1", "Micro-F1": "micro_f1"}
    names = {**figures, "Accuracy of answers": "answered_accuracy"}
    intervals = {name: report.intervals[key] for name, key in names.items() if key in report.intervals}
    cells = (
        f'<div class="tile"><dt>{name}</dt><dd><span class="figure">{value}</span>'
        f'<span class="meaning">{meaning}</span>'
        + (f'<span class="meaning">{intervals[name]}</span>' if name in intervals else "")
        + "</dd></div>"
        for name, value, meaning in tiles
    )
    return f'<dl class="tiles">{"".join(cells)}</dl>'


def _notes(report: EvaluationReport) -> str:
    if not report.notes:
        return ""
    return '<ul class="notes">' + "".join(f"<li>{escape(note)}</li>" for note in report.notes) + "</ul>"


def _charts(report: EvaluationReport, names: LabelNames) -> str:
    first = _label_counts(report, names) if report.multi_label else _matrix(report, names)
    # A small matrix leaves room for the reliability diagram beside it, if the table of its values is collapsed.
    small = len(report.per_label) <= SMALL_MATRIX_UP_TO and not report.multi_label
    return f'<div class="columns">{first}{_calibration(report, collapsed=small)}{_selective(report)}</div>'


def _matrix(report: EvaluationReport, names: LabelNames) -> str:
    return (
        "<section><h2>Confusion matrix</h2>"
        '<p class="quiet">Each row is a true label, each column a prediction. Correct predictions are blue, '
        f"errors orange; the stronger the colour, the larger the fraction of the row.{_selection(report)}</p>"
        f'<div class="scroll">{confusion_matrix(report, names)}</div></section>'
    )


def _label_counts(report: EvaluationReport, names: LabelNames) -> str:
    return (
        "<section><h2>Correct, missed and wrong predictions per label</h2>"
        '<p class="quiet">Number of texts per label: true positives (correct), false negatives (missed) and '
        f"false positives (wrong).{_selection(report)}</p>"
        f'<div class="scroll">{label_bars(report, names)}</div></section>'
    )


def _selection(report: EvaluationReport) -> str:
    total = len(report.per_label)
    if total <= MAX_LABELS:
        return ""
    return f" The {MAX_LABELS} of {total:,} labels with the most errors are shown."


def _calibration(report: EvaluationReport, collapsed: bool) -> str:
    if not report.reliability:
        return ""
    confidence, accuracy = ("probability", "fraction true") if report.multi_label else ("confidence", "accuracy")
    head = f"<tr><th>{confidence}</th><th>predictions</th><th>mean</th><th>{accuracy}</th><th>gap</th></tr>"
    rows = "".join(_bin_row(each) for each in report.reliability)
    table = f'<div class="scroll"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'
    diagram = f'<div class="scroll">{reliability_diagram(report.reliability, confidence, accuracy)}</div>'
    content = (
        f"{diagram}<details><summary>Values of the diagram</summary>{table}</details>"
        if collapsed
        else f'<div class="beside">{diagram}{table}</div>'
    )
    return f'<section><h2>Calibration</h2><p class="quiet">{_calibration_summary(report)}</p>{content}</section>'


def _selective(report: EvaluationReport) -> str:
    """What is gained by not answering the least confident texts."""
    if len(report.selective) < 2:
        return ""
    if report.abstain <= 0:
        now = "All texts are answered now."
    elif report.answered is None:
        now = f"No text reaches the probability of {report.abstain:.3f} that an answer needs now."
    else:
        now = f"The large point is the setting of now: {report.abstain:.3f}."
    return (
        '<section><h2>If it may abstain</h2><p class="quiet">The accuracy of the answers, if the least confident texts '
        f"are not answered. {now}</p>"
        f'<div class="scroll">{selective_curve(report.selective, report.answered)}</div></section>'
    )


def _calibration_summary(report: EvaluationReport) -> str:
    filled = [each for each in report.reliability if each.count]
    total = sum(each.count for each in filled)
    confidence = sum(each.count * (each.mean_confidence or 0.0) for each in filled) / total
    accuracy = sum(each.count * (each.accuracy or 0.0) for each in filled) / total
    start = "On the dashed line, confidence equals accuracy; below it, the model is overconfident."
    if report.multi_label:
        return (
            f"{start} Over all texts and labels, the mean probability is {confidence:.3f}, and {accuracy:.3f} of the "
            "labels are true."
        )
    return f"{start} The mean confidence is {confidence:.3f}, the accuracy {accuracy:.3f}."


def _bin_row(each: ReliabilityBin) -> str:
    interval = f"{each.low:.1f} to {each.high:.1f}"
    if each.mean_confidence is None or each.accuracy is None:
        return f"<tr><td>{interval}</td><td>0</td><td>-</td><td>-</td><td>-</td></tr>"
    gap = each.accuracy - each.mean_confidence
    return (
        f"<tr><td>{interval}</td><td>{each.count:,}</td><td>{each.mean_confidence:.3f}</td>"
        f"<td>{each.accuracy:.3f}</td><td>{gap:+.3f}</td></tr>"
    )


def _label_table(report: EvaluationReport, names: LabelNames) -> str:
    few = len(report.per_label) <= ALL_LABELS_UP_TO
    scores = list(report.per_label) if few else worst_first(report.per_label)
    unseen = {each.label for each in report.unseen}
    rows = "".join(_label_row(score, names[score.label], score.label in unseen) for score in scores)
    order = "" if few else '<p class="quiet">Sorted by ascending F1.</p>'
    box = "scroll" if few else "scroll tall"
    return (
        f"<section><h2>Labels</h2>{order}"
        f'<div class="{box}"><table class="wide"><thead><tr><th>label</th><th>precision</th>'
        "<th>recall</th><th>F1</th><th>support</th><th>predicted</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _label_row(score: LabelScore, name: str, unseen: bool) -> str:
    badge = '<span class="badge">unknown to the model</span>' if unseen else ""
    precision, recall, f1 = (
        f"{value:.3f}" if score.occurs else "-" for value in (score.precision, score.recall, score.f1)
    )
    bar = f'<span><i><b style="width:{100 * score.f1:.1f}%"></b></i>{f1}</span>'
    return (
        f"<tr><td>{_name(name, 44)}{badge}</td><td>{precision}</td><td>{recall}</td>"
        f'<td class="bar">{bar}</td><td>{score.support:,}</td><td>{score.predicted:,}</td></tr>'
    )


def _confusions(report: EvaluationReport, names: LabelNames) -> str:
    if not report.confusions:
        return "<section><h2>Errors</h2><p>None: every text is correct.</p></section>"
    shown = report.confusions[:MAX_CONFUSIONS]
    hidden = len(report.confusions) - len(shown)
    more = f" {counted(hidden, 'rarer pair')} of labels not shown." if hidden else ""
    items = "".join(_confusion(each, names) for each in shown)
    return (
        f'<section><h2>Errors</h2><p class="quiet">True label &rarr; predicted label, the most frequent '
        f'first, with examples.{more}</p><ol class="mistakes">{items}</ol></section>'
    )


def _confusion(each: Confusion, names: LabelNames) -> str:
    true, predicted = (_name(names[label], 48) for label in (each.true, each.predicted))
    examples = "".join(
        f'<div><span class="quiet">row {example.row}:</span> '
        f'<q dir="auto">{escape(shorten(example.text, 220))}</q></div>'
        for example in each.examples
    )
    return (
        f'<li><span class="count">{each.count:,}</span><span class="pair">{true} &rarr; {predicted}</span>'
        f"{examples}</li>"
    )


def _name(name: str, width: int) -> str:
    """A label name, shortened if needed, with the full name in a tooltip."""
    short = shorten_name(name, width)
    if short == name:
        return escape(name)
    return f'<span title="{escape(name)}">{escape(short)}</span>'
