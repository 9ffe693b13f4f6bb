"""Leave labels out: how well a classifier predicts labels that are added after training."""

from __future__ import annotations

import logging
import random
from dataclasses import asdict, dataclass, field
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from maskmatch.config.training import TrainingConfig
from maskmatch.data import take_examples
from maskmatch.errors import MaskMatchError
from maskmatch.evaluation.display import counted
from maskmatch.labels import LabelSet
from maskmatch.labels.targets import has_several, label_set_of, row_labels
from maskmatch.matcher import MaskMatcher

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from maskmatch.data import Examples
    from maskmatch.labels import LabelsLike

logger = logging.getLogger("maskmatch")


@dataclass(frozen=True)
class LeftOutDraw:
    """One draw of labels that are left out of training and added afterwards.

    Attributes:
        left_out: These labels.
        seen: The accuracy on texts of the other labels; all labels can be predicted.
        unseen: The accuracy on texts of the labels that were left out.
        accuracy: The accuracy on all texts.
        harmonic_mean: The harmonic mean of ``seen`` and ``unseen``.
        expected_calibration_error: The mean difference between confidence and accuracy, on all texts.
        zero_shot: The accuracy without training on texts of the other labels, and of those that were left out.
        all_trained: The accuracy with training on all labels, on the same two groups; None if that was not measured.
    """

    left_out: tuple[Hashable, ...]
    seen: float
    unseen: float
    accuracy: float
    harmonic_mean: float
    expected_calibration_error: float | None
    zero_shot: tuple[float, float]
    all_trained: tuple[float, float] | None = None


@dataclass(frozen=True)
class LeftOutReport:
    """The result of leaving labels out, over several draws. Print it.

    Attributes:
        method: The method.
        labels: How many labels there are.
        rows: How many test rows there are.
        draws: The draws.
        settings: How it was trained.
    """

    method: str
    labels: int
    rows: int
    draws: tuple[LeftOutDraw, ...]
    settings: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        left = len(self.draws[0].left_out)
        lines = [
            f"{self.method}: {left} of {counted(self.labels, 'label')} left out of training and added afterwards; "
            f"{counted(self.rows, 'test text')}, {counted(len(self.draws), 'draw')}.",
            f"{'':<28}{'seen labels':>18}{'labels left out':>18}",
            self._line("added after training", [(each.seen, each.unseen) for each in self.draws]),
            self._line("names alone, no training", [each.zero_shot for each in self.draws]),
        ]
        trained = [each.all_trained for each in self.draws if each.all_trained is not None]
        if trained:
            lines.append(self._line("trained on all labels", trained))
        harmonic = _mean_and_sd([each.harmonic_mean for each in self.draws])
        overall = _mean_and_sd([each.accuracy for each in self.draws])
        return "\n".join([*lines, f"Harmonic mean {harmonic}; accuracy on all texts {overall}."])

    @staticmethod
    def _line(name: str, pairs: Sequence[tuple[float, float]]) -> str:
        seen, unseen = (_mean_and_sd(list(values)) for values in zip(*pairs, strict=True))
        return f"{name:<28}{seen:>18}{unseen:>18}"

    def to_dict(self) -> dict[str, Any]:
        """The whole result as a JSON object."""
        return asdict(self)


