"""How much accuracy depends on the wording of prompts, and whether prompt pools or debiasing help."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from maskmatch.evaluation.display import counted
from maskmatch_lab.comparison import Variant
from maskmatch_lab.studies.pictures import Panel, dot_plot
from maskmatch_lab.studies.study import Conclusion, Evidence, Part, Study
from maskmatch_lab.studies.words import BY_NAME, BY_NAME_NOTE, HOW_TESTED, against, few_seeds, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.config.tasks import Task

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
"""The members of a pool, in addition to the task's own prompt."""

POOLS = ("pool of inputs", "pool of labels", "both pools")
FREED = ("inputs less the empty prompt", "labels less the empty prompt", "both less the empty prompt")
SIDES = {"input": INPUTS, "label": LABELS}


def _name(side: str, wording: str) -> str:
    return f"{side}: {wording}"


def prompt_variants(task: Task) -> list[Variant]:
    """Every wording by itself, pools of sensible ones, and vectors minus the state of the empty prompt."""
    variants = [Variant(OWN)]
    variants += [Variant(_name("input", name), matcher={"prompt": template}) for name, template in INPUTS.items()]
    variants += [Variant(_name("label", name), matcher={"label_prompt": template}) for name, template in LABELS.items()]
    inputs = [task.prompt, *(INPUTS[name] for name in POOLED_INPUTS)]
    labels = [task.label_prompt, *(LABELS[name] for name in POOLED_LABELS)]
    pools = ({"prompt": inputs}, {"label_prompt": labels}, {"prompt": inputs, "label_prompt": labels})
    variants += [Variant(name, matcher=matcher) for name, matcher in zip(POOLS, pools, strict=True)]
    choices = ("inputs", "labels", "both")
    return variants + [Variant(name, matcher={"debias": each}) for name, each in zip(FREED, choices, strict=True)]


QUICK = (OWN, _name("input", "topic"), _name("label", EMPTY), POOLS[2], FREED[2])
NOT_TRAINED = (_name("input", "long"), _name("label", "as a text"), *POOLS[:2], *FREED[:2])


def _trained(task: Task) -> list[Variant]:
    return [replace(variant, **BY_NAME) for variant in prompt_variants(task) if variant.name not in NOT_TRAINED]


def conclude(evidence: Evidence) -> Conclusion:
    """The spread over wordings, the effect of no words and wrong words, and that of pools and debiasing."""
    sentences: list[str | None] = []
    answer: list[str] = []
    spreads: dict[str, dict[str, float]] = {}
    for regime in evidence.regimes:
        for side in SIDES:
            spread = _spread(evidence, _sensible(side), regime)
            if spread is not None:
                spreads[f"{side} prompts, {regime}"] = spread
                prompts = counted(int(spread["prompts"]), f"sensible {side} prompt")
                answer.append(
                    f"{prompts}, {regime}: accuracy from {percent(spread['low'])} to {percent(spread['high'])} on "
                    f"average over datasets, with a standard deviation of {100 * spread['sd']:.1f} points."
                )
            odd = [_name(side, name) for name in (EMPTY, MISLEADING, DENYING)]
            sentences.append(against(evidence, OWN, odd, regime, about=f"Odd {side} prompts"))
        helps = [
            _pool_sentence(evidence, regime),
            against(evidence, OWN, FREED, regime, about="Vectors minus the state of the empty prompt"),
        ]
        answer += filter(None, helps)
    answer += _trend(evidence)
    picture = dot_plot(evidence, [Panel(regime) for regime in evidence.regimes], evidence.all_methods, OWN)
    everything = [*answer, *filter(None, sentences), HOW_TESTED, *few_seeds(evidence)]
    return Conclusion(everything, {"spread": spreads}, [picture], answer)


