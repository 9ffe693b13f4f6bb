"""Adapt a classifier to unlabelled texts, and find out whether that helps."""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.data import is_blank, is_table, load_examples, take_examples
from maskmatch.errors import MaskMatchError
from maskmatch.labels.adaptation import MAX_TEXTS, Adaptation, matching_scale
from maskmatch.labels.targets import row_labels
from maskmatch.prediction.pipeline import check_count
from maskmatch.prediction.runtimes.torch import torch_pipeline
from maskmatch.prediction.search import ExactSearch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from maskmatch.model.label_bank import LabelBank
    from maskmatch.prediction.label_scorer import LabelScorer
    from maskmatch.prediction.pipeline import Pipeline

logger = logging.getLogger("maskmatch")

LEAST_TEXTS = 100
"""With fewer texts, names alone are as good."""

LEAST_AGREEMENT = 0.55
"""The least share of texts that keep their label. Below it, texts do not group by these labels."""


SCORES = 1 << 22
"""How many scores are held to find the scale of adapted scores."""


@dataclass(frozen=True)
class AdaptationSummary:
    """The result of adapting a classifier.

    Attributes:
        adapted: Whether the classifier is adapted.
        reason: Why it is, or is not, in a sentence.
        advised: Whether the texts, or dev data, speak for it; it may have been forced.
        texts: How many texts were given.
        used: How many were used: different ones, drawn at random if there are too many.
        agreement: The share of these texts that keep their label.
        dev: The accuracy on dev before and after, if dev data was given.
        seconds: How long it took.
    """

    adapted: bool
    reason: str
    advised: bool
    texts: int
    used: int
    agreement: float
    dev: tuple[float, float] | None
    seconds: float

    def __str__(self) -> str:
        if not self.adapted:
            return f"The classifier stays as it is: {self.reason}"
        forced = "" if self.advised else "as asked, although "
        used = f"{self.used} of {self.texts} unlabelled texts"
        return f"Adapted to {used} in {self.seconds:.0f} s: {forced}{self.reason}"


