"""Whether automatically found phrases and examples improve labels."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from maskmatch.config.similarity import SimilarityConfig
from maskmatch.label_tools.expansion import expand_labels
from maskmatch.matcher import MaskMatcher
from maskmatch_lab.comparison import Variant
from maskmatch_lab.comparison.label_changes import LabelChange
from maskmatch_lab.studies.pictures import Panel, dot_plot
from maskmatch_lab.studies.study import Conclusion, Evidence, Part, Study
from maskmatch_lab.studies.words import HOW_TESTED, against, few_seeds, points, sentence_case

if TYPE_CHECKING:
    from maskmatch.labels import LabelSet
    from maskmatch_lab.comparison.label_changes import LabelContext

NAMES = "names"
EXAMPLES = "names and examples"
WORDS = "names and words of the vocabulary"
TYPICAL = "names and typical words of the training texts"
UNLABELLED = 1000
"""The number of training texts that are read without their labels."""

ALL_DATA = {"epochs": 1, "batch_size": 128, "learning_rate": 4e-4}
"""One epoch with large batches, because every step encodes all phrases of all labels."""

JOINS: dict[str, Literal["mean", "logsumexp"]] = {"mean": "mean", "log-sum-exp": "logsumexp"}
BY_MAXIMUM = {"similarity": SimilarityConfig(phrases="max")}


def _matcher(context: LabelContext) -> MaskMatcher:
    return MaskMatcher.from_pretrained(context.model, context.labels, task=context.task, method="mask-matching")


def with_examples(context: LabelContext) -> LabelSet:
    """Labels with the unlabelled texts that have the highest scores for them."""
    texts = [text for text in context.pool.texts if isinstance(text, str)]
    drawn = random.Random(context.seed).sample(texts, min(len(texts), UNLABELLED))
    return expand_labels(_matcher(context), texts=drawn).label_set


def with_words(context: LabelContext) -> LabelSet:
    """Labels with the nearest words of the encoder's vocabulary."""
    return expand_labels(_matcher(context), sources=["vocabulary"]).label_set


def with_all_words(context: LabelContext) -> LabelSet:
    """The same, including words that are nearer to another label."""
    return expand_labels(_matcher(context), sources=["vocabulary"], drop_shared=False).label_set


def with_typical_words(context: LabelContext) -> LabelSet:
    """Labels with the words that distinguish their training texts."""
    rows = context.train
    return expand_labels(_matcher(context), train=(list(rows.texts), list(rows.labels))).label_set


PLAIN = Variant(NAMES)
BY_EXAMPLES = Variant(EXAMPLES, labels=LabelChange("examples from unlabelled texts", with_examples, drawn=True))
BY_WORDS = Variant(WORDS, matcher=BY_MAXIMUM, labels=LabelChange("words of the vocabulary", with_words))
BY_TYPICAL = Variant(TYPICAL, matcher=BY_MAXIMUM, labels=LabelChange("typical words", with_typical_words))


OTHER_WORDS = (
    *(
        Variant(
            f"{WORDS}, joined by {name}",
            matcher={"similarity": SimilarityConfig(phrases=join)},
            labels=LabelChange("words of the vocabulary", with_words),
        )
        for name, join in JOINS.items()
    ),
    Variant(
        f"{WORDS}, unfiltered", matcher=BY_MAXIMUM, labels=LabelChange("all words of the vocabulary", with_all_words)
    ),
)


def conclude(evidence: Evidence) -> Conclusion:
    """Expanded names against names alone, in each regime and on each dataset."""
    sentences: list[str | None] = []
    tested: dict[str, str | None] = {}
    gains: dict[str, dict[str, dict[str, float]]] = {}
    for regime in evidence.regimes:
        others = [name for name in evidence.methods(regime) if name != NAMES]
        tested[regime] = against(evidence, NAMES, others, regime)
        for name in others:
            own = _gains(evidence, name, regime)
            gains.setdefault(regime, {})[name] = own
            sentences.append(_by_dataset(regime, name, own))
    sentences_first = (_target_sentence(gains.get("zero-shot", {})), *tested.values())
    answer = [sentence for sentence in sentences_first if sentence]
    picture = dot_plot(evidence, [Panel(regime) for regime in evidence.regimes], evidence.all_methods, NAMES)
    everything = [*answer, *filter(None, sentences), HOW_TESTED, *few_seeds(evidence)]
    return Conclusion(everything, {"gains": gains}, [picture], answer)


def _gains(evidence: Evidence, name: str, regime: str) -> dict[str, float]:
    """The difference in accuracy between a variant and names alone, on each dataset."""
    gains = {}
    for dataset in evidence.datasets:
        pair = [evidence.comparison.accuracy(each, regime, [dataset]) for each in (name, NAMES)]
        if pair[0] is not None and pair[1] is not None:
            gains[dataset] = round(pair[0] - pair[1], 4)
    return gains


def _by_dataset(regime: str, name: str, gains: dict[str, float]) -> str | None:
    if not gains:
        return None
    mean = sum(gains.values()) / len(gains)
    by_dataset = ", ".join(f"{dataset} {points(gain)}" for dataset, gain in gains.items())
    return f"{sentence_case(regime)}, {name} change accuracy by {points(mean)} points on average: {by_dataset}."


def _target_sentence(gains: dict[str, dict[str, float]]) -> str | None:
    """Which kinds of expansion reach the target."""
    known = {name: own for name, own in gains.items() if own}
    if not known:
        return None
    means = {name: sum(own.values()) / len(own) for name, own in known.items()}
    good = [name for name, own in known.items() if means[name] >= WANTED_GAIN and min(own.values()) >= -MOST_LOST]
    reached = "; ".join(f"{name} ({points(means[name])})" for name in good)
    return (
        f"The target for zero-shot: {points(WANTED_GAIN)} points on average, and a loss of at most "
        f"{100 * MOST_LOST:.1f} points on any dataset. Reached by: {reached or 'none'}."
    )


WANTED_GAIN, MOST_LOST = 0.03, 0.01

FIVE = {
    "banking77": "intent",
    "trec50": "question",
    "agnews": "topic",
    "newsgroups20": "topic",
    "goemotions": "emotion",
}

EXPANSION = Study(
    name="expansion",
    question="Do automatically found phrases and examples improve labels?",
    parts=(
        Part(FIVE, (PLAIN, BY_EXAMPLES, BY_WORDS, *OTHER_WORDS), ("zero-shot",)),
        Part({"trec50": "question"}, (PLAIN, BY_WORDS), ("1 shot",)),
        Part({"trec50": "question"}, (PLAIN, BY_WORDS, BY_TYPICAL), ("5 shots",)),
        Part(
            {"trec50": "question"},
            [replace(each, training=ALL_DATA) for each in (PLAIN, BY_WORDS, BY_TYPICAL)],
            ("full",),
        ),
    ),
    reference=NAMES,
    conclude=conclude,
    cut=(
        "Examples are compared only zero-shot: training replaces them with its own rows.",
        "Training runs on one dataset only. On all data it runs for one epoch with batches of 128 texts, at twice the "
        "usual learning rate. Typical words need at least two texts per label, so there are none with 1 shot.",
        "The ways to join phrases (mean, maximum, log-sum-exp), and whether to drop phrases that are nearer to another "
        "label, are compared only zero-shot, for words of the vocabulary.",
        "Evaluated on at most 1,000 test rows.",
    ),
    minutes=40,
)
