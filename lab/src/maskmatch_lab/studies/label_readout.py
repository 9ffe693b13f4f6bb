"""Read-outs of labels: the mask of the prompt, or mean, maximum or [CLS], of the prompt or of the bare name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from maskmatch.config.methods import Method, Readout
from maskmatch.model.encoder import EMBEDDED_MODEL
from maskmatch_lab.comparison import Variant
from maskmatch_lab.studies.pictures import Panel, dot_plot
from maskmatch_lab.studies.study import Conclusion, Evidence, Part, Study
from maskmatch_lab.studies.words import (
    BY_NAME,
    BY_NAME_NOTE,
    HOW_TESTED,
    against,
    corrected,
    few_seeds,
    paired_tests,
    sentence_case,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.config.tasks import Task

BARE_ENCODER = " (bare encoder)"
ENCODERS = {"": {}, BARE_ENCODER: {"model": EMBEDDED_MODEL}}
"""The default encoder was trained to answer at its mask, so read-outs are compared on the bare encoder as well."""

POOLED: tuple[Readout, ...] = ("mean", "max", "cls")
BOTH_MASKS = "text mask, label mask"


def _name(text: str, label: str) -> str:
    return f"text {text}, label {label}"


LABEL_SIDE = [_name("mask", f"{readout}{form}") for form in ("", " of bare name") for readout in POOLED]
INPUT_SIDE = [_name(f"{readout}{form}", "mask") for form in ("", " of bare text") for readout in POOLED]
ALIKE = [_name(readout, readout) for readout in POOLED]
CROSSED = [_name(text, label) for text in POOLED for label in POOLED if text != label]
BARE_ALIKE = [_name(f"{readout} of bare text", f"{readout} of bare name") for readout in POOLED]
TRAINED = [BOTH_MASKS, *LABEL_SIDE[:3], LABEL_SIDE[3], INPUT_SIDE[0], ALIKE[0], BARE_ALIKE[0]]
TRAINED_ON_MORE = [BOTH_MASKS, LABEL_SIDE[0], INPUT_SIDE[0], ALIKE[0]]
"""Read-outs that are trained on a second dataset, on the default encoder: the mask and the mean, its main rival."""

QUICK = (BOTH_MASKS, *LABEL_SIDE[:1], *LABEL_SIDE[3:4], *INPUT_SIDE[:1], BOTH_MASKS + BARE_ENCODER)


def readout_variants(task: Task) -> list[Variant]:
    """Every read-out that the study compares, on both encoders; prompts are the task's own, or none."""
    variants = []
    for suffix, matcher in ENCODERS.items():
        for name in [BOTH_MASKS, *LABEL_SIDE, *INPUT_SIDE, *ALIKE, *BARE_ALIKE, *([] if suffix else CROSSED)]:
            text, _, label = name.removeprefix("text ").partition(", label ")
            method = Method(name, _readout(text), "prompt", label_readout=_readout(label))
            prompts = {
                "prompt": task.bare_prompt if "bare" in text else task.prompt,
                "label_prompt": "{label}" if "bare" in label else task.label_prompt,
            }
            variants.append(Variant(name + suffix, method, matcher={**matcher, **prompts}))
    return variants


def _readout(words: str) -> Readout:
    return next(each for each in get_args(Readout) if words.split(maxsplit=1)[0] == each)


def _trained_variants(task: Task) -> list[Variant]:
    wanted = {name + suffix for name in TRAINED for suffix in ENCODERS}
    return [replace(variant, **BY_NAME) for variant in readout_variants(task) if variant.name in wanted]


def _mask_or_mean(task: Task) -> list[Variant]:
    return [variant for variant in _trained_variants(task) if variant.name in TRAINED_ON_MORE]


def conclude(evidence: Evidence) -> Conclusion:
    """Label side, input side, both sides; for each encoder and regime."""
    sentences: list[str | None] = []
    sides = (
        ("On the label side", LABEL_SIDE),
        ("On the input side", INPUT_SIDE),
        ("The same on both sides", [*ALIKE, *BARE_ALIKE]),
        ("Crossed", CROSSED),
    )
    answer: list[str | None] = []
    for regime in evidence.regimes:
        for suffix in ENCODERS:
            for about, names in sides:
                sentences += _side_sentences(evidence, about, names, suffix, regime)
            sentences.append(_prompt_sentence(evidence, suffix, regime))
            for datasets in _tried_on(evidence, suffix, regime):
                answer.append(_answer(evidence, suffix, regime, datasets))
    known = [sentence for sentence in answer if sentence]
    everything = [*known, *filter(None, sentences), HOW_TESTED, *few_seeds(evidence)]
    pictures = [_picture(evidence, suffix) for suffix in ENCODERS]
    return Conclusion(everything, pictures=list(filter(None, pictures)), answer=known)


def _side_sentences(evidence: Evidence, about: str, names: Sequence[str], suffix: str, regime: str) -> list[str | None]:
    """Read-outs against the mask on both sides: a sentence for all that ran on the same datasets."""
    sentences = []
    for datasets in _tried_on(evidence, suffix, regime):
        others = [name + suffix for name in names if _datasets(evidence, name + suffix, regime) == datasets]
        where = about + _on(evidence, datasets, regime)
        sentences.append(against(evidence, BOTH_MASKS + suffix, others, regime, datasets=datasets, about=where))
    return sentences


