"""The metrics that tasks are usually measured by: one table, from names to functions over true and predicted labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

from maskmatch.errors import MaskMatchError
from maskmatch.evaluation import metrics
from maskmatch.labels import readable

Rows = Sequence[Collection[Hashable]]
"""The labels of each text: one, or where texts may have several any number."""

Names = Mapping[Hashable, str]
"""How each label reads."""

NO_RELATION = ("no relation", "none", "na", "n a", "unrelated", "other")
"""How the class that is no relation is called; the first of these that there is."""

FAVOR = ("favor", "favour", "in favor", "in favour", "pro", "support")
AGAINST = ("against", "anti", "con", "oppose", "opposed")
DIRECTED = re.compile(r"(?P<relation>.*\S)\s*\((?P<direction>e1,\s*e2|e2,\s*e1)\)")
"""How the labels of SemEval-2010 task 8 are written: Cause-Effect(e1,e2)."""


@dataclass(frozen=True)
class Metric:
    """A way to put a figure on predictions.

    Args:
        name: The metric's name.
        description: What it counts, in a few words.
        score: From true labels, predicted labels and the labels' names to the figure.
        several: Whether it is defined where a text may have several labels.
    """

    name: str
    description: str
    score: Callable[[Rows, Rows, Names], float]
    several: bool = True


@dataclass(frozen=True)
class Measured:
    """A metric's figure, and what a reader should know about the choice of the metric."""

    metric: Metric
    score: float
    notes: tuple[str, ...] = ()


def micro_f1_without(*labels: Hashable) -> Metric:
    """Micro-F1 in which some labels do not count: neither those that are found nor those that are given.

    >>> micro_f1_without("none").score([["a"], ["none"], ["b"]], [["a"], ["a"], ["none"]], {})
    0.5
    """

    def score(truth: Rows, predicted: Rows, names: Names) -> float:
        found = metrics.multi_label_scores(truth, predicted)
        return metrics.pooled_f1([each for each in found if each.label not in labels])

    return Metric(f"micro-f1 without {', '.join(map(str, labels))}", "F1 over the decisions on the other labels", score)


def mean_f1_of(*labels: Hashable) -> Metric:
    """The mean F1 of some labels, each counting the same; the others only count as mistakes.

    >>> mean_f1_of("favor", "against").score([["favor"], ["none"], ["none"]], [["favor"], ["none"], ["against"]], {})
    0.5
    """

    def score(truth: Rows, predicted: Rows, names: Names) -> float:
        found = {each.label: each.f1 for each in metrics.multi_label_scores(truth, predicted, labels)}
        return sum(found[label] for label in labels) / len(labels)

    return Metric(f"mean f1 of {', '.join(map(str, labels))}", "the mean F1 of these labels", score)


def directed_macro_f1(relations: Mapping[Hashable, tuple[str, str] | None]) -> Metric:
    """The official figure of SemEval-2010 task 8: macro-F1 over relations, of which both directions are one.

    A right relation in the wrong direction is wrong: it counts as given and not as found.

    Args:
        relations: For each label its relation and direction, such as ``("Cause-Effect", "e1,e2")``; None for the
            label that is no relation (Other), which is left out of the mean.

    >>> relations = {"causes": ("cause", "e1,e2"), "is caused by": ("cause", "e2,e1"), "other": None}
    >>> truth, predicted = [["causes"], ["causes"], ["other"]], [["causes"], ["is caused by"], ["other"]]
    >>> directed_macro_f1(relations).score(truth, predicted, {})
    0.5
    """

    def score(truth: Rows, predicted: Rows, names: Names) -> float:
        return _directed_macro_f1(truth, predicted, relations)

    return Metric("directed macro-f1", "macro-F1 over relations, with their direction", score, several=False)


def _directed_macro_f1(truth: Rows, predicted: Rows, relations: Mapping[Hashable, tuple[str, str] | None]) -> float:
    counts: dict[str, list[int]] = {}  # per relation: right, given, true
    for (true,), (guess,) in zip(truth, predicted, strict=True):
        for label in (true, guess):
            if label not in relations:
                raise MaskMatchError(
                    f"The label {label!r} has no relation and direction; name them, or None if it is no relation."
                )
        for place, label in ((1, guess), (2, true)):
            directed = relations[label]
            if directed is not None:
                counts.setdefault(directed[0], [0, 0, 0])[place] += 1
        directed = relations[true]
        if directed is not None and directed == relations[guess]:
            counts[directed[0]][0] += 1
    f1s = [2 * right / (given + held) for right, given, held in counts.values()]
    return sum(f1s) / len(f1s) if f1s else 0.0


