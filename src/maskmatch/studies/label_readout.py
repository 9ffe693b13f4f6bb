"""Where to read a label: at the mask of its prompt, or by mean, maximum or [CLS], of the prompt or of the bare name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from maskmatch.comparison import Variant
from maskmatch.encoder import EMBEDDED_MODEL
from maskmatch.methods import Method
from maskmatch.readout import Readout
from maskmatch.studies.pictures import dot_plot
from maskmatch.studies.study import Conclusion, Found, Part, Study
from maskmatch.studies.words import (
    BY_NAME,
    BY_NAME_TOLD,
    HOW_TESTED,
    against,
    corrected,
    few_seeds,
    sentence_case,
    trials,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.tasks import Task

BARE_ENCODER = " (bare encoder)"
ENCODERS = {"": {}, BARE_ENCODER: {"model": EMBEDDED_MODEL}}
"""The default has learned to answer through its mask, so it cannot be the only judge of where to read."""

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
"""What is trained on a second dataset, on the default encoder: the mask and the mean, which is what may replace it."""

QUICK = (BOTH_MASKS, *LABEL_SIDE[:1], *LABEL_SIDE[3:4], *INPUT_SIDE[:1], BOTH_MASKS + BARE_ENCODER)


def readout_variants(task: Task) -> list[Variant]:
    """Every way of reading that the study compares, on both encoders; prompts are the task's own, or none."""
    found = []
    for suffix, matcher in ENCODERS.items():
        for name in [BOTH_MASKS, *LABEL_SIDE, *INPUT_SIDE, *ALIKE, *BARE_ALIKE, *([] if suffix else CROSSED)]:
            text, _, label = name.removeprefix("text ").partition(", label ")
            method = Method(name, _readout(text), "prompt", label_readout=_readout(label))
            prompts = {
                "prompt": task.bare_prompt if "bare" in text else task.prompt,
                "label_prompt": "{label}" if "bare" in label else task.label_prompt,
            }
            found.append(Variant(name + suffix, method, matcher={**matcher, **prompts}))
    return found


def _readout(words: str) -> Readout:
    return next(each for each in get_args(Readout) if words.split(maxsplit=1)[0] == each)


def _trained_variants(task: Task) -> list[Variant]:
    wanted = {name + suffix for name in TRAINED for suffix in ENCODERS}
    return [replace(variant, **BY_NAME) for variant in readout_variants(task) if variant.name in wanted]


def _mask_or_mean(task: Task) -> list[Variant]:
    return [variant for variant in _trained_variants(task) if variant.name in TRAINED_ON_MORE]


def conclude(found: Found) -> Conclusion:
    """Label side, input side, both sides; for each encoder and regime."""
    sentences: list[str | None] = []
    sides = (
        ("On the label side", LABEL_SIDE),
        ("On the input side", INPUT_SIDE),
        ("The same on both sides", [*ALIKE, *BARE_ALIKE]),
        ("Crossed", CROSSED),
    )
    answer: list[str | None] = []
    pictures = []
    for regime in found.regimes:
        for suffix in ENCODERS:
            for about, names in sides:
                sentences += _side_sentences(found, about, names, suffix, regime)
            sentences.append(_prompt_sentence(found, suffix, regime))
            for datasets in _tried_on(found, suffix, regime):
                answer.append(_answer(found, suffix, regime, datasets))
                pictures.append(_picture(found, suffix, regime, datasets))
    known = [told for told in answer if told]
    said = [*known, *filter(None, sentences), HOW_TESTED, *few_seeds(found)]
    return Conclusion(said, pictures=list(filter(None, pictures)), answer=known)


def _side_sentences(found: Found, about: str, names: Sequence[str], suffix: str, regime: str) -> list[str | None]:
    """Ways of reading against the mask on both sides: a sentence for all that were tried on the same datasets."""
    told = []
    for datasets in _tried_on(found, suffix, regime):
        others = [name + suffix for name in names if _datasets(found, name + suffix, regime) == datasets]
        where = about + _on(found, datasets, regime)
        told.append(against(found, BOTH_MASKS + suffix, others, regime, datasets=datasets, about=where))
    return told


def _picture(found: Found, suffix: str, regime: str, datasets: Sequence[str]) -> str:
    """All ways of reading that were tried with one encoder on some datasets."""
    names = _tried(found, suffix, regime, datasets)
    encoder = ", bare encoder" if suffix else ""
    heading = f"{regime}{encoder}{_on(found, datasets, regime)}"
    called = {name: name.removesuffix(BARE_ENCODER) for name in names}
    return dot_plot(found, regime, names, heading, datasets=datasets, called=called)