def _spread(
    evidence: Evidence, names: Sequence[str], regime: str, datasets: Sequence[str] | None = None
) -> dict[str, float] | None:
    """The range of accuracies over wordings: the mean over datasets, all or some."""
    if datasets is None:
        datasets = list(dict.fromkeys(dataset for dataset, own, _ in evidence.comparison.groups() if own == regime))
    rows = [
        [score for name in names if (score := evidence.comparison.accuracy(name, regime, [dataset])) is not None]
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


def _pool_sentence(evidence: Evidence, regime: str) -> str | None:
    """Pools against the task's own prompts and against the accuracy of their members."""
    sentence = against(evidence, OWN, POOLS, regime, about="Pools of three prompts")
    members = [
        OWN,
        *(_name("input", name) for name in POOLED_INPUTS),
        *(_name("label", name) for name in POOLED_LABELS),
    ]
    scores = [score for name in members if (score := evidence.comparison.accuracy(name, regime)) is not None]
    both = evidence.comparison.accuracy(POOLS[2], regime)
    if sentence is None or both is None or len(scores) < 2:
        return sentence
    than = "above" if both > max(scores) else "below" if both < min(scores) else "within"
    return (
        f"{sentence} Both pools together reach {percent(both)}, {than} the range of their single members "
        f"({percent(min(scores))} to {percent(max(scores))})."
    )


def _trend(evidence: Evidence) -> list[str]:
    """Whether wording matters less after training, by the prompts and datasets that ran in both regimes."""
    if len(evidence.regimes) < 2:
        return []
    ends = evidence.regimes[0], evidence.regimes[-1]
    tried = [{(data, name) for data, own, name in evidence.comparison.groups() if own == regime} for regime in ends]
    datasets = [data for data in evidence.datasets if all((data, OWN) in each for each in tried)]
    sentences = []
    for side in SIDES:
        names = [name for name in _sensible(side) if all((data, name) in each for each in tried for data in datasets)]
        spreads = [_spread(evidence, names, regime, datasets) for regime in ends]
        if spreads[0] is None or spreads[1] is None:
            continue
        ranges = [spread["high"] - spread["low"] for spread in spreads if spread is not None]
        noise = _range_by_chance(evidence, names, ends[1], datasets)
        change = "shrinks" if ranges[1] + noise < ranges[0] else "does not clearly shrink"
        prompts = counted(len(names), f"sensible {side} prompt")
        sentences.append(
            f"On {', '.join(datasets)}, the gap between the best and the worst of {prompts} is {100 * ranges[0]:.1f} "
            f"points {ends[0]} and {100 * ranges[1]:.1f} points {ends[1]}, where seeds alone would cause a gap of "
            f"{100 * noise:.1f}: the gap {change} with training."
        )
    return sentences


def _range_by_chance(evidence: Evidence, names: Sequence[str], regime: str, datasets: Sequence[str]) -> float:
    """The expected gap between the best and the worst of equally good prompts, by the variance over seeds."""
    groups = evidence.comparison.groups()
    cells = [groups[data, regime, name] for data in datasets for name in names]
    errors = [
        np.std([cell.figures.accuracy for cell in own], ddof=1) / np.sqrt(len(own)) for own in cells if len(own) > 1
    ]
    if not errors:
        return 0.0
    draws = np.random.default_rng(0).standard_normal((1000, len(names)))
    return float(np.mean(errors) * (draws.max(axis=1) - draws.min(axis=1)).mean())


def _sensible(side: str) -> list[str]:
    """The task's own prompts, and those that differ on one side by a sensible wording."""
    return [OWN, *(_name(side, name) for name in SIDES[side] if name not in (EMPTY, MISLEADING, DENYING))]


PROMPTS = Study(
    name="prompts",
    question="How much does accuracy depend on the wording of the two prompts, and do pools or debiasing help?",
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
        "Only one side is varied at a time: all pairs of wordings would be 64.",
        "Training runs only on trec50, with six input and six label prompts besides the task's own. Pools and "
        "debiasing are trained only on both sides at once.",
        BY_NAME_NOTE,
        "The default encoder was aligned with several wordings, so other encoders may depend more on the wording. "
        "Use --model all-MiniLM-L6-v2 to run the study without the adapter.",
        "Evaluated on at most 1,000 test rows.",
    ),
    minutes=30,
)
