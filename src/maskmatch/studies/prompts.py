"""How much hangs on the wording of prompts, and whether a pool of them or the empty prompt's state can help."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from maskmatch.comparison import Variant
from maskmatch.evaluation.display import counted
from maskmatch.studies.pictures import dot_plot
from maskmatch.studies.study import Conclusion, Found, Part, Study
from maskmatch.studies.words import BY_NAME, BY_NAME_TOLD, HOW_TESTED, against, few_seeds, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.tasks import Task

OWN = "the task's prompts"
EMPTY, MISLEADING, DENYING = "no words", "misleading", "denying"
INPUTS = {
    "topic": "{text} The topic is {mask}.",
    "question": "{text} What is this about? It is about {mask}.",
    "mask first": "{mask}: {text}",
    "long": "Here is a text that somebody wrote: {text} In a few words, what it deals with is {mask}.",
    EMPTY: "{text} {mask}",
    MISLEADING: "{text} The weather today is {mask}.",
    DENYING: "{text} This has nothing to do with {mask}.",
}
LABELS = {
    "means": "{label} means {mask}.",
    "stands for": "The label {label} stands for {mask}.",
    "mask first": "{mask}: {label}",
    "as a text": "{label} This is about {mask}.",
    EMPTY: "{label} {mask}",
    MISLEADING: "{label} is served with {mask}.",
    DENYING: "{label} has nothing to do with {mask}.",
}
SENSIBLE_INPUTS, SENSIBLE_LABELS = (
    [name for name in templates if name not in (EMPTY, MISLEADING, DENYING)] for templates in (INPUTS, LABELS)
)
POOLED_INPUTS = SENSIBLE_INPUTS[:2]
POOLED_LABELS = SENSIBLE_LABELS[:2]
"""What goes into a pool, beside the task's own prompt."""

POOLS = ("pool of inputs", "pool of labels", "both pools")
FREED = ("inputs less the empty prompt", "labels less the empty prompt", "both less the empty prompt")
SIDES = {"input": INPUTS, "label": LABELS}


def _name(side: str, wording: str) -> str:
    return f"{side}: {wording}"


def prompt_variants(task: Task) -> list[Variant]:
    """Every wording by itself, pools of sensible ones, and vectors less the state of the empty prompt."""
    found = [Variant(OWN)]
    found += [Variant(_name("input", name), matcher={"prompt": template}) for name, template in INPUTS.items()]
    found += [Variant(_name("label", name), matcher={"label_prompt": template}) for name, template in LABELS.items()]
    inputs = [task.prompt, *(INPUTS[name] for name in POOLED_INPUTS)]
    labels = [task.label_prompt, *(LABELS[name] for name in POOLED_LABELS)]
    pools = ({"prompt": inputs}, {"label_prompt": labels}, {"prompt": inputs, "label_prompt": labels})
    found += [Variant(name, matcher=matcher) for name, matcher in zip(POOLS, pools, strict=True)]
    choices = ("inputs", "labels", "both")
    return found + [Variant(name, matcher={"debias": each}) for name, each in zip(FREED, choices, strict=True)]


QUICK = (OWN, _name("input", "topic"), _name("label", EMPTY), POOLS[2], FREED[2])
NOT_TRAINED = (_name("input", "long"), _name("label", "as a text"), *POOLS[:2], *FREED[:2])


def _trained(task: Task) -> list[Variant]:
    return [replace(variant, **BY_NAME) for variant in prompt_variants(task) if variant.name not in NOT_TRAINED]


def conclude(found: Found) -> Conclusion:
    """The spread over wordings, what no words and wrong words cost, and what pools and debiasing bring."""
    sentences: list[str | None] = []
    answer: list[str] = []
    spreads: dict[str, dict[str, float]] = {}
    for regime in found.regimes:
        for side in SIDES:
            told = _spread(found, _sensible(side), regime)
            if told is not None:
                spreads[f"{side} prompts, {regime}"] = told
                prompts = counted(int(told["prompts"]), f"sensible {side} prompt")
                answer.append(
                    f"{prompts}, {regime}: from {percent(told['low'])} to {percent(told['high'])} on average, a "
                    f"standard deviation of {100 * told['sd']:.1f} points."
                )
            odd = [_name(side, name) for name in (EMPTY, MISLEADING, DENYING)]
            sentences.append(against(found, OWN, odd, regime, about=f"Odd {side} prompts"))
        helps = [
            _pool_sentence(found, regime),
            against(found, OWN, FREED, regime, about="Vectors less the state of the empty prompt"),
        ]
        answer += filter(None, helps)
    answer += _trend(found)
    pictures = [dot_plot(found, regime, found.methods(regime)) for regime in found.regimes]
    said = [*answer, *filter(None, sentences), HOW_TESTED, *few_seeds(found)]
    return Conclusion(said, {"spread": spreads}, pictures, answer)