def _own(found: Found, suffix: str, regime: str) -> list[str]:
    """The ways of reading that were tried with one encoder."""
    return [name for name in found.methods(regime) if name.endswith(BARE_ENCODER) == bool(suffix)]


def _tried(found: Found, suffix: str, regime: str, datasets: Sequence[str]) -> list[str]:
    """Those of them that were tried on all of some datasets."""
    return [name for name in _own(found, suffix, regime) if set(datasets) <= set(_datasets(found, name, regime))]


def _tried_on(found: Found, suffix: str, regime: str) -> list[tuple[str, ...]]:
    """On which datasets ways of reading were tried: most on one, perhaps, and some on more, which come first."""
    tried = dict.fromkeys(_datasets(found, name, regime) for name in _own(found, suffix, regime))
    return sorted(tried, key=len, reverse=True)


def _datasets(found: Found, name: str, regime: str) -> tuple[str, ...]:
    cells = found.comparison.groups()
    return tuple(dataset for dataset in found.datasets if (dataset, regime, name) in cells)


def _on(found: Found, datasets: Sequence[str], regime: str) -> str:
    """On which datasets, if not on all of the regime."""
    everywhere = {dataset for dataset, own, _ in found.comparison.groups() if own == regime}
    return "" if everywhere == set(datasets) else f" on {', '.join(datasets)}"


def _prompt_sentence(found: Found, suffix: str, regime: str) -> str | None:
    """The bare name against the prompted one, where both were read alike."""
    rows = []
    for readout in POOLED:
        prompted, bare = (_name("mask", f"{readout}{form}") + suffix for form in ("", " of bare name"))
        rows += [(readout, row) for row in trials(found, prompted, [bare], regime)]
    tested = corrected([row for _, row in rows])
    told = [f"{readout} {_verdict(row.verdict)} ({row})" for (readout, _), row in zip(rows, tested, strict=True)]
    if not told:
        return None
    datasets = _datasets(found, _name("mask", f"{POOLED[0]} of bare name") + suffix, regime)
    where = f"{regime}{suffix}{_on(found, datasets, regime)}"
    return f"A bare name instead of the prompted one, {where}: {'; '.join(told)}."


def _verdict(verdict: int) -> str:
    return {1: "gains", -1: "loses", 0: "neither gains nor loses for certain"}[verdict]


def _answer(found: Found, suffix: str, regime: str, datasets: Sequence[str]) -> str | None:
    """Whether the mask is the best place, among the ways that were tried on some datasets."""
    reference = BOTH_MASKS + suffix
    others = [name for name in _tried(found, suffix, regime, datasets) if name != reference]
    rows = trials(found, reference, others, regime, datasets)
    if not rows:
        return None
    encoder = ", bare encoder" if suffix else ""
    where = f"{sentence_case(regime)}{encoder}{_on(found, datasets, regime)}"
    best = max((row for row in rows if row.verdict > 0), key=lambda row: row.accuracy, default=None)
    if best is not None:
        return (
            f"{where}: the mask on both sides is not the best place to read; of {len(rows)} others the best is {best}."
        )
    unclear = [row.name for row in rows if row.verdict == 0]
    if unclear:
        return f"{where}: nothing beats {reference} for certain, but {'; '.join(unclear)} may be as good."
    return f"{where}: {reference} is better than all {len(rows)} others that were tried."


LABEL_READOUT = Study(
    name="label-readout",
    question="Is the mask the right place to read a label, or would a mean, a maximum or [CLS] do as well?",
    parts=(
        Part({"banking77": "intent", "trec50": "question"}, readout_variants, ("zero-shot",), quick=QUICK),
        Part({"trec50": "question"}, _trained_variants, ("5 shots",), quick=QUICK[:2]),
        Part({"banking77": "intent"}, _mask_or_mean, ("5 shots",), quick=()),
    ),
    reference=BOTH_MASKS,
    conclude=conclude,
    cut=(
        "Two datasets, and with training mostly one: every way of reading trains anew, and each training takes a "
        "minute or two.",
        "With training only 8 of the 25 ways are compared: the four read-outs on the label side, the bare name by its "
        "mean, the mean on the input side and on both, and the mean of bare text and name. On banking77 four of "
        "these, the mask and the mean on each side, on the default encoder.",
        BY_NAME_TOLD,
        "Two different pooled read-outs on the two sides (crossed) are tried zero-shot, on the default encoder alone.",
        "Measured on 1,000 test rows at most.",
    ),
    minutes=30,
)
