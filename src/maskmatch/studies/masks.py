"""Several masks: how many, in which of the two prompts, and how their states are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskmatch.comparison import Variant
from maskmatch.studies.pictures import dot_plot, line_plot
from maskmatch.studies.study import Conclusion, Found, Part, Study
from maskmatch.studies.words import BY_NAME, BY_NAME_TOLD, HOW_TESTED, against, few_seeds, trials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.choices import MaskJoin
    from maskmatch.tasks import Task

ONE = "one mask"
MANY = (2, 4, 8)
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
    found = [Variant(ONE, **BY_NAME)]
    for count in MANY:
        several = f"{{mask*{count}}}"
        for way, (in_text, in_label, join) in WAYS.items():
            prompts = {}
            if in_text:
                prompts["prompt"] = task.prompt.replace("{mask}", several)
            if in_label:
                prompts["label_prompt"] = task.label_prompt.replace("{mask}", several)
            found.append(Variant(name_of(count, way), matcher={**prompts, "masks": join}, **BY_NAME))
    return found


def _trained_variants(task: Task) -> list[Variant]:
    wanted = {ONE, *(name_of(TRAINED, way) for way in WAYS)}
    return [variant for variant in mask_variants(task) if variant.name in wanted]


def cost_of(name: str) -> str:
    """What a way costs beside one mask: tokens of every text, tokens of every label, and numbers of a label's vector.

    >>> cost_of("4 masks in both, concat")
    '3 more tokens a text and 3 a label, label vectors 4 times as long'
    >>> cost_of("2 masks in the label's prompt, mean")
    '1 more token a label, once'
    """
    count, _, way = name.partition(" masks ")
    more = int(count) - 1
    in_text, in_label, join = WAYS[way]
    tokens = f"{more} more {'token' if more == 1 else 'tokens'}"
    if not in_text:
        told = f"{tokens} a label, once"
    else:
        told = f"{tokens} a text and {more} a label" if in_label else f"{tokens} a text"
    return f"{told}, label vectors {count} times as long" if join != "mean" and in_label else told


def conclude(found: Found) -> Conclusion:
    """Which ways gain, on all datasets and on each, and what they cost."""
    sentences: list[str | None] = []
    answer: list[str] = []
    pictures = []
    worth: dict[str, dict[str, str | None]] = {}
    for regime in found.regimes:
        names = [name for name in found.methods(regime) if name != ONE]
        for way in WAYS:
            own = [name_of(count, way) for count in MANY]
            sentences.append(against(found, ONE, own, regime, about=f"Several masks {way}"))
        for dataset in found.datasets:
            verdict = _on(found, dataset, names, regime)
            if verdict is not None:
                answer.append(verdict[0])
                worth.setdefault(regime, {})[dataset] = verdict[1]
        pictures.append(dot_plot(found, regime, found.methods(regime)))
        pictures.append(line_plot(_lines(found, regime), f"Number of masks, {regime}", "masks"))
    shown = [picture for picture in pictures if picture]
    said = [*answer, *filter(None, sentences), HOW_TESTED, *few_seeds(found)]
    return Conclusion(said, {"worth it": worth}, shown, answer)


def _on(found: Found, dataset: str, names: Sequence[str], regime: str) -> tuple[str, str | None] | None:
    """Which way is worth its cost on a dataset, in a sentence, and its name; None if one mask is enough."""
    rows = trials(found, ONE, names, regime, [dataset])
    if not rows:
        return None
    task = found.datasets[dataset].task.name
    begin = f"On {dataset} ({task}), {regime},"
    gains = sorted((row for row in rows if row.verdict > 0), key=lambda row: -row.result.difference)
    if gains:
        best = gains[0]
        others = f"; so do {', '.join(map(str, gains[1:]))}" if len(gains) > 1 else ""
        return f"{begin} {best} gains most over one mask, for {cost_of(best.name)}{others}.", best.name
    losses = sum(row.verdict < 0 for row in rows)
    lost = f"{losses or 'none'} {'loses' if losses < 2 else 'lose'}"
    told = f"{begin} one mask is enough: of {len(rows)} ways none gains for certain, {lost}."
    return told, None


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
        "With training, four masks stand for all numbers, on two datasets.",
        BY_NAME_TOLD,
        "The encoder was aligned with one mask a prompt; no alignment with several was made.",
        "With more masks on the text's side alone, concatenation and late interaction have nothing to compare them "
        "with but one mask, so these are tried with several masks on the label's side or on both.",
        "What masks cost is counted in tokens, not timed. The default encoder has learned from fewrel_nyt25.",
        "Measured on 1,000 test rows at most.",
    ),
    minutes=35,
)
