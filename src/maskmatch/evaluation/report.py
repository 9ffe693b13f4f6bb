"""The result of an evaluation: all that was measured, as one value that prints, saves and draws itself."""

from __future__ import annotations

import json
import math
import os
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError
from maskmatch.evaluation import metrics
from maskmatch.evaluation.display import LabelNames, counted, one_line, shorten, shorten_name
from maskmatch.evaluation.inputs import calibration_bins, check_rows, id_rows, known_labels
from maskmatch.evaluation.task_metrics import measure

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from numpy.typing import ArrayLike

    from maskmatch.evaluation.inputs import Row, Text
    from maskmatch.evaluation.metrics import LabelScore, ReliabilityBin
    from maskmatch.evaluation.task_metrics import Metric


EXAMPLES_PER_CONFUSION = 3
EXAMPLE_LENGTH = 500
_LABELS_IN_NOTE = 10


@dataclass(frozen=True)
class Example:
    """A text of the evaluated data: its row, counted from 0, and how it begins (at most 500 characters)."""

    row: int
    text: str


@dataclass(frozen=True)
class Confusion:
    """One label taken for another.

    Where a text has any number of labels, each label that was missed is paired with each that was wrongly
    given; `predicted` is None where labels were only missed, `true` is None where they were only added.
    """

    true: Hashable
    predicted: Hashable
    count: int
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class UnseenLabel:
    """A label of the truth that the model does not know, and how many rows have it."""

    label: Hashable
    rows: int