def _relation_micro_f1(truth: Rows, predicted: Rows, names: Names) -> float:
    none = _called(names, NO_RELATION)
    return micro_f1_without(*none[:1]).score(truth, predicted, names)


def _stance_f1(truth: Rows, predicted: Rows, names: Names) -> float:
    favor, against = _called(names, FAVOR), _called(names, AGAINST)
    if not favor or not against:
        raise MaskMatchError(
            "The metric stance-f1 needs a label that reads favor and one that reads against; "
            f"these read {_some(names)}, so choose another, such as macro-f1."
        )
    return mean_f1_of(favor[0], against[0]).score(truth, predicted, names)


def _semeval_2010_8(truth: Rows, predicted: Rows, names: Names) -> float:
    relations: dict[Hashable, tuple[str, str] | None] = {}
    others = _called(names, NO_RELATION)
    for label, name in names.items():
        match = DIRECTED.fullmatch(str(label).strip()) or DIRECTED.fullmatch(name.strip())
        if match is None and label not in others:
            raise MaskMatchError(
                f"The metric semeval-2010-8 needs labels that end in (e1,e2) or (e2,e1), and {label!r} does not; "
                "give metric=directed_macro_f1({label: (relation, direction), …}) for labels with other names."
            )
        relations[label] = None if match is None else (match["relation"], match["direction"].replace(" ", ""))
    return _directed_macro_f1(truth, predicted, relations)


def _plain(name: str) -> str:
    return readable(name).casefold()


def _called(names: Names, wanted: Sequence[str]) -> list[Hashable]:
    """The labels that read like one of some names, in the order of these names."""
    by_name = {_plain(name): label for label, name in names.items()}
    return [by_name[name] for name in wanted if name in by_name]


def _some(names: Names) -> str:
    shown = [repr(name) for name in list(names.values())[:5]]
    return ", ".join([*shown, "…"] if len(names) > 5 else shown)


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "the share of texts that are right", lambda t, p, _: metrics.multi_label_accuracy(t, p)),
        Metric("micro-f1", "F1 over all decisions together", lambda t, p, _: metrics.multi_label_micro_f1(t, p)),
        Metric("macro-f1", "the mean F1 of all labels", lambda t, p, _: metrics.multi_label_macro_f1(t, p)),
        Metric("relation-micro-f1", "micro-F1 without the class that is no relation", _relation_micro_f1),
        Metric("semeval-2010-8", "macro-F1 over relations, with their direction", _semeval_2010_8, several=False),
        Metric("stance-f1", "the mean F1 of favor and against", _stance_f1),
    )
}
"""The metrics by their names."""


def find_metric(metric: str | Metric) -> Metric:
    """A metric by its name; a Metric of the user's own is taken as it is."""
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
) -> Measured:
    """The figure of the metric that is asked for, or else of the task's usual one where it suits.

    Args:
        truth: The true labels of each text.
        predicted: The predicted labels of each text.
        names: How the labels of the model read; labels that only the truth has are added.
        metric: The metric that is asked for; it is refused where it does not suit.
        usual: The task's usual metric, where none is asked for.
        multi_label: Whether a text may have several labels; then micro-F1 stands in for accuracy.
    """
    unseen = {label: str(label) for row in truth for label in row if label not in names}
    names = {**names, **unseen}
    if metric is not None:
        asked = find_metric(metric)
        if multi_label and not asked.several:
            raise MaskMatchError(f"The metric {asked.name} is for one label a text; choose micro-f1 or macro-f1.")
        return Measured(asked, asked.score(truth, predicted, names))
    chosen = find_metric(usual)
    if multi_label and (chosen.name == "accuracy" or not chosen.several):
        chosen = METRICS["micro-f1"]
    try:
        return Measured(chosen, chosen.score(truth, predicted, names))
    except MaskMatchError as error:
        instead = METRICS["micro-f1" if multi_label else "accuracy"]
        note = f"The score is {instead.name} instead of the task's usual metric. {error}"
        return Measured(instead, instead.score(truth, predicted, names), (note,))
