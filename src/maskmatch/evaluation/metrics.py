"""The table of metrics by name, with the usual metrics of relation and stance tasks.

To add a metric, write its function and add a row to `METRICS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

from maskmatch.errors import MaskMatchError
from maskmatch.evaluation.scores import (
    multi_label_accuracy,
    multi_label_macro_f1,
    multi_label_micro_f1,
    multi_label_scores,
    pooled_f1,
)
from maskmatch.labels import readable

Rows = Sequence[Collection[Hashable]]
"""The labels of each text: one, or any number in multi-label data."""

Names = Mapping[Hashable, str]
"""The name of each label."""

NO_RELATION = ("no relation", "none", "na", "n a", "unrelated", "other")
"""Names of the class for "no relation"; if several occur, the first one is that class."""

FAVOR = ("favor", "favour", "in favor", "in favour", "pro", "support")
AGAINST = ("against", "anti", "con", "oppose", "opposed")
DIRECTED = re.compile(r"(?P<relation>.*\S)\s*\((?P<direction>e1,\s*e2|e2,\s*e1)\)")
"""The notation of labels in SemEval-2010 task 8, such as Cause-Effect(e1,e2)."""


@dataclass(frozen=True)
class Metric:
    """A metric.

    Args:
        name: The metric's name.
        description: What it measures, in a few words.
        score: The function that computes it, from true labels, predicted labels and the names of the labels.
        multi_label: Whether it is defined for texts with any number of labels.
    """

    name: str
    description: str
    score: Callable[[Rows, Rows, Names], float]
    multi_label: bool = True


@dataclass(frozen=True)
class MetricResult:
    """The score of a metric, with notes on the choice of the metric."""

    metric: Metric
    score: float
    notes: tuple[str, ...] = ()


def micro_f1_without(*labels: Hashable) -> Metric:
    """Micro-F1 without some labels: neither their true positives nor their errors count.

    >>> micro_f1_without("none").score([["a"], ["none"], ["b"]], [["a"], ["a"], ["none"]], {})
    0.5
    """

    def score(truth: Rows, predicted: Rows, names: Names) -> float:
        scores = multi_label_scores(truth, predicted)
        return pooled_f1([each for each in scores if each.label not in labels])

    return Metric(f"micro-f1 without {', '.join(map(str, labels))}", "micro-F1 over the other labels", score)


def mean_f1_of(*labels: Hashable) -> Metric:
    """The unweighted mean F1 of some labels. The other labels only count as errors.

    >>> mean_f1_of("favor", "against").score([["favor"], ["none"], ["none"]], [["favor"], ["none"], ["against"]], {})
    0.5
    """

    def score(truth: Rows, predicted: Rows, names: Names) -> float:
        f1 = {each.label: each.f1 for each in multi_label_scores(truth, predicted, labels)}
        return sum(f1[label] for label in labels) / len(labels)

    return Metric(f"mean f1 of {', '.join(map(str, labels))}", "the mean F1 of these labels", score)


def directed_macro_f1(relations: Mapping[Hashable, tuple[str, str] | None]) -> Metric:
    """The official metric of SemEval-2010 task 8: macro-F1 over relations, with both directions of one pooled.

    The correct relation in the wrong direction is an error: it counts as predicted, but not as a true positive.

    Args:
        relations: The relation and direction of each label, such as ``("Cause-Effect", "e1,e2")``; None for the label
            that is no relation (Other), which is left out of the mean.

    >>> relations = {"causes": ("cause", "e1,e2"), "is caused by": ("cause", "e2,e1"), "other": None}
    >>> truth, predicted = [["causes"], ["causes"], ["other"]], [["causes"], ["is caused by"], ["other"]]
    >>> directed_macro_f1(relations).score(truth, predicted, {})
    0.5
    """

    def score(truth: Rows, predicted: Rows, names: Names) -> float:
        return _directed_macro_f1(truth, predicted, relations)

    return Metric("directed macro-f1", "macro-F1 over directed relations", score, multi_label=False)


def _directed_macro_f1(truth: Rows, predicted: Rows, relations: Mapping[Hashable, tuple[str, str] | None]) -> float:
    counts: dict[str, list[int]] = {}  # per relation: true positives, predicted, support
    for (true,), (guess,) in zip(truth, predicted, strict=True):
        for label in (true, guess):
            if label not in relations:
                raise MaskMatchError(
                    f"The label {label!r} has no relation and direction; give them, or None if it is no relation."
                )
        for column, label in ((1, guess), (2, true)):
            directed = relations[label]
            if directed is not None:
                counts.setdefault(directed[0], [0, 0, 0])[column] += 1
        directed = relations[true]
        if directed is not None and directed == relations[guess]:
            counts[directed[0]][0] += 1
    f1s = [2 * correct / (predictions + support) for correct, predictions, support in counts.values()]
    return sum(f1s) / len(f1s) if f1s else 0.0


def _relation_micro_f1(truth: Rows, predicted: Rows, names: Names) -> float:
    none = _labels_named(names, NO_RELATION)
    return micro_f1_without(*none[:1]).score(truth, predicted, names)


def _stance_f1(truth: Rows, predicted: Rows, names: Names) -> float:
    favor, against = _labels_named(names, FAVOR), _labels_named(names, AGAINST)
    if not favor or not against:
        raise MaskMatchError(
            "The metric stance-f1 needs a label named favor and one named against; "
            f"the labels are {_listed(names)}, so choose another metric, such as macro-f1."
        )
    return mean_f1_of(favor[0], against[0]).score(truth, predicted, names)


def _semeval_2010_8(truth: Rows, predicted: Rows, names: Names) -> float:
    relations: dict[Hashable, tuple[str, str] | None] = {}
    others = _labels_named(names, NO_RELATION)
    for label, name in names.items():
        match = DIRECTED.fullmatch(str(label).strip()) or DIRECTED.fullmatch(name.strip())
        if match is None and label not in others:
            raise MaskMatchError(
                f"The metric semeval-2010-8 needs labels that end in (e1,e2) or (e2,e1), and {label!r} does not; "
                "give metric=directed_macro_f1({label: (relation, direction), …}) for labels with other names."
            )
        relations[label] = None if match is None else (match["relation"], match["direction"].replace(" ", ""))
    return _directed_macro_f1(truth, predicted, relations)


def _labels_named(names: Names, wanted: Sequence[str]) -> list[Hashable]:
    """The labels with one of the wanted names, as words and ignoring case, in the order of the wanted names."""
    by_name = {readable(name).casefold(): label for label, name in names.items()}
    return [by_name[name] for name in wanted if name in by_name]


def _listed(names: Names) -> str:
    shown = [repr(name) for name in list(names.values())[:5]]
    return ", ".join([*shown, "…"] if len(names) > 5 else shown)


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "the fraction of correct texts", lambda t, p, _: multi_label_accuracy(t, p)),
        Metric("micro-f1", "F1 over all predictions", lambda t, p, _: multi_label_micro_f1(t, p)),
        Metric("macro-f1", "the mean F1 of all labels", lambda t, p, _: multi_label_macro_f1(t, p)),
        Metric("relation-micro-f1", "micro-F1 without the class for no relation", _relation_micro_f1),
        Metric("semeval-2010-8", "macro-F1 over directed relations", _semeval_2010_8, multi_label=False),
        Metric("stance-f1", "the mean F1 of favor and against", _stance_f1),
    )
}
"""The metrics by name."""


def find_metric(metric: str | Metric) -> Metric:
    """Look up a metric by name; a Metric is returned unchanged."""
    if isinstance(metric, Metric):
        return metric
    if not isinstance(metric, str) or metric not in METRICS:
        raise MaskMatchError(f"There is no metric {metric!r}; choose one of {', '.join(METRICS)}.")
    return METRICS[metric]


def measure(
    truth: Rows,
    predicted: Rows,
    names: Names,
    *,
    metric: str | Metric | None = None,
    usual: str | Metric = "accuracy",
    multi_label: bool = False,
) -> MetricResult:
    """Score predictions with the requested metric, or with the task's usual metric.

    If the usual metric does not apply to the labels, accuracy (micro-F1 for multi-label data) replaces it, with a note.

    Args:
        truth: The true labels of each text.
        predicted: The predicted labels of each text.
        names: The names of the model's labels; labels that occur only in the truth are added.
        metric: The requested metric; it raises if it does not apply to the labels.
        usual: The task's usual metric, used if no metric is requested.
        multi_label: Whether a text may have any number of labels; micro-F1 then replaces accuracy.
    """
    unseen = {label: str(label) for row in truth for label in row if label not in names}
    names = {**names, **unseen}
    if metric is not None:
        requested = find_metric(metric)
        if multi_label and not requested.multi_label:
            raise MaskMatchError(f"The metric {requested.name} is for one label per text; choose micro-f1 or macro-f1.")
        return MetricResult(requested, requested.score(truth, predicted, names))
    chosen = find_metric(usual)
    if multi_label and (chosen.name == "accuracy" or not chosen.multi_label):
        chosen = METRICS["micro-f1"]
    try:
        return MetricResult(chosen, chosen.score(truth, predicted, names))
    except MaskMatchError as error:
        fallback = METRICS["micro-f1" if multi_label else "accuracy"]
        note = f"The score is {fallback.name} instead of the task's usual metric. {error}"
        return MetricResult(fallback, fallback.score(truth, predicted, names), (note,))
