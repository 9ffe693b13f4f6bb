"""Several masks: how many, in which of the two prompts, and how their states are compared."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from maskmatch.comparison import Variant
from maskmatch.studies.pictures import dot_plot, line_plot
from maskmatch.studies.study import Conclusion, Found, Part, Study
from maskmatch.studies.words import HOW_TESTED, against, best_of, few_seeds, percent, trials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.choices import MaskJoin
    from maskmatch.tasks import Task

ONE = "one mask"
MANY = (2, 4, 8)
BY_NAME = {"example_share": 0.0}
"""With more masks on one side than on the other, training texts cannot move labels: so they do nowhere here."""

TRAINED = 4
WAYS: dict[str, tuple[bool, bool, MaskJoin]] = {
    "in the text's prompt, mean": (True, False, "mean"),
    "in the label's prompt, mean": (False, True, "mean"),
    "in the label's prompt, late": (False, True, "late"),
    "in both, mean": (True, True, "mean"),
    "in both, concat": (True, True, "concat"),
    "in both, late": (True, True, "late"),
}
"""Where the masks stand, on the side of the text and on that of the label, and how they are compared."""


def name_of(count: int, way: str) -> str:
    """What tables call so many masks in one of the ways."""
    return f"{count} masks {way}"


NAMES = [name_of(count, way) for count in MANY for way in WAYS]


def mask_variants(task: Task) -> list[Variant]:
    """One mask, and several in every way; a prompt gets its further masks where its own stands."""
    found = [Variant(ONE, training=BY_NAME)]
    for count in MANY:
        several = f"{{mask*{count}}}"
        for way, (in_text, in_label, join) in WAYS.items():
            prompts = {}
            if in_text:
                prompts["prompt"] = task.prompt.replace("{mask}", several)
            if in_label:
                prompts["label_prompt"] = task.label_prompt.replace("{mask}", several)
            found.append(Variant(name_of(count, way), matcher={**prompts, "masks": join}, training=BY_NAME))
    return found


def _trained_variants(task: Task) -> list[Variant]:
    wanted = {ONE, *(name_of(TRAINED, way) for way in WAYS)}
    return [variant for variant in mask_variants(task) if variant.name in wanted]


def conclude(found: Found) -> Conclusion:
    """Which ways gain, on all datasets and on each, and what they cost."""
    sentences: list[str | None] = []
    pictures = []
    for regime in found.regimes:
        names = [name for name in found.methods(regime) if name != ONE]
        for way in WAYS:
            own = [name_of(count, way) for count in MANY]
            sentences.append(against(found, ONE, own, regime, about=f"Several masks {way}"))
        sentences += [_on(found, dataset, names, regime) for dataset in found.datasets]
        sentences.append(_cost(found, names, regime))
        pictures.append(dot_plot(found, regime, found.methods(regime)))
        pictures.append(line_plot(_lines(found, regime), f"Number of masks, {regime}", "masks"))
    figures = {regime: _speeds(found, found.methods(regime), regime) for regime in found.regimes}
    shown = [picture for picture in pictures if picture]
    return Conclusion([*filter(None, sentences), HOW_TESTED, *few_seeds(found)], {"speed": figures}, shown)


def _on(found: Found, dataset: str, names: Sequence[str], regime: str) -> str | None:
    """Whether several masks are worth it on a dataset."""
    rows = trials(found, ONE, names, regime, [dataset])
    best = best_of(found, [ONE, *names], regime, [dataset])
    if not rows or best is None:
        return None
    gains = [str(row) for row in rows if row.verdict > 0]
    if gains:
        return f"On {dataset}, {regime}, these gain over one mask: {', '.join(gains)}."
    losses = sum(row.verdict < 0 for row in rows)
    return (
        f"On {dataset}, {regime}, no number of masks gains for certain over one mask; {losses} of {len(rows)} ways "
        f"lose, and the best of all is {best}."
    )


def _speeds(found: Found, names: Sequence[str], regime: str) -> dict[str, float]:
    """How many texts a second are classified, as a part of those with one mask."""
    speeds: dict[str, float] = {}
    for name in names:
        told = [
            cell.figures.texts_per_second
            for cell in found.comparison.cells
            if (cell.method, cell.regime) == (name, regime) and cell.figures.texts_per_second
        ]
        if told:
            speeds[name] = median(told)
    one = speeds.get(ONE)
    return {} if not one else {name: round(speed / one, 3) for name, speed in speeds.items()}


def _cost(found: Found, names: Sequence[str], regime: str) -> str | None:
    speeds = _speeds(found, [*names, ONE], regime)
    others = {name: speed for name, speed in speeds.items() if name != ONE}
    if not others:
        return None
    slowest = min(others, key=lambda name: others[name])
    middle = median(others.values())
    return (
        f"What they cost, {regime}: in the middle, several masks classify {percent(middle)} as many texts a second as "
        f"one mask; the slowest is {slowest} with {percent(others[slowest])}."
    )


def _lines(found: Found, regime: str) -> dict[str, dict[float, float]]:
    """The accuracy of each way by the number of masks."""
    one = found.comparison.accuracy(ONE, regime)
    lines: dict[str, dict[float, float]] = {}
    for way in WAYS:
        told = {float(count): found.comparison.accuracy(name_of(count, way), regime) for count in MANY}
        known = {count: accuracy for count, accuracy in told.items() if accuracy is not None}
        if one is not None and known:
            lines[way] = {1.0: one, **known}
    return lines


MASKS = Study(
    name="masks",
    question="Are several masks worth their cost, in which prompt, and how should their states be compared?",
    parts=(
        Part(
            {"trec50": "question", "banking77": "intent", "agnews": "topic", "fewrel_nyt25": "relation"},
            mask_variants,
            ("zero-shot",),
        ),
        Part({"trec50": "question", "fewrel_nyt25": "relation"}, _trained_variants, ("5 shots",)),
    ),
    reference=ONE,
    conclude=conclude,
    cut=(
        "With training, four masks stand for all numbers, on two datasets; training texts have no share in label "
        "vectors (example_share 0), as they cannot where the two sides differ in their number of masks.",
        "The encoder was aligned with one mask a prompt; no alignment with several was made.",
        "Measured on 1,000 test rows at most.",
    ),
    minutes=60,
)
