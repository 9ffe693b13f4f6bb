"""check_labels: find problems of label names, before training or after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.data import take_examples, take_texts
from maskmatch.errors import MaskMatchError
from maskmatch.evaluation.display import counted
from maskmatch.label_tools.check.advice import Trials
from maskmatch.label_tools.check.finders import (
    TEXTS_PER_LABEL,
    by_stake,
    find_bad_names,
    find_close,
    find_confused,
    find_partial_descriptions,
    find_unmatched_and_crowding,
)
from maskmatch.label_tools.check.informativeness import measure
from maskmatch.label_tools.check.label_texts import LabelTexts
from maskmatch.label_tools.check.report import LabelCheck
from maskmatch.label_tools.expansion import EncodedLabels
from maskmatch.labels import LabelSet, LabelsLike

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maskmatch.evaluation import EvaluationReport
    from maskmatch.label_tools.check.findings import Advice, Finding
    from maskmatch.label_tools.check.informativeness import Informativeness
    from maskmatch.matcher import MaskMatcher
    from maskmatch.prediction.editing import EditablePredictor

ENOUGH_TEXTS = 100
"""With this many texts, low confidence is reported however many labels there are."""

UNTRIED = "Without true labels no edit of a label can be tried; maskmatch adapt learns from texts without labels."

LOW_COMMITMENT = 0.3
"""Below this, names gained less than 25 points of zero-shot accuracy on the label sets that were studied."""


def check_labels(
    matcher: MaskMatcher,
    labels: LabelsLike | None = None,
    *,
    texts: Any = None,
    test: Any = None,
) -> LabelCheck:
    """Find names that are uninformative, too close to each other, or nearest to no text.

    Args:
        matcher: The classifier that encodes names and texts, trained or not.
        labels: The labels; None for the classifier's labels.
        texts: Unlabelled texts, such as those to be classified later.
        test: Labelled texts, ``(texts, labels)`` or a data frame with both: they show which labels the classifier
            confuses. They need the classifier's labels, so ``labels`` must be left out.
    """
    if not hasattr(matcher, "bank"):
        raise MaskMatchError("check_labels takes a classifier first: check_labels(matcher, labels).")
    encoded = EncodedLabels(matcher, _labels_to_check(matcher, labels, test))
    rows = None if texts is None else take_texts(texts, matcher.config.input_fields)
    report, label_texts = (None, None) if test is None else _evaluate(matcher, encoded.labels, test)
    if rows is None and label_texts is not None:
        rows = list(label_texts.texts)
    vectors = None if rows is None else encoded.encode_texts(rows)  # (n, dim)
    pair_notes = _untrained_pair_notes(matcher)
    measured = measure(encoded, vectors)
    findings = _name_findings(encoded, measured)
    if vectors is None:
        notes = ["Without texts, names that are nearest to no text cannot be found."]
    elif pair_notes:
        notes = pair_notes
    else:
        nearest = np.asarray((vectors @ encoded.shifted_vectors.T).argmax(axis=1))  # (n,)
        findings += find_unmatched_and_crowding(encoded, nearest, label_texts)
        notes = _too_few_notes(len(nearest), len(encoded.labels))
    if report is not None and label_texts is not None:
        findings += find_confused(encoded.labels, report, label_texts)
        notes += report.unseen_notes
    advice: list[Advice] = []
    improved = encoded.labels
    several = matcher.config.multi_label
    if label_texts is not None and not pair_notes and not several:
        own = vectors if texts is None and vectors is not None else encoded.encode_texts(label_texts.texts)
        advice, improved = Trials(encoded, label_texts, own).advise()
    elif vectors is not None and label_texts is None and not pair_notes:
        notes += [UNTRIED]
    return LabelCheck(
        labels=encoded.labels,
        informativeness=measured,
        findings=tuple(by_stake(findings, report)),
        advice=tuple(advice),
        improved=improved,
        vectors=encoded.shifted_vectors,
        model=matcher.name,
        texts=0 if rows is None else len(rows),
        accuracy=None if report is None else report.accuracy,
        notes=(*notes, *_label_set_notes(measured, 0 if rows is None else len(rows), len(encoded.labels))),
    )


class NameCheck:
    """Finds problems of label names alone, again and again: names that it has seen are not encoded again.

    Args:
        predictor: The classifier or export that encodes names.
    """

    def __init__(self, predictor: EditablePredictor) -> None:
        self._predictor = predictor
        self._cache: dict[str, NDArray[np.float32]] = {}

    def find(self, labels: LabelSet) -> list[Finding]:
        """The problems of these names."""
        encoded = EncodedLabels(self._predictor, labels, self._cache)
        return _name_findings(encoded, measure(encoded))


def _name_findings(encoded: EncodedLabels, measured: Informativeness) -> list[Finding]:
    return find_bad_names(encoded, measured) + find_close(encoded) + find_partial_descriptions(encoded.labels)


def _labels_to_check(matcher: MaskMatcher, labels: LabelsLike | None, test: Any) -> LabelSet:
    known = matcher.labels if labels is None else LabelSet.of(labels)
    if known is None:
        raise MaskMatchError("There are no labels to check: give them to check_labels or to from_pretrained.")
    if test is not None and labels is not None and matcher.labels != known:
        raise MaskMatchError("Labelled texts show confusions of the classifier's own labels; leave labels out.")
    return known


def _evaluate(matcher: MaskMatcher, labels: LabelSet, test: Any) -> tuple[EvaluationReport, LabelTexts]:
    """Evaluate the classifier on labelled texts, and group these by label."""
    given, targets = test if isinstance(test, tuple) else (test, None)
    rows = take_examples(given, targets, matcher.config.input_fields)
    report = matcher.evaluate(rows.texts, rows.labels)
    label_texts = LabelTexts.from_labels(rows.texts, rows.labels or [], labels)
    if not any(map(len, label_texts.rows)):
        raise MaskMatchError(
            "None of the labelled texts has one of the labels to check; give texts with the classifier's labels."
        )
    return report, label_texts


def _too_few_notes(texts: int, labels: int) -> list[str]:
    """State what could not be checked, if there are too few texts."""
    if texts >= TEXTS_PER_LABEL * labels:
        return []
    return [
        f"{counted(texts, 'text')} {'is' if texts == 1 else 'are'} too few to find which of {counted(labels, 'name')} "
        f"are nearest to no text or to too many; give {TEXTS_PER_LABEL * labels} or more."
    ]


def _untrained_pair_notes(matcher: MaskMatcher) -> list[str]:
    """State what a method for pairs cannot find before training."""
    if matcher.training_ is not None or not matcher.config.method.reads_pairs:
        return []
    return [
        f"The method {matcher.config.method.name} learns in training what the distance of two texts means, so names "
        "that are nearest to no text cannot be found before training; mask-matching encodes a pair as a whole."
    ]


def _label_set_notes(measured: Informativeness, texts: int, labels: int) -> list[str]:
    """State what applies to the label set as a whole: low confidence of texts, or a single label."""
    notes = []
    enough = texts >= min(TEXTS_PER_LABEL * labels, ENOUGH_TEXTS)
    if enough and measured.commitment is not None and measured.commitment < LOW_COMMITMENT:
        notes.append(
            f"Most texts have no confident label (informativeness {measured.commitment:.2f} of 1): expect low accuracy "
            "from names alone; train with labelled rows, or use words of the texts in the names."
        )
    if labels < 2:
        notes.append("There is only one label, so there is no other name to compare it with.")
    return notes