@dataclass(frozen=True)
class EvaluationReport:
    """What an evaluation found. Print it, or `save` it as a web page, as JSON and as plain text.

    Attributes:
        rows: How many texts were evaluated.
        accuracy: The share of texts that were right; with several labels per text, exactly right.
        macro_f1: The mean F1 of the labels that occur in the truth or in the predictions.
        micro_f1: F1 over all decisions together; with one label per text this is the accuracy.
        metric: The name of the metric that this task is measured by.
        score: Its figure.
        expected_calibration_error: How far confidence is from the chance of being right (0 is best), or None
            where no confidence was given.
        per_label: A row for each label of the model, in its order, and then for each unseen label.
        confusions: All mistakes, the most frequent first.
        reliability: Confidence against accuracy in ten bins; empty where no confidence was given.
        unseen: Labels of the truth that the model does not know, most frequent first. They count as wrong.
        multi_label: Whether a text has any number of labels.
        threshold: The probability from which a label is given, where a text has any number of labels.
        cut: How many texts were shortened to fit the model.
        seconds: How long the predictions took; 0 where it was not measured.
        notes: What a reader should know before trusting the figures, in sentences.
        model: What was evaluated, or None where it was not told.
        data: What it was evaluated on, or None where it was not told.
        date: The day, as in 2025-12-31.
    """

    rows: int
    accuracy: float
    macro_f1: float
    micro_f1: float
    metric: str
    score: float
    expected_calibration_error: float | None
    per_label: tuple[LabelScore, ...]
    confusions: tuple[Confusion, ...]
    reliability: tuple[ReliabilityBin, ...]
    unseen: tuple[UnseenLabel, ...]
    multi_label: bool
    threshold: float | None
    cut: int
    seconds: float
    notes: tuple[str, ...]
    model: str | None = None
    data: str | None = None
    date: str | None = None

    @property
    def texts_per_second(self) -> float | None:
        """How many texts were predicted in a second, or None where the time was not measured."""
        return self.rows / self.seconds if self.seconds > 0 else None

    @property
    def unseen_notes(self) -> list[str]:
        """Which labels of the truth the model does not know, in a sentence if there are any."""
        return _unseen_notes(self.per_label, self.unseen)

    def __str__(self) -> str:
        from maskmatch.evaluation.text import report_text

        return report_text(self)

    def to_dict(self) -> dict[str, Any]:
        """The whole report, ready for JSON; label ids of kinds that JSON does not have become strings."""
        return {
            "model": self.model,
            "data": self.data,
            "date": self.date,
            "rows": self.rows,
            "metric": self.metric,
            "score": self.score,
            "accuracy": self.accuracy,
            "macro_f1": self.macro_f1,
            "micro_f1": self.micro_f1,
            "expected_calibration_error": self.expected_calibration_error,
            "multi_label": self.multi_label,
            "threshold": self.threshold,
            "cut": self.cut,
            "seconds": self.seconds,
            "texts_per_second": self.texts_per_second,
            "notes": list(self.notes),
            "unseen": [{"label": _json_id(each.label), "rows": each.rows} for each in self.unseen],
            "per_label": [{**vars(score), "label": _json_id(score.label)} for score in self.per_label],
            "confusions": [
                {
                    "true": _json_id(each.true),
                    "predicted": _json_id(each.predicted),
                    "count": each.count,
                    "examples": [vars(example).copy() for example in each.examples],
                }
                for each in self.confusions
            ],
            "reliability": [vars(each).copy() for each in self.reliability],
        }

    def headline(self) -> dict[str, Any]:
        """The figures that the model card tells, and what they were measured on."""
        figures = ("accuracy", "macro_f1", "micro_f1", "expected_calibration_error", "cut")
        names = ("data", "date", "rows", "metric", "score", *figures)
        values = {name.replace("_", " "): getattr(self, name) for name in names}
        rounded = {name: round(value, 4) if isinstance(value, float) else value for name, value in values.items()}
        return {name: value for name, value in rounded.items() if value is not None}

    def to_html(self) -> str:
        """The report as one web page that needs no other file, no script and no network."""
        from maskmatch.evaluation.html import report_page

        return report_page(self)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write `report.json`, `report.html` and `report.txt` into a folder, which is made if need be.

        A file of an earlier report is replaced only when its successor is complete.
        """
        contents = {
            "report.json": json.dumps(self.to_dict(), ensure_ascii=False, indent=2) + "\n",
            "report.html": self.to_html(),
            "report.txt": str(self) + "\n",
        }
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            for name, content in contents.items():
                _write_whole(Path(folder) / name, content)
        except OSError as error:
            raise MaskMatchError(
                f"The report cannot be written to {os.fspath(folder)!r} ({error.strerror}): "
                f"give a folder in which files can be made."
            ) from error


def evaluate_predictions(
    texts: Sequence[Text],
    truth: Sequence[Any],
    predicted: Sequence[Any],
    *,
    labels: Iterable[Hashable],
    confidence: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    multi_label: bool = False,
    threshold: float | None = None,
    cut: int = 0,
    seconds: float = 0.0,
    model: str | None = None,
    data: str | None = None,
    names: Mapping[Hashable, str] | None = None,
    metric: str | Metric | None = None,
    usual_metric: str = "accuracy",
    notes: Sequence[str] = (),
) -> EvaluationReport:
    """Compare predictions with the truth.

    Args:
        texts: The texts, or dicts of fields.
        truth: The true label of each text, or with `multi_label` a collection of labels for each.
        predicted: The predicted label of each text, or with `multi_label` a collection of labels for each.
        labels: The labels that the model knows, in its order.
        confidence: The probability of each predicted label, (n,); for one label per text.
        probabilities: The probability of each label, (n, K) in the order of `labels`; for `multi_label`.
        multi_label: Whether a text has any number of labels, also none.
        threshold: The probability from which a label was given; for `multi_label`.
        cut: How many texts were shortened to fit the model.
        seconds: How long the predictions took.
        model: What was evaluated, in a few words.
        data: What it was evaluated on, in a few words.
        names: How the labels read, for metrics that know some by their names; left out, their ids tell.
        metric: The metric that the score is to be, by its name or as a Metric.
        usual_metric: The task's usual metric, where none is asked for.
        notes: What else a reader of the report should know, in sentences.

    Example:
        >>> texts, labels = ["money back please", "my card is gone"], ["refund", "card lost"]
        >>> evaluate_predictions(texts, labels, ["refund", "refund"], labels=labels).accuracy
        0.5
    """
    texts = list(texts)  # a data frame's column would be looked up by its index, not by row
    known = known_labels(labels)
    true_rows = id_rows(truth, "truth", multi_label)
    predicted_rows = id_rows(predicted, "predicted", multi_label)
    check_rows(texts, true_rows, predicted_rows, known)
    bins = calibration_bins(
        true_rows, predicted_rows, known, confidence=confidence, probabilities=probabilities, multi_label=multi_label
    )
    named = {label: (names or {}).get(label, str(label)) for label in known}
    measured = measure(true_rows, predicted_rows, named, metric=metric, usual=usual_metric, multi_label=multi_label)
    run = _Run(
        metric=measured.metric.name,
        score=measured.score,
        multi_label=multi_label,
        threshold=threshold if multi_label else None,
        cut=cut,
        seconds=seconds,
        model=model,
        data=data,
        date=date.today().isoformat(),
    )
    told = (*notes, *measured.notes)
    return _compare(texts, true_rows, predicted_rows, known, run=run, bins=bins, told=told)


@dataclass(frozen=True)
class _Run:
    """How the predictions were made and measured: what the report repeats."""

    metric: str
    score: float
    multi_label: bool
    threshold: float | None
    cut: int
    seconds: float
    model: str | None
    data: str | None
    date: str


def _compare(
    texts: Sequence[Text],
    truth: Sequence[Row],
    predicted: Sequence[Row],
    known: Mapping[Hashable, None],
    *,
    run: _Run,
    bins: tuple[ReliabilityBin, ...],
    told: tuple[str, ...],
) -> EvaluationReport:
    # One label per text is the case of one-element rows: exact matches are then plain accuracy.
    per_label = tuple(metrics.multi_label_scores(truth, predicted, known))
    unseen = _unseen(truth, known)
    notes = [*_notes(len(truth), per_label, unseen, run.cut), *_calibration_note(bins, run.multi_label)]
    return EvaluationReport(
        rows=len(truth),
        accuracy=metrics.multi_label_accuracy(truth, predicted),
        macro_f1=metrics.multi_label_macro_f1(truth, predicted),
        micro_f1=metrics.multi_label_micro_f1(truth, predicted),
        expected_calibration_error=metrics.expected_calibration_error(bins) if bins else None,
        per_label=per_label,
        confusions=_confusions(texts, truth, predicted),
        reliability=bins,
        unseen=unseen,
        notes=(*told, *notes),
        **vars(run),
    )


def _confusions(texts: Sequence[Text], truth: Sequence[Row], predicted: Sequence[Row]) -> tuple[Confusion, ...]:
    rows_of: dict[tuple[Hashable, Hashable], list[int]] = {}
    for row, (true, guess) in enumerate(zip(truth, predicted, strict=True)):
        missed = [label for label in true if label not in guess]
        added = [label for label in guess if label not in true]
        if missed or added:
            for pair in product(missed or [None], added or [None]):
                rows_of.setdefault(pair, []).append(row)
    worst_first = sorted(rows_of.items(), key=lambda item: -len(item[1]))
    return tuple(
        Confusion(
            true=true,
            predicted=guess,
            count=len(rows),
            examples=tuple(Example(row, _begin(texts[row])) for row in rows[:EXAMPLES_PER_CONFUSION]),
        )
        for (true, guess), rows in worst_first
    )


def _begin(text: Text) -> str:
    """How a text begins, on one line; a dict of fields as "field: value | field: value"."""
    if isinstance(text, Mapping):
        text = " | ".join(f"{name}: {one_line(str(value))}" for name, value in text.items() if value is not None)
    return shorten(text, EXAMPLE_LENGTH)


def _unseen(truth: Sequence[Row], known: Mapping[Hashable, None]) -> tuple[UnseenLabel, ...]:
    counts = Counter(label for ids in truth for label in ids if label not in known)
    return tuple(UnseenLabel(label, rows) for label, rows in counts.most_common())


def _notes(rows: int, per_label: Sequence[LabelScore], unseen: Sequence[UnseenLabel], cut: int) -> list[str]:
    notes = _unseen_notes(per_label, unseen)
    if cut:
        notes.append(f"{counted(cut, 'text')} of {rows:,} had to be shortened to fit the model.")
    absent = sum(not score.occurs for score in per_label)
    if absent:
        notes.append(
            f"{counted(absent, 'label')} of the model occurred neither in the truth nor in the predictions "
            f"and had no part in macro-F1."
        )
    return notes


def _calibration_note(bins: Sequence[ReliabilityBin], multi_label: bool) -> list[str]:
    if bins:
        return []
    missing = "probabilities were" if multi_label else "confidence was"
    return [f"Calibration was not measured, because no {missing} given."]


def _unseen_notes(per_label: Sequence[LabelScore], unseen: Sequence[UnseenLabel]) -> list[str]:
    """What a reader should know of labels that the model does not know, in a sentence if there are any."""
    if not unseen:
        return []
    names = LabelNames(score.label for score in per_label)
    named = [
        f"{shorten_name(names[each.label], 40)} ({counted(each.rows, 'row')})" for each in unseen[:_LABELS_IN_NOTE]
    ]
    if len(unseen) > _LABELS_IN_NOTE:
        named.append(f"and {len(unseen) - _LABELS_IN_NOTE:,} more")
    are, their = ("is", "its") if len(unseen) == 1 else ("are", "their")
    return [
        f"{counted(len(unseen), 'label')} of the truth {are} unknown to the model, "
        f"so {their} rows count as wrong: {', '.join(named)}."
    ]


def _json_id(label: Hashable) -> str | int | float | None:
    if isinstance(label, float) and not math.isfinite(label):
        return str(label)
    return label if label is None or isinstance(label, (str, int, float)) else str(label)


def _write_whole(path: Path, content: str) -> None:
    """Write beside the file and then take its place, so that nobody ever reads half a report."""
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        # Lone surrogates, which broken data may hold, have no UTF-8 form.
        beside.write_bytes(content.encode("utf-8", errors="replace"))
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