def _picture(evidence: Evidence, suffix: str) -> str:
    """All read-outs of one encoder: a panel per regime and set of datasets."""
    encoder = ", bare encoder" if suffix else ""
    panels = [
        Panel(regime, f"{regime}{encoder}{_on(evidence, datasets, regime)}", datasets)
        for regime in evidence.regimes
        for datasets in _tried_on(evidence, suffix, regime)
    ]
    names = [name for name in evidence.all_methods if name.endswith(BARE_ENCODER) == bool(suffix)]
    called = {name: name.removesuffix(BARE_ENCODER) for name in names}
    return dot_plot(evidence, panels, names, BOTH_MASKS + suffix, called=called)


def _own(evidence: Evidence, suffix: str, regime: str) -> list[str]:
    """The read-outs that ran with one encoder."""
    return [name for name in evidence.methods(regime) if name.endswith(BARE_ENCODER) == bool(suffix)]


def _tried(evidence: Evidence, suffix: str, regime: str, datasets: Sequence[str]) -> list[str]:
    """The read-outs that ran on all of these datasets."""
    return [name for name in _own(evidence, suffix, regime) if set(datasets) <= set(_datasets(evidence, name, regime))]


def _tried_on(evidence: Evidence, suffix: str, regime: str) -> list[tuple[str, ...]]:
    """The sets of datasets on which read-outs ran, the largest set first."""
    tried = dict.fromkeys(_datasets(evidence, name, regime) for name in _own(evidence, suffix, regime))
    return sorted(tried, key=len, reverse=True)


def _datasets(evidence: Evidence, name: str, regime: str) -> tuple[str, ...]:
    cells = evidence.comparison.groups()
    return tuple(dataset for dataset in evidence.datasets if (dataset, regime, name) in cells)


def _on(evidence: Evidence, datasets: Sequence[str], regime: str) -> str:
    """The names of the datasets, unless they are all datasets of the regime."""
    everywhere = {dataset for dataset, own, _ in evidence.comparison.groups() if own == regime}
    return "" if everywhere == set(datasets) else f" on {', '.join(datasets)}"


def _prompt_sentence(evidence: Evidence, suffix: str, regime: str) -> str | None:
    """The bare name against the prompted one, with the same read-out."""
    rows = []
    for readout in POOLED:
        prompted, bare = (_name("mask", f"{readout}{form}") + suffix for form in ("", " of bare name"))
        rows += [(readout, row) for row in paired_tests(evidence, prompted, [bare], regime)]
    tested = corrected([row for _, row in rows])
    parts = [f"{readout} {_verdict(row.verdict)} ({row})" for (readout, _), row in zip(rows, tested, strict=True)]
    if not parts:
        return None
    datasets = _datasets(evidence, _name("mask", f"{POOLED[0]} of bare name") + suffix, regime)
    where = f"{regime}{suffix}{_on(evidence, datasets, regime)}"
    return f"A bare name instead of the prompted one, {where}: {'; '.join(parts)}."


def _verdict(verdict: int) -> str:
    return {1: "is better", -1: "is worse", 0: "makes no clear difference"}[verdict]


def _answer(evidence: Evidence, suffix: str, regime: str, datasets: Sequence[str]) -> str | None:
    """Whether the mask is the best read-out on some datasets."""
    reference = BOTH_MASKS + suffix
    others = [name for name in _tried(evidence, suffix, regime, datasets) if name != reference]
    rows = paired_tests(evidence, reference, others, regime, datasets)
    if not rows:
        return None
    encoder = ", bare encoder" if suffix else ""
    where = f"{sentence_case(regime)}{encoder}{_on(evidence, datasets, regime)}"
    best = max((row for row in rows if row.verdict > 0), key=lambda row: row.accuracy, default=None)
    if best is not None:
        return f"{where}: the mask on both sides is not the best read-out; the best of {len(rows)} others is {best}."
    unclear = [row.name for row in rows if row.verdict == 0]
    if unclear:
        return f"{where}: nothing is clearly better than {reference}, but these may be as good: {'; '.join(unclear)}."
    return f"{where}: {reference} is better than all {len(rows)} others."


LABEL_READOUT = Study(
    name="label-readout",
    question="Is the mask the best read-out of a label, or would a mean, a maximum or [CLS] do as well?",
    parts=(
        Part({"banking77": "intent", "trec50": "question"}, readout_variants, ("zero-shot",), quick=QUICK),
        Part({"trec50": "question"}, _trained_variants, ("5 shots",), quick=QUICK[:2]),
        Part({"banking77": "intent"}, _mask_or_mean, ("5 shots",), quick=()),
    ),
    reference=BOTH_MASKS,
    conclude=conclude,
    cut=(
        "Two datasets, and mostly one with training: every read-out needs a training run of its own, which takes a "
        "minute or two.",
        "With training only 8 of the 25 read-outs are compared: the four on the label side, the mean of the bare name, "
        "the mean on the input side and on both sides, and the mean of bare text and bare name. On banking77 only "
        "four of these, the mask and the mean on each side, on the default encoder.",
        BY_NAME_NOTE,
        "Different pooled read-outs on the two sides (crossed) are tried only zero-shot, on the default encoder.",
        "Evaluated on at most 1,000 test rows.",
    ),
    minutes=30,
)
