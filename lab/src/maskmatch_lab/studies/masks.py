"""Several masks: how many, in which of the two prompts, and how their states are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from maskmatch_lab.comparison import Variant
from maskmatch_lab.studies.pictures import Lines, Panel, dot_plot, line_plot
from maskmatch_lab.studies.study import Conclusion, Evidence, Part, Study
from maskmatch_lab.studies.words import BY_NAME, BY_NAME_NOTE, HOW_TESTED, against, few_seeds, paired_tests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.config.tasks import Task

ONE = "one mask"
MANY = (2, 4, 8)
TRAINED = 4
WAYS: dict[str, tuple[bool, bool, Literal["mean", "concat", "late"]]] = {
    "in the text's prompt, mean": (True, False, "mean"),
    "in the label's prompt, mean": (False, True, "mean"),
    "in the label's prompt, late": (False, True, "late"),
    "in both, mean": (True, True, "mean"),
    "in both, concat": (True, True, "concat"),
    "in both, late": (True, True, "late"),
}
"""By name: whether the input prompt has several masks, whether the label prompt has, and how they are compared."""


def name_of(count: int, way: str) -> str:
    """The name of a variant with this many masks."""
    return f"{count} masks {way}"


NAMES = [name_of(count, way) for count in MANY for way in WAYS]


def mask_variants(task: Task) -> list[Variant]:
    """One mask, and several in every way; further masks stand beside the one of the prompt."""
    variants = [Variant(ONE, **BY_NAME)]
    for count in MANY:
        several = f"{{mask*{count}}}"
        for way, (in_text, in_label, join) in WAYS.items():
            prompts = {}
            if in_text:
                prompts["prompt"] = task.prompt.replace("{mask}", several)
            if in_label:
                prompts["label_prompt"] = task.label_prompt.replace("{mask}", several)
            variants.append(Variant(name_of(count, way), matcher={**prompts, "masks": join}, **BY_NAME))
    return variants


def _trained_variants(task: Task) -> list[Variant]:
    wanted = {ONE, *(name_of(TRAINED, way) for way in WAYS)}
    return [variant for variant in mask_variants(task) if variant.name in wanted]


def cost_of(name: str) -> str:
    """The cost of a way in comparison with one mask: tokens per text, tokens per label, size of label vectors.

    >>> cost_of("4 masks in both, concat")
    '3 more tokens per text and 3 per label, label vectors 4 times as long'
    >>> cost_of("2 masks in the label's prompt, mean")
    '1 more token per label, once'
    """
    count, _, way = name.partition(" masks ")
    more = int(count) - 1
    in_text, in_label, join = WAYS[way]
    tokens = f"{more} more {'token' if more == 1 else 'tokens'}"
    if not in_text:
        cost = f"{tokens} per label, once"
    else:
        cost = f"{tokens} per text and {more} per label" if in_label else f"{tokens} per text"
    return f"{cost}, label vectors {count} times as long" if join != "mean" and in_label else cost


def conclude(evidence: Evidence) -> Conclusion:
    """Which ways improve accuracy, over all datasets and on each, and what they cost."""
    sentences: list[str | None] = []
    answer: list[str] = []
    worth: dict[str, dict[str, str | None]] = {}
    for regime in evidence.regimes:
        names = [name for name in evidence.methods(regime) if name != ONE]
        for way in WAYS:
            own = [name_of(count, way) for count in MANY]
            sentences.append(against(evidence, ONE, own, regime, about=f"Several masks {way}"))
        for dataset in evidence.datasets:
            verdict = _on(evidence, dataset, names, regime)
            if verdict is not None:
                answer.append(verdict[0])
                worth.setdefault(regime, {})[dataset] = verdict[1]
    pictures = [
        dot_plot(evidence, [Panel(regime) for regime in evidence.regimes], evidence.all_methods, ONE),
        line_plot([Lines(regime, _lines(evidence, regime)) for regime in evidence.regimes], "masks"),
    ]
    shown = [picture for picture in pictures if picture]
    everything = [*answer, *filter(None, sentences), HOW_TESTED, *few_seeds(evidence)]
    return Conclusion(everything, {"worth it": worth}, shown, answer)


def _on(evidence: Evidence, dataset: str, names: Sequence[str], regime: str) -> tuple[str, str | None] | None:
    """Which way is worth its cost on a dataset, in a sentence, and its name; None if one mask is enough."""
    rows = paired_tests(evidence, ONE, names, regime, [dataset])
    if not rows:
        return None
    task = evidence.datasets[dataset].task.name
    begin = f"On {dataset} ({task}), {regime},"
    gains = sorted((row for row in rows if row.verdict > 0), key=lambda row: -row.result.difference)
    if gains:
        best = gains[0]
        others = f"; also better: {', '.join(map(str, gains[1:]))}" if len(gains) > 1 else ""
        return f"{begin} {best} improves most over one mask, at the cost of {cost_of(best.name)}{others}.", best.name
    losses = sum(row.verdict < 0 for row in rows)
    worse = f"{losses or 'none'} {'is' if losses < 2 else 'are'} clearly worse"
    return f"{begin} one mask is enough: of {len(rows)} ways none is clearly better, {worse}.", None


def _lines(evidence: Evidence, regime: str) -> dict[str, dict[float, float]]:
    """The accuracy of each way by the number of masks."""
    one = evidence.comparison.accuracy(ONE, regime)
    lines: dict[str, dict[float, float]] = {}
    for way in WAYS:
        by_count = {float(count): evidence.comparison.accuracy(name_of(count, way), regime) for count in MANY}
        known = {count: accuracy for count, accuracy in by_count.items() if accuracy is not None}
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
        "With training, only four masks are tried, on two datasets.",
        BY_NAME_NOTE,
        "The encoder was aligned with one mask per prompt, not with several.",
        "Concatenation needs several masks in both prompts, and late interaction several in the label prompt, so they "
        "are not tried with several masks in the input prompt alone.",
        "The cost of masks is counted in tokens, not timed. The default encoder was trained on fewrel_nyt25.",
        "Evaluated on at most 1,000 test rows.",
    ),
    minutes=35,
)
