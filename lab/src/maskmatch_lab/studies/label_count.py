"""The cost of more labels: from ten real ones to a hundred thousand, most of which no text has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from maskmatch_lab.comparison import Variant
from maskmatch_lab.studies.distractors import distractors
from maskmatch_lab.studies.pictures import Lines, line_plot
from maskmatch_lab.studies.study import Conclusion, Evidence, Part, Study
from maskmatch_lab.studies.words import HOW_TESTED, against, few_seeds, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

REAL = "its own labels"
COUNTS = (300, 1000, 10_000, 100_000)
SAMPLED = {"label_encoding": "sampled"}
COSTS = {
    "training_seconds": ("Training", "seconds"),
    "label_seconds": ("Encoding all labels", "seconds"),
    "prediction_speed": ("Speed of prediction", "texts per second"),
    "training_rise": ("Memory for training", "megabytes"),
    "prediction_rise": ("Memory for prediction", "megabytes"),
}


def _name(kind: str, count: int) -> str:
    return f"{count:,} with {kind} ones"


def count_variants(counts: Sequence[int] = COUNTS, kinds: Sequence[str] = ("near", "far")) -> list[Variant]:
    """The labels of a dataset alone, and with growing numbers of labels that no text has."""
    return [
        Variant(REAL, training=SAMPLED),
        *(
            Variant(_name(kind, count), training=SAMPLED, labels=distractors(kind, count))  # type: ignore[arg-type]
            for kind in kinds
            for count in counts
        ),
    ]


NEAR, FAR = ([_name(kind, count) for count in COUNTS] for kind in ("near", "far"))


def conclude(evidence: Evidence) -> Conclusion:
    """Accuracy on real label sets and with distractors, and the cost of their number."""
    sentences: list[str | None] = []
    answer = [sentence for sentence in (_real_sets(evidence),) if sentence]
    padded = list(dict.fromkeys(cell.dataset for cell in evidence.comparison.cells if cell.method != REAL))
    for regime in evidence.regimes:
        for about, names in (("With near labels added", NEAR), ("With far labels added", FAR)):
            sentence = against(evidence, REAL, names, regime, datasets=padded, about=about)
            answer += [sentence] if sentence else []
        sentences.append(_near_and_far(evidence, regime, padded))
        answer += _costs(evidence, regime, padded)
    accuracy = Lines("Accuracy", _lines(evidence, "accuracy", padded))
    costs = [Lines(about, _lines(evidence, figure, padded), unit) for figure, (about, unit) in COSTS.items()]
    picture = line_plot([accuracy, *costs], "labels", logarithmic=True)
    return Conclusion(
        [*answer, *filter(None, sentences), HOW_TESTED, *few_seeds(evidence)],
        {"costs": {regime: _cost_table(evidence, regime, padded) for regime in evidence.regimes}},
        [picture] if picture else [],
        answer,
    )


def _real_sets(evidence: Evidence) -> str | None:
    """Accuracy on real label sets of different sizes, which differ in more than their size."""
    parts = []
    for regime in evidence.regimes:
        scores = {name: evidence.comparison.accuracy(REAL, regime, [name]) for name in evidence.datasets}
        shown = [
            f"{percent(score)} on {name} ({len(evidence.datasets[name].labels):,} labels)"
            for name, score in scores.items()
            if score is not None
        ]
        parts += [f"{regime} {', '.join(shown)}"] if shown else []
    if not parts:
        return None
    return f"Accuracy on real label sets: {'; '.join(parts)}. These sets differ in more than their number of labels."


def _near_and_far(evidence: Evidence, regime: str, datasets: Sequence[str]) -> str | None:
    """The largest set of near distractors against as many far ones."""
    pairs = [(near, far) for near, far in zip(NEAR, FAR, strict=True) if {near, far} <= set(evidence.methods(regime))]
    if not pairs:
        return None
    near, far = pairs[-1]
    return against(evidence, far, [near], regime, datasets=datasets, about="Near labels instead of far ones")


def _mean(evidence: Evidence, method: str, regime: str, figure: str, datasets: Sequence[str]) -> float | None:
    values = [
        getattr(cell.figures, figure)
        for cell in evidence.comparison.cells
        if (cell.method, cell.regime) == (method, regime) and cell.dataset in datasets
    ]
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _costs(evidence: Evidence, regime: str, datasets: Sequence[str]) -> list[str]:
    """Time and memory with the real labels and with the largest number of labels."""
    methods = [name for name in [*NEAR, *FAR] if name in evidence.methods(regime)]
    if not methods:
        return []
    most = max(methods, key=lambda name: int(name.split(maxsplit=1)[0].replace(",", "")))
    parts = []
    for figure, (about, unit) in COSTS.items():
        values = [_mean(evidence, name, regime, figure, datasets) for name in (REAL, most)]
        if values[0] and values[1]:
            parts.append(f"{about.lower()} {values[0]:,.3g} → {values[1]:,.3g} {unit}{_times(values[1] / values[0])}")
    return [f"From {REAL} to {most}, {regime}: {'; '.join(parts)}."] if parts else []


def _times(ratio: float) -> str:
    """A ratio, unless it is so large that it only shows that the first value was close to zero.

    >>> _times(0.654), _times(627.3), _times(7200.0)
    (' (0.65 times)', ' (627 times)', '')
    """
    return "" if ratio > 1000 else f" ({ratio:.2g} times)" if ratio < 10 else f" ({ratio:.0f} times)"


def _cost_table(evidence: Evidence, regime: str, datasets: Sequence[str]) -> dict[str, dict[str, float | None]]:
    return {
        name: {figure: _mean(evidence, name, regime, figure, datasets) for figure in COSTS}
        for name in evidence.methods(regime)
    }


def _counts(evidence: Evidence, datasets: Sequence[str]) -> float:
    return float(np.mean([len(evidence.datasets[name].labels) for name in datasets])) if datasets else 1.0


def _lines(evidence: Evidence, figure: str, datasets: Sequence[str]) -> dict[str, dict[float, float]]:
    """By regime and kind of distractors, a figure at each number of labels; a kind that was not run is left out."""
    lines = {
        f"{regime}, {kind} labels": {
            place: value
            for place, name in _places(evidence, names, datasets)
            if (value := _mean(evidence, name, regime, figure, datasets))
        }
        for regime in evidence.regimes
        for kind, names in (("near", NEAR), ("far", FAR))
    }
    return {name: points for name, points in lines.items() if len(points) > 1}


def _places(evidence: Evidence, names: Sequence[str], datasets: Sequence[str]) -> list[tuple[float, str]]:
    """The number of labels of each variant, and the variant; the real labels first."""
    return [
        (_counts(evidence, datasets), REAL),
        *((float(count), name) for count, name in zip(COUNTS, names, strict=True)),
    ]


LABEL_COUNT = Study(
    name="label-count",
    question="How much do more labels cost in accuracy, time and memory?",
    parts=(
        Part({"banking77@10": "intent", "banking77": "intent"}, count_variants(()), ("zero-shot", "5 shots")),
        Part({"clinc150": "intent", "naics1065": "topic"}, count_variants(()), ("zero-shot",)),
        Part(
            {"banking77": "intent"},
            count_variants(),
            ("zero-shot",),
            quick=(REAL, _name("near", 300), _name("far", 300)),
        ),
        Part(
            {"banking77": "intent"},
            count_variants((1000, 10_000), ("near",)),
            ("5 shots",),
            quick=(REAL,),
        ),
        Part({"banking77": "intent"}, count_variants((100_000,), ("near",))[1:], ("5 shots",), seeds=1, quick=()),
    ),
    reference=REAL,
    conclude=conclude,
    cut=(
        "Training with distractors runs on banking77 alone: with 1,000 and 10,000 near labels, and with 100,000 for "
        "one seed. On clinc150 and naics1065 nothing is trained.",
        "All training runs sample labels (label_encoding sampled): encoding thousands of names at each step would take "
        "hours, and the way of training should be the same for all numbers of labels.",
        "Distractors are two or three real words put together: words from the names and texts of the dataset (near), "
        "or words for everyday things (far). They are not natural labels; as many real labels might be harder.",
        "The default encoder was trained on train rows of clinc150 and naics1065.",
        "Memory is the increase over what the process held before. The process ran other cells before, and memory that "
        "these freed counts as held.",
        "Evaluated on at most 1,000 test rows.",
    ),
    minutes=30,
)
