"""Whether labels gain by further phrases and by examples that are found without knowing the domain."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from maskmatch.classifier import MaskMatcher
from maskmatch.comparison import Variant
from maskmatch.comparison.label_changes import LabelChange
from maskmatch.expansion import expand_labels
from maskmatch.similarity_config import SimilarityConfig
from maskmatch.studies.pictures import dot_plot
from maskmatch.studies.study import Conclusion, Found, Part, Study
from maskmatch.studies.words import HOW_TESTED, against, few_seeds, points, sentence_case

if TYPE_CHECKING:
    from maskmatch.choices import PhraseJoin
    from maskmatch.comparison.label_changes import LabelContext
    from maskmatch.labels import LabelSet

NAMES = "names"
EXAMPLES = "names and examples"
WORDS = "names and words of the vocabulary"
TYPICAL = "names and typical words of the training texts"
UNLABELLED = 1000
"""How many training texts are looked at without their labels."""

ALL_DATA = {"epochs": 1, "batch_size": 128, "learning_rate": 4e-4}
"""One pass in large steps: every step reads all phrases of all labels."""

JOINS: dict[str, PhraseJoin] = {"mean": "mean", "log-sum-exp": "logsumexp"}
BY_MAXIMUM = {"similarity": SimilarityConfig(phrases="max")}


def _matcher(context: LabelContext) -> MaskMatcher:
    return MaskMatcher.from_pretrained(context.model, context.labels, task=context.task, method="mask-matching")


def with_examples(context: LabelContext) -> LabelSet:
    """Labels with the unlabelled texts that match them best."""
    texts = [text for text in context.pool.texts if isinstance(text, str)]
    drawn = random.Random(context.seed).sample(texts, min(len(texts), UNLABELLED))
    return expand_labels(_matcher(context), texts=drawn).label_set


def with_words(context: LabelContext) -> LabelSet:
    """Labels with the words of the encoder's vocabulary that come nearest to them."""
    return expand_labels(_matcher(context), sources=["vocabulary"]).label_set


def with_all_words(context: LabelContext) -> LabelSet:
    """The same with words that come nearer to another label as well."""
    return expand_labels(_matcher(context), sources=["vocabulary"], drop_shared=False).label_set


def with_typical_words(context: LabelContext) -> LabelSet:
    """Labels with the words that set their training texts apart."""
    rows = context.train
    return expand_labels(_matcher(context), train=(list(rows.texts), list(rows.labels))).label_set


PLAIN = Variant(NAMES)
BY_EXAMPLES = Variant(EXAMPLES, labels=LabelChange("examples from unlabelled texts", with_examples, drawn=True))
BY_WORDS = Variant(WORDS, matcher=BY_MAXIMUM, labels=LabelChange("words of the vocabulary", with_words))
BY_TYPICAL = Variant(TYPICAL, matcher=BY_MAXIMUM, labels=LabelChange("typical words", with_typical_words))


OTHER_WORDS = (
    *(
        Variant(
            f"{WORDS}, joined by {told}",
            matcher={"similarity": SimilarityConfig(phrases=join)},
            labels=LabelChange("words of the vocabulary", with_words),
        )
        for told, join in JOINS.items()
    ),
    Variant(
        f"{WORDS}, unfiltered", matcher=BY_MAXIMUM, labels=LabelChange("all words of the vocabulary", with_all_words)
    ),
)


def conclude(found: Found) -> Conclusion:
    """Names with what was found for them against names alone, in each regime and on each dataset."""
    sentences: list[str | None] = []
    tested: dict[str, str | None] = {}
    gains: dict[str, dict[str, dict[str, float]]] = {}
    for regime in found.regimes:
        others = [name for name in found.methods(regime) if name != NAMES]
        tested[regime] = against(found, NAMES, others, regime)
        for name in others:
            own = _gains(found, name, regime)
            gains.setdefault(regime, {})[name] = own
            sentences.append(_by_dataset(regime, name, own))
    answer = [told for told in (_bar_sentence(gains.get("zero-shot", {})), *(tested.values())) if told]
    pictures = [dot_plot(found, regime, found.methods(regime)) for regime in found.regimes]
    said = [*answer, *filter(None, sentences), HOW_TESTED, *few_seeds(found)]
    return Conclusion(said, {"gains": gains}, pictures, answer)


def _gains(found: Found, name: str, regime: str) -> dict[str, float]:
    """How much more often a variant is right than names alone, on each dataset."""
    gains = {}
    for dataset in found.datasets:
        pair = [found.comparison.accuracy(each, regime, [dataset]) for each in (name, NAMES)]
        if pair[0] is not None and pair[1] is not None:
            gains[dataset] = round(pair[0] - pair[1], 4)
    return gains


def _by_dataset(regime: str, name: str, gains: dict[str, float]) -> str | None:
    if not gains:
        return None
    mean = sum(gains.values()) / len(gains)
    told = ", ".join(f"{dataset} {points(gain)}" for dataset, gain in gains.items())
    return f"{sentence_case(regime)}, {name} bring {points(mean)} points on average over datasets: {told}."


def _bar_sentence(gains: dict[str, dict[str, float]]) -> str | None:
    """Which kinds of expansion are good enough to be taken without looking."""
    known = {name: own for name, own in gains.items() if own}
    if not known:
        return None
    means = {name: sum(own.values()) / len(own) for name, own in known.items()}
    good = [name for name, own in known.items() if means[name] >= WANTED_GAIN and min(own.values()) >= -MOST_LOST]
    reached = "; ".join(f"{name} ({points(means[name])})" for name in good)
    return (
        f"Zero-shot, an expansion should bring {points(WANTED_GAIN)} points on average, and take more than "
        f"{100 * MOST_LOST:.1f} points on no dataset. Such are: {reached or 'none'}."
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
    question="Do labels gain by further phrases and examples that are found without knowing the domain?",
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
        "Examples are compared zero-shot alone: training does without them, as its own rows take their place.",
        "With training on one dataset only, and with all data for one epoch in steps of 128 texts, at twice the usual "
        "rate. Typical words are told by two texts a "
        "label or more, so there are none with 1 shot.",
        "How phrases are joined (mean, maximum, log-sum-exp) and whether phrases that are nearer to another label are "
        "dropped is compared zero-shot, for words of the vocabulary.",
        "Measured on 1,000 test rows at most.",
    ),
    minutes=40,
)