def _spread(
    found: Found, names: Sequence[str], regime: str, datasets: Sequence[str] | None = None
) -> dict[str, float] | None:
    """How far accuracies lie apart that differ in the wording alone: the mean over datasets, all or some."""
    if datasets is None:
        datasets = list(dict.fromkeys(dataset for dataset, own, _ in found.comparison.groups() if own == regime))
    rows = [
        [score for name in names if (score := found.comparison.accuracy(name, regime, [dataset])) is not None]
        for dataset in datasets
    ]
    rows = [row for row in rows if len(row) > 1]
    if not rows:
        return None
    return {
        "prompts": float(max(len(row) for row in rows)),
        "low": float(np.mean([min(row) for row in rows])),
        "high": float(np.mean([max(row) for row in rows])),
        "sd": float(np.mean([np.std(row, ddof=1) for row in rows])),
    }


def _pool_sentence(found: Found, regime: str) -> str | None:
    """Pools against the task's own prompts, and against the mean of what they are made of."""
    told = against(found, OWN, POOLS, regime, about="Pools of three prompts")
    members = [
        OWN,
        *(_name("input", name) for name in POOLED_INPUTS),
        *(_name("label", name) for name in POOLED_LABELS),
    ]
    scores = [score for name in members if (score := found.comparison.accuracy(name, regime)) is not None]
    both = found.comparison.accuracy(POOLS[2], regime)
    if told is None or both is None or len(scores) < 2:
        return told
    than = "above" if both > max(scores) else "below" if both < min(scores) else "among"
    return (
        f"{told} Both pools together reach {percent(both)}, {than} their members, which by themselves reach "
        f"{percent(min(scores))} to {percent(max(scores))}."
    )


def _trend(found: Found) -> list[str]:
    """Whether training makes the wording matter less, by the prompts and datasets that were tried in both regimes."""
    if len(found.regimes) < 2:
        return []
    ends = found.regimes[0], found.regimes[-1]
    tried = [{(data, name) for data, own, name in found.comparison.groups() if own == regime} for regime in ends]
    datasets = [data for data in found.datasets if all((data, OWN) in each for each in tried)]
    told = []
    for side in SIDES:
        names = [name for name in _sensible(side) if all((data, name) in each for each in tried for data in datasets)]
        spreads = [_spread(found, names, regime, datasets) for regime in ends]
        if spreads[0] is None or spreads[1] is None:
            continue
        ranges = [spread["high"] - spread["low"] for spread in spreads if spread is not None]
        noise = _range_by_chance(found, names, ends[1], datasets)
        change = "shrinks" if ranges[1] + noise < ranges[0] else "cannot be shown to shrink"
        prompts = counted(len(names), f"sensible {side} prompt")
        told.append(
            f"On {', '.join(datasets)}, between the best and the worst of {prompts} lie {100 * ranges[0]:.1f} points "
            f"{ends[0]} and {100 * ranges[1]:.1f} points {ends[1]}, where seeds alone would make {100 * noise:.1f}: "
            f"the gap {change} with training."
        )
    return told


def _range_by_chance(found: Found, names: Sequence[str], regime: str, datasets: Sequence[str]) -> float:
    """How far apart the best and the worst of equally good prompts would lie by the draws of seeds, on average."""
    groups = found.comparison.groups()
    cells = [groups[data, regime, name] for data in datasets for name in names]
    errors = [
        np.std([cell.figures.accuracy for cell in own], ddof=1) / np.sqrt(len(own)) for own in cells if len(own) > 1
    ]
    if not errors:
        return 0.0
    draws = np.random.default_rng(0).standard_normal((1000, len(names)))
    return float(np.mean(errors) * (draws.max(axis=1) - draws.min(axis=1)).mean())


def _sensible(side: str) -> list[str]:
    """The task's own prompts, and those that differ from them on one side by a wording that makes sense."""
    return [OWN, *(_name(side, name) for name in SIDES[side] if name not in (EMPTY, MISLEADING, DENYING))]


PROMPTS = Study(
    name="prompts",
    question="How much hangs on the wording of the two prompts, and do a pool or the empty prompt's state help?",
    parts=(
        Part(
            {"banking77": "intent", "trec50": "question", "agnews": "topic"},
            prompt_variants,
            ("zero-shot",),
            quick=QUICK,
        ),
        Part({"trec50": "question"}, _trained, ("5 shots",), quick=QUICK[:2]),
    ),
    reference=OWN,
    conclude=conclude,
    cut=(
        "One side is varied at a time: all pairs of wordings would be 64.",
        "With training only trec50, and six input and six label prompts beside the task's own; pools and the empty "
        "prompt's state there on both sides at once.",
        BY_NAME_TOLD,
        "The default encoder was aligned with several wordings, so that others may hang more on theirs: "
        "--model all-MiniLM-L6-v2 asks the encoder without its adapter.",
        "Measured on 1,000 test rows at most.",
    ),
    minutes=30,
)
