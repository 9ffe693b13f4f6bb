"""What more labels cost: from ten real ones to a hundred thousand, most of which no text has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from maskmatch.comparison import Variant
from maskmatch.studies.distractors import distractors
from maskmatch.studies.pictures import line_plot
from maskmatch.studies.study import Conclusion, Found, Part, Study
from maskmatch.studies.words import HOW_TESTED, against, few_seeds, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

REAL = "its own labels"
COUNTS = (300, 1000, 10_000, 100_000)
SAMPLED = {"label_encoding": "sampled"}
COSTS = {
    "training_seconds": ("Training", "seconds"),
    "label_seconds": ("Reading all labels", "seconds"),
    "prediction_speed": ("Prediction once labels are read", "texts a second"),
    "training_rise": ("Memory that training takes", "megabytes"),
    "prediction_rise": ("Memory that reading labels and prediction take", "megabytes"),
}


def _name(kind: str, count: int) -> str:
    return f"{count:,} with {kind} ones"


def count_variants(counts: Sequence[int] = COUNTS, kinds: Sequence[str] = ("near", "far")) -> list[Variant]:
    """The labels of a dataset, and more and more that no text has."""
    found = [Variant(REAL, training=SAMPLED)]
    return found + [
        Variant(_name(kind, count), training=SAMPLED, labels=distractors(kind, count))  # type: ignore[arg-type]
        for kind in kinds
        for count in counts
    ]


NEAR, FAR = ([_name(kind, count) for count in COUNTS] for kind in ("near", "far"))


def conclude(found: Found) -> Conclusion:
    """Accuracy over real sets and over distractors, and what grows with their number."""
    sentences: list[str | None] = []
    answer = [told for told in (_real_sets(found),) if told]
    padded = list(dict.fromkeys(cell.dataset for cell in found.comparison.cells if cell.method != REAL))
    for regime in found.regimes:
        for about, names in (("Near labels beside the real ones", NEAR), ("Far ones", FAR)):
            told = against(found, REAL, names, regime, datasets=padded, about=about)
            answer += [told] if told else []
        sentences.append(_near_and_far(found, regime, padded))
        answer += _costs(found, regime, padded)
    pictures = [_accuracy_picture(found, regime, padded) for regime in found.regimes]
    pictures += [_cost_picture(found, regime, padded, figure) for regime in found.regimes for figure in COSTS]
    return Conclusion(
        [*answer, *filter(None, sentences), HOW_TESTED, *few_seeds(found)],
        {"costs": {regime: _cost_table(found, regime, padded) for regime in found.regimes}},
        [picture for picture in pictures if picture],
        answer,
    )


def _real_sets(found: Found) -> str | None:
    """Accuracy on real label sets of different sizes, which differ in more than their size."""
    parts = []
    for regime in found.regimes:
        scores = {name: found.comparison.accuracy(REAL, regime, [name]) for name in found.datasets}
        told = [
            f"{percent(score)} on {name} ({len(found.datasets[name].labels):,} labels)"
            for name, score in scores.items()
            if score is not None
        ]
        parts += [f"{regime} {', '.join(told)}"] if told else []
    if not parts:
        return None
    return f"Real label sets: {'; '.join(parts)}. They differ in more than their number of labels."


def _near_and_far(found: Found, regime: str, datasets: Sequence[str]) -> str | None:
    """The largest set of near distractors against as many far ones."""
    pairs = [(near, far) for near, far in zip(NEAR, FAR, strict=True) if {near, far} <= set(found.methods(regime))]
    if not pairs:
        return None
    near, far = pairs[-1]
    return against(found, far, [near], regime, datasets=datasets, about="Near ones instead of far ones")


def _mean(found: Found, method: str, regime: str, figure: str, datasets: Sequence[str]) -> float | None:
    values = [
        getattr(cell.figures, figure)
        for cell in found.comparison.cells
        if (cell.method, cell.regime) == (method, regime) and cell.dataset in datasets
    ]
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _costs(found: Found, regime: str, datasets: Sequence[str]) -> list[str]:
    """What training, reading and predicting take with the real labels and with the most."""
    methods = [name for name in [*NEAR, *FAR] if name in found.methods(regime)]
    if not methods:
        return []
    most = max(methods, key=lambda name: int(name.split(maxsplit=1)[0].replace(",", "")))
    told = []
    for figure, (about, unit) in COSTS.items():
        values = [_mean(found, name, regime, figure, datasets) for name in (REAL, most)]
        if values[0] and values[1]:
            told.append(f"{about.lower()} {values[0]:,.3g} → {values[1]:,.3g} {unit}{_times(values[1] / values[0])}")
    return [f"From {REAL} to {most}, {regime}: {'; '.join(told)}."] if told else []


def _times(ratio: float) -> str:
    """How many times as much, unless that only says that it was next to nothing before.

    >>> _times(0.654), _times(627.3), _times(7200.0)
    (' (0.65 times)', ' (627 times)', '')
    """
    return "" if ratio > 1000 else f" ({ratio:.2g} times)" if ratio < 10 else f" ({ratio:.0f} times)"


def _cost_table(found: Found, regime: str, datasets: Sequence[str]) -> dict[str, dict[str, float | None]]:
    return {
        name: {figure: _mean(found, name, regime, figure, datasets) for figure in COSTS}
        for name in found.methods(regime)
    }


def _counts(found: Found, datasets: Sequence[str]) -> float:
    return float(np.mean([len(found.datasets[name].labels) for name in datasets])) if datasets else 1.0


def _accuracy_picture(found: Found, regime: str, datasets: Sequence[str]) -> str:
    lines = {
        kind: {
            place: score
            for place, name in _places(found, names, datasets)
            if (score := found.comparison.accuracy(name, regime, datasets)) is not None
        }
        for kind, names in (("near", NEAR), ("far", FAR))
    }
    return line_plot(_grown(lines), f"Accuracy, {regime}", "labels", logarithmic=True)


def _cost_picture(found: Found, regime: str, datasets: Sequence[str], figure: str) -> str:
    about, unit = COSTS[figure]
    lines = {
        kind: {
            place: value
            for place, name in _places(found, names, datasets)
            if (value := _mean(found, name, regime, figure, datasets)) is not None
        }
        for kind, names in (("near", NEAR), ("far", FAR))
    }
    if not any(value for points in lines.values() for value in points.values()):
        return ""
    return line_plot(_grown(lines), f"{about}, {regime}", "labels", unit, logarithmic=True)


def _grown(lines: dict[str, dict[float, float]]) -> dict[str, dict[float, float]]:
    """The lines without those kinds of which nothing was run but the real labels."""
    return {kind: points for kind, points in lines.items() if len(points) > 1}


def _places(found: Found, names: Sequence[str], datasets: Sequence[str]) -> list[tuple[float, str]]:
    """The number of labels of each variant, with the variant; the real labels first."""
    return [
        (_counts(found, datasets), REAL),
        *((float(count), name) for count, name in zip(COUNTS, names, strict=True)),
    ]


LABEL_COUNT = Study(
    name="label-count",
    question="What do more labels cost, in accuracy, time and memory?",
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
        "Training with more labels than banking77 has: 1,000 and 10,000 near ones, and 100,000 with one seed; on "
        "clinc150 and naics1065 nothing is trained.",
        "Every training samples labels (label_encoding sampled): reading thousands of names at each step would take "
        "hours, and a study of numbers should not change the way of training in between.",
        "Distractors are two or three real words put together: from the names and texts of the dataset (near), or "
        "words for everyday things (far). Nobody would call a label so; real labels in such numbers might be harder.",
        "The default encoder has learned from train rows of clinc150 and naics1065.",
        "Memory is the rise over what the process held before, which has run other cells; what these left free counts "
        "as held.",
        "Measured on 1,000 test rows at most.",
    ),
    minutes=30,
)
