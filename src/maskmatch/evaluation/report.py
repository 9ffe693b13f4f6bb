"""The result of an evaluation, as one object that prints itself and saves itself as HTML, JSON and text."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError
from maskmatch.evaluation.display import LabelNames, counted, shorten_name
from maskmatch.files import write_text

if TYPE_CHECKING:
    import os
    from collections.abc import Hashable, Mapping, Sequence

    from maskmatch.evaluation.calibration import ReliabilityBin
    from maskmatch.evaluation.intervals import Interval
    from maskmatch.evaluation.scores import LabelScore
    from maskmatch.evaluation.selective import SelectivePoint

_LABELS_IN_NOTE = 10


@dataclass(frozen=True)
class Example:
    """A text of the evaluated data: its row, counted from 0, and its first 500 characters at most."""

    row: int
    text: str


@dataclass(frozen=True)
class Confusion:
    """A cell of the confusion matrix off the diagonal: a true label and the wrong label predicted for it.

    In multi-label data, each false negative of a text is paired with each of its false positives. `predicted` is None
    if a text has only false negatives, `true` is None if it has only false positives.
    """

    true: Hashable
    predicted: Hashable
    count: int
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class UnseenLabel:
    """A true label that is not a label of the model, and its number of rows."""

    label: Hashable
    rows: int


@dataclass(frozen=True)
class EvaluationReport:
    """The result of an evaluation. Print it, or `save` it as a web page, as JSON and as plain text.

    Attributes:
        rows: The number of evaluated texts.
        accuracy: The fraction of correct texts; in multi-label data, of texts with exactly the true labels.
        macro_f1: The mean F1 of the labels that occur in the truth or in the predictions.
        micro_f1: The F1 over all predictions; with one label per text it equals the accuracy.
        metric: The name of the metric that this task is scored with.
        score: The value of that metric.
        expected_calibration_error: The mean difference between confidence and accuracy (0 is best), or None without
            confidence values.
        per_label: The scores of each label of the model, in its order, then of each unseen label.
        confusions: All errors, the most frequent first.
        reliability: Confidence against accuracy in ten bins; empty without confidence values.
        unseen: True labels that the model does not have, most frequent first. Their rows count as errors.
        multi_label: Whether a text has any number of labels.
        threshold: The probability from which a label is predicted, in multi-label data.
        selective: Accuracy by coverage, if the least confident texts are not answered; empty without confidence values
            and in multi-label data.
        abstain: The confidence from which a text is answered; 0: all are.
        answered: The coverage, and the accuracy on answered texts; None if `abstain` is 0, or no text is answered.
        cut: The number of texts that were truncated to fit the model.
        seconds: The time that the predictions took; 0 if it was not measured.
        notes: Caveats that a reader of the scores should know, in sentences.
        model: The evaluated model, or None if it was not given.
        data: The data that it was evaluated on, or None if it was not given.
        date: The date, such as 2025-12-31.
        intervals: The 95% confidence intervals of score, accuracy, macro_f1, micro_f1 and answered_accuracy, by name.
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
    selective: tuple[SelectivePoint, ...]
    abstain: float
    answered: SelectivePoint | None
    cut: int
    seconds: float
    notes: tuple[str, ...]
    model: str | None = None
    data: str | None = None
    date: str | None = None
    intervals: Mapping[str, Interval] = field(default_factory=dict)

    @property
    def texts_per_second(self) -> float | None:
        """The number of texts predicted per second, or None if the time was not measured."""
        return self.rows / self.seconds if self.seconds > 0 else None

    @property
    def unseen_notes(self) -> list[str]:
        """One sentence on the true labels that the model does not have; empty if there are none."""
        return unseen_notes(self.per_label, self.unseen)

    def __str__(self) -> str:
        from maskmatch.evaluation.text_report import report_text

        return report_text(self)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-compatible values. Label ids of types that JSON lacks become strings."""
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
            "intervals": {name: vars(each).copy() for name, each in self.intervals.items()},
            "multi_label": self.multi_label,
            "threshold": self.threshold,
            "abstain": self.abstain,
            "answered": None if self.answered is None else vars(self.answered).copy(),
            "risk_coverage": [vars(each).copy() for each in self.selective],
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
        """The scores that the model card shows, and the data they were measured on."""
        scores = ("accuracy", "macro_f1", "micro_f1", "expected_calibration_error", "cut")
        names = ("data", "date", "rows", "metric", "score", *scores)
        values = {name.replace("_", " "): getattr(self, name) for name in names}
        rounded = {name: round(value, 4) if isinstance(value, float) else value for name, value in values.items()}
        return {name: value for name, value in rounded.items() if value is not None}

    def to_html(self) -> str:
        """The report as a self-contained web page, without scripts, other files or network access."""
        from maskmatch.evaluation.html import report_page

        return report_page(self)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write `report.json`, `report.html` and `report.txt` into a folder, which is created if needed.

        Each file is replaced atomically.
        """
        contents = {
            "report.json": json.dumps(self.to_dict(), ensure_ascii=False, indent=2) + "\n",
            "report.html": self.to_html(),
            "report.txt": str(self) + "\n",
        }
        try:
            for name, content in contents.items():
                write_text(Path(folder) / name, content, errors="replace")  # UTF-8 cannot encode lone surrogates
        except MaskMatchError as error:
            raise MaskMatchError(f"The report cannot be saved; choose a writable folder: {error}") from error


def unseen_notes(per_label: Sequence[LabelScore], unseen: Sequence[UnseenLabel]) -> list[str]:
    """One sentence on the true labels that the model does not have; empty if there are none."""
    if not unseen:
        return []
    names = LabelNames(score.label for score in per_label)
    listed = [
        f"{shorten_name(names[each.label], 40)} ({counted(each.rows, 'row')})" for each in unseen[:_LABELS_IN_NOTE]
    ]
    if len(unseen) > _LABELS_IN_NOTE:
        listed.append(f"and {len(unseen) - _LABELS_IN_NOTE:,} more")
    are, their = ("is", "its") if len(unseen) == 1 else ("are", "their")
    notes = [
        f"{counted(len(unseen), 'true label')} {are} unknown to the model, "
        f"so {their} rows count as errors: {', '.join(listed)}."
    ]
    strange = {each.label for each in unseen}
    known = {str(score.label).casefold(): score.label for score in per_label if score.label not in strange}
    near = {label: get_close_matches(str(label).casefold(), known, n=1) for label in strange}
    meant = [f"{known[found[0]]!r} for {label!r}" for label, found in near.items() if found]
    if meant:
        notes.append(f"Do some labels only read otherwise? Perhaps {', '.join(sorted(meant)[:_LABELS_IN_NOTE])}.")
    return notes


def _json_id(label: Hashable) -> str | int | float | None:
    if isinstance(label, float) and not math.isfinite(label):
        return str(label)
    return label if label is None or isinstance(label, (str, int, float)) else str(label)
