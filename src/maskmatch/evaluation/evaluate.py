"""Compare predictions with the true labels, and report the result."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.evaluation import scores
from maskmatch.evaluation.calibration import calibration_bins, expected_calibration_error
from maskmatch.evaluation.display import counted, excerpt
from maskmatch.evaluation.intervals import intervals_of, wilson
from maskmatch.evaluation.metrics import measure
from maskmatch.evaluation.report import Confusion, EvaluationReport, Example, UnseenLabel, unseen_notes
from maskmatch.evaluation.selective import answered_point, risk_coverage
from maskmatch.evaluation.validation import check_label_ids, check_labels, check_rows

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from maskmatch.evaluation.calibration import ReliabilityBin
    from maskmatch.evaluation.intervals import Interval
    from maskmatch.evaluation.metrics import Metric
    from maskmatch.evaluation.scores import LabelScore
    from maskmatch.evaluation.selective import SelectivePoint
    from maskmatch.evaluation.validation import LabelIds, Text


EXAMPLES_PER_CONFUSION = 3


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
    abstain: float = 0.0,
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
        truth: The true label of each text, or, with `multi_label`, a collection of labels per text.
        predicted: The predicted label of each text, or, with `multi_label`, a collection of labels per text.
        labels: The model's labels, in its order.
        confidence: The probability of each predicted label, (n,); for one label per text.
        probabilities: The probability of each label, (n, K) in the order of `labels`; for `multi_label`.
        multi_label: Whether a text has any number of labels, including none.
        threshold: The probability from which a label is predicted; for `multi_label`.
        abstain: The confidence from which a text is answered; for one label per text. Accuracy counts all texts.
        cut: The number of texts that were truncated to fit the model.
        seconds: The time that the predictions took.
        model: The evaluated model, in a few words.
        data: The evaluation data, in a few words.
        names: The names of the labels, for metrics that look for certain names; by default, the ids.
        metric: The metric of the score, by name or as a Metric.
        usual_metric: The task's usual metric, used if `metric` is None.
        notes: Additional notes for the reader of the report, in sentences.

    Example:
        >>> texts, labels = ["money back please", "my card is gone"], ["refund", "card lost"]
        >>> evaluate_predictions(texts, labels, ["refund", "refund"], labels=labels).accuracy
        0.5
    """
    texts = list(texts)  # a pandas series would be indexed by its index, not by row number
    known = check_labels(labels)
    true_rows = check_label_ids(truth, "truth", multi_label)
    predicted_rows = check_label_ids(predicted, "predicted", multi_label)
    check_rows(texts, true_rows, predicted_rows, known)
    bins = calibration_bins(
        true_rows, predicted_rows, known, confidence=confidence, probabilities=probabilities, multi_label=multi_label
    )
    label_names = {label: (names or {}).get(label, str(label)) for label in known}
    result = measure(true_rows, predicted_rows, label_names, metric=metric, usual=usual_metric, multi_label=multi_label)
    intervals = intervals_of(true_rows, predicted_rows, label_names, result, several=multi_label)
    right = [true == guess for true, guess in zip(true_rows, predicted_rows, strict=True)]
    answered = None if multi_label or confidence is None else answered_point(confidence, right, abstain)
    if answered is not None and confidence is not None:
        given = np.asarray(confidence, np.float64) >= abstain
        intervals["answered_accuracy"] = wilson(int(np.asarray(right)[given].sum()), int(given.sum()))
    run = _Run(
        metric=result.metric.name,
        score=result.score,
        multi_label=multi_label,
        threshold=threshold if multi_label else None,
        selective=() if multi_label or confidence is None else risk_coverage(confidence, right),
        abstain=abstain,
        answered=answered,
        intervals=intervals,
        cut=cut,
        seconds=seconds,
        model=model,
        data=data,
        date=date.today().isoformat(),
    )
    return _compare(texts, true_rows, predicted_rows, known, run=run, bins=bins, notes=(*notes, *result.notes))


@dataclass(frozen=True)
class _Run:
    """The settings of the evaluation, which the report repeats."""

    metric: str
    score: float
    multi_label: bool
    threshold: float | None
    selective: tuple[SelectivePoint, ...]
    abstain: float
    answered: SelectivePoint | None
    intervals: dict[str, Interval]
    cut: int
    seconds: float
    model: str | None
    data: str | None
    date: str


def _compare(
    texts: Sequence[Text],
    truth: Sequence[LabelIds],
    predicted: Sequence[LabelIds],
    known: Mapping[Hashable, None],
    *,
    run: _Run,
    bins: tuple[ReliabilityBin, ...],
    notes: tuple[str, ...],
) -> EvaluationReport:
    # One label per text is multi-label data with one label in each row; subset accuracy is then plain accuracy.
    per_label = tuple(scores.multi_label_scores(truth, predicted, known))
    unseen = _unseen_labels(truth, known)
    return EvaluationReport(
        rows=len(truth),
        accuracy=scores.multi_label_accuracy(truth, predicted),
        macro_f1=scores.multi_label_macro_f1(truth, predicted),
        micro_f1=scores.multi_label_micro_f1(truth, predicted),
        expected_calibration_error=expected_calibration_error(bins) if bins else None,
        per_label=per_label,
        confusions=_confusions(texts, truth, predicted),
        reliability=bins,
        unseen=unseen,
        notes=(
            *notes,
            *_label_notes(len(truth), per_label, unseen, run.cut),
            *_calibration_notes(bins, run.multi_label),
        ),
        **vars(run),
    )


def _confusions(
    texts: Sequence[Text], truth: Sequence[LabelIds], predicted: Sequence[LabelIds]
) -> tuple[Confusion, ...]:
    rows_of: dict[tuple[Hashable, Hashable], list[int]] = {}
    for row, (true, guess) in enumerate(zip(truth, predicted, strict=True)):
        false_negatives = [label for label in true if label not in guess]
        false_positives = [label for label in guess if label not in true]
        if false_negatives or false_positives:
            for pair in product(false_negatives or [None], false_positives or [None]):
                rows_of.setdefault(pair, []).append(row)
    most_frequent_first = sorted(rows_of.items(), key=lambda item: -len(item[1]))
    return tuple(
        Confusion(
            true=true,
            predicted=guess,
            count=len(rows),
            examples=tuple(Example(row, excerpt(texts[row])) for row in rows[:EXAMPLES_PER_CONFUSION]),
        )
        for (true, guess), rows in most_frequent_first
    )


def _unseen_labels(truth: Sequence[LabelIds], known: Mapping[Hashable, None]) -> tuple[UnseenLabel, ...]:
    counts = Counter(label for ids in truth for label in ids if label not in known)
    return tuple(UnseenLabel(label, rows) for label, rows in counts.most_common())


def _label_notes(rows: int, per_label: Sequence[LabelScore], unseen: Sequence[UnseenLabel], cut: int) -> list[str]:
    notes = unseen_notes(per_label, unseen)
    if cut:
        were = "was" if cut == 1 else "were"
        notes.append(f"{counted(cut, 'text')} of {rows:,} {were} truncated to fit the model.")
    absent = sum(not score.occurs for score in per_label)
    if absent:
        notes.append(
            f"{counted(absent, 'label')} of the model occurred neither in the truth nor in the predictions "
            f"and did not count in macro-F1."
        )
    return notes


def _calibration_notes(bins: Sequence[ReliabilityBin], multi_label: bool) -> list[str]:
    if bins:
        return []
    missing = "probabilities were" if multi_label else "confidence was"
    return [f"Calibration was not measured because no {missing} given."]