def adapt_bank(
    bank: LabelBank,
    texts: Any,
    *,
    dev: Any = None,
    force: bool = False,
    max_texts: int = MAX_TEXTS,
    seed: int = 0,
    trained: bool = False,
) -> AdaptationSummary:
    """Adapt the labels of a bank to unlabelled texts, unless that would probably do harm.

    Args:
        bank: The model and its labels.
        texts: Unlabelled texts: a list, a table, or a stream, which is read in constant memory.
        dev: Labelled texts that decide whether to adapt; None: the texts themselves decide.
        force: Whether to adapt in any case.
        max_texts: How many texts to use at most, drawn at random.
        seed: The seed of the draw and of the groups of texts.
        trained: Whether the classifier was trained.
    """
    started = time.perf_counter()
    check_count(max_texts, "max_texts")
    _check(bank)
    given, used = _draw(texts, bank.config.fields, max_texts, seed)
    plain = bank.copy()
    plain.set_adaptation(None)
    pipeline = torch_pipeline(plain)
    vectors = pipeline.all_vectors(pipeline.tokenize(used))  # (n, masks, dim)
    scorer = pipeline.scorer
    adaptation = Adaptation.of(scorer.prepare(vectors), seed, trained=trained)
    some = vectors[: max(1, SCORES // len(scorer))]
    scale = matching_scale(scorer.scores(some), scorer.adapted(adaptation).scores(some))
    adaptation = replace(adaptation, scale=scale)
    adapted = scorer.adapted(adaptation)
    agreement = float(np.mean(_best(scorer, vectors) == _best(adapted, vectors)))
    before_after = None if dev is None else _on_dev(pipeline, adapted, dev)
    advised, reason = _decision(len(used), agreement, before_after)
    if advised or force:
        bank.set_adaptation(adaptation)
    seconds = round(time.perf_counter() - started, 2)
    summary = AdaptationSummary(
        advised or force, reason, advised, given, len(used), round(agreement, 4), before_after, seconds
    )
    if not summary.adapted:
        logger.warning("%s", summary)
    return summary


def _check(bank: LabelBank) -> None:
    """Raise if the labels of a classifier cannot be adapted."""
    config, method = bank.config, bank.config.method
    if not method.reads_labels:
        raise MaskMatchError(
            f"The method {method.name} reads no label names, so it cannot learn from unlabelled texts; mask-matching "
            "can."
        )
    if config.multi_label:
        raise MaskMatchError(
            "A classifier that gives several labels per text cannot be adapted to unlabelled texts; one that gives one "
            "label per text can."
        )
    if not config.adapts:
        raise MaskMatchError(
            "Labels that are read with each text, or compared mask by mask (masks='late'), cannot be adapted to "
            "unlabelled texts; choose another label prompt, or masks='mean'."
        )
    if len(bank.known_labels) < 2:
        raise MaskMatchError("There is one label only, so there is nothing to adapt; give at least two.")


def _decision(texts: int, agreement: float, before_after: tuple[float, float] | None) -> tuple[bool, str]:
    """Whether to adapt, and why."""
    if before_after is not None:
        before, after = before_after
        return after >= before, f"on dev the accuracy is {before:.4f} without adapting and {after:.4f} with it."
    if texts < LEAST_TEXTS:
        return False, f"there are only {texts} different texts, and adapting needs {LEAST_TEXTS}."
    if agreement < LEAST_AGREEMENT:
        return False, (
            f"{1 - agreement:.0%} of the texts would get another label, so they probably do not group by these labels; "
            "check with labelled texts (dev), or force it."
        )
    return True, f"{1 - agreement:.0%} of the texts get another label."


def _draw(texts: Any, fields: Sequence[str], most: int, seed: int) -> tuple[int, list[Any]]:
    """The number of texts, and a random draw of different ones; blank texts are left out."""
    if is_table(texts):
        texts = load_examples(texts, fields, want_label=False).texts
    if isinstance(texts, (str, dict)) or not hasattr(texts, "__iter__"):
        raise MaskMatchError(f"Texts come as a list, even a single one: [text]; this is a {type(texts).__name__}.")
    drawn: dict[str, Any] = {}
    count, blank = 0, 0
    chance = random.Random(seed)
    order: list[str] = []
    for text in texts:
        count += 1
        if is_blank(text) or (isinstance(text, dict) and any(is_blank(text.get(name)) for name in fields)):
            blank += 1
            continue
        key = repr(text)
        if key in drawn:
            continue
        if len(order) < most:
            order.append(key)
        else:  # reservoir sampling: each text has the same chance
            place = chance.randrange(count - blank)
            if place >= most:
                continue
            del drawn[order[place]]
            order[place] = key
        drawn[key] = text
    if blank:
        logger.warning("%d of %d unlabelled texts are blank; they are left out.", blank, count)
    if not drawn:
        raise MaskMatchError("There are no texts to adapt to; give at least one.")
    return count, [drawn[key] for key in order]


def _best(scorer: LabelScorer, vectors: NDArray[np.float32]) -> NDArray[np.int64]:
    """The position of the nearest label of each text: (n,)."""
    search = ExactSearch(scorer)
    parts = [search(vectors[start : start + 256], 1).places[:, 0] for start in range(0, len(vectors), 256)]
    return np.concatenate(parts)


def _on_dev(pipeline: Pipeline, adapted: LabelScorer, dev: Any) -> tuple[float, float]:
    """The accuracy on dev before and after adapting."""
    texts, labels = dev if isinstance(dev, tuple) else (dev, None)
    examples = take_examples(texts, labels, pipeline.config.fields)
    truth = np.array([pipeline.labels.position(label) for label in row_labels(examples, pipeline.labels, False)])
    vectors = pipeline.all_vectors(pipeline.tokenize(examples.texts))
    before, after = (float(np.mean(_best(scorer, vectors) == truth)) for scorer in (pipeline.scorer, adapted))
    return round(before, 4), round(after, 4)