def leave_labels_out(
    train: Any,
    test: Any,
    *,
    labels: LabelsLike | None = None,
    share: float = 0.25,
    draws: int = 3,
    seed: int = 0,
    reference: bool = False,
    training: TrainingConfig | None = None,
    **options: Any,
) -> LeftOutReport:
    """Train without some of the labels, add them, and evaluate; this is repeated with other labels.

    Args:
        train: Labelled rows: ``(texts, labels)``, or a data frame that holds both.
        test: The same, to evaluate on.
        labels: The labels with descriptions or phrases; None: those of the training rows.
        share: The share of labels that are left out.
        draws: How many times labels are drawn.
        seed: The seed of the draws and of training.
        reference: Whether to train on all labels as well, once per draw, for comparison.
        training: How to train.
        **options: Options of ``MaskMatcher.from_pretrained``, such as ``model``, ``task`` and ``method``.
    """
    if not 0 < share < 1:
        raise MaskMatchError(f"The share of labels to leave out is {share!r}; it must be between 0 and 1.")
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 1:
        raise MaskMatchError(f"The number of draws is {draws!r}; it must be 1 or more.")
    known = None if labels is None else LabelSet.of(labels)
    first = MaskMatcher.from_pretrained(labels=known, **options)
    if first.training_ is not None:
        raise MaskMatchError(
            f"{first.name} was trained with all of its labels, so none of them can be left out; give an encoder, or "
            "labels alone."
        )
    if not first.config.method.reads_labels:
        raise MaskMatchError(f"The method {first.config.method.name} learns its labels, so none can be added later.")
    rows, tests = (_examples(part, first) for part in (train, test))
    known = label_set_of(row_labels(rows, None, False), rows.label_names, False) if known is None else known
    resolved, truth = row_labels(rows, known, False), row_labels(tests, known, False)
    count = max(1, round(share * len(known)))
    if len(known) - count < 2:
        raise MaskMatchError(f"Of {counted(len(known), 'label')}, {count} cannot be left out: two must stay.")
    config = training or TrainingConfig(seed=seed)
    names = MaskMatcher.from_pretrained(labels=known, **options).predict(tests.texts)
    found = []
    for number in range(draws):
        config = config.changed({"seed": seed + number})
        left_out = random.Random(seed + number).sample(list(known), count)
        logger.info("Draw %d of %d: %d labels are left out.", number + 1, draws, count)
        matcher = _trained(rows.texts, resolved, known.removed(left_out), config, options)
        matcher.add_labels([known.label(id_) for id_ in left_out])
        report = matcher.evaluate(tests.texts, truth)
        seen, unseen = _accuracies(matcher.predicted_ or [], truth, left_out)
        whole = None
        if reference:
            predicted = _trained(rows.texts, resolved, known, config, options).predict(tests.texts)
            whole = _accuracies(predicted, truth, left_out)
        found.append(
            LeftOutDraw(
                tuple(left_out),
                seen,
                unseen,
                round(report.accuracy, 4),
                round(2 * seen * unseen / (seen + unseen), 4) if seen + unseen else 0.0,
                report.expected_calibration_error,
                _accuracies(names, truth, left_out),
                whole,
            )
        )
    return LeftOutReport(first.config.method.name, len(known), len(tests), tuple(found), config.to_json())


def _examples(data: Any, matcher: MaskMatcher) -> Examples:
    texts, labels = data if isinstance(data, tuple) else (data, None)
    rows = take_examples(texts, labels, matcher.config.fields)
    if has_several(rows.labels or ()):
        raise MaskMatchError("Labels can be left out with one label per text; these rows have several.")
    return rows


def _trained(
    texts: Sequence[Any], rows: Sequence[Any], labels: LabelSet, config: TrainingConfig, options: dict[str, Any]
) -> MaskMatcher:
    """A classifier that is trained on the rows of some labels."""
    kept = [row for row, label in enumerate(rows) if label in labels]
    matcher = MaskMatcher.from_pretrained(labels=labels, **options)
    return matcher.fit([texts[row] for row in kept], [rows[row] for row in kept], training=config)


def _accuracies(predicted: Sequence[Any], truth: Sequence[Any], left_out: Sequence[Hashable]) -> tuple[float, float]:
    """The accuracy on texts of the labels that were seen in training, and of those that were not."""
    out = set(left_out)
    right: dict[bool, list[bool]] = {True: [], False: []}
    for guess, true in zip(predicted, truth, strict=True):
        right[true in out].append(guess == true)
    missing = [kind for kind, values in (("seen", right[False]), ("left out", right[True])) if not values]
    if missing:
        raise MaskMatchError(f"No test row has a label that is {missing[0]}; give more test rows.")
    return round(fmean(right[False]), 4), round(fmean(right[True]), 4)


def _mean_and_sd(values: Sequence[float]) -> str:
    return f"{fmean(values):.3f}" + (f" ± {stdev(values):.3f}" if len(values) > 1 else "")
