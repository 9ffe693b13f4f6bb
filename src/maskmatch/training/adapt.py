"""Adapt a classifier to unlabelled texts, and find out whether that helps."""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.data import is_blank, is_table, load_examples
from maskmatch.errors import MaskMatchError
from maskmatch.labels.adaptation import Adaptation, matching_scale, name_weight
from maskmatch.prediction.answers import check_count
from maskmatch.prediction.runtimes.torch import torch_pipeline
from maskmatch.prediction.search import ExactSearch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.labels import LabelSet
    from maskmatch.model.model_bank import ModelBank
    from maskmatch.prediction.label_scorer import LabelScorer
    from maskmatch.prediction.pipeline import Pipeline
    from maskmatch.training.dev import DevData
    from maskmatch.training.self_training import SelfTrainingSummary

logger = logging.getLogger("maskmatch")

LEAST_TEXTS = 100
"""With fewer texts, names alone are as good."""

LEAST_AGREEMENT = 0.48
"""The least agreement of labels before and after (Cohen's kappa). Below it, texts do not group by these labels."""

SCORES = 1 << 22
"""How many scores are held to find the scale of adapted scores."""


@dataclass(frozen=True)
class DrawnTexts:
    """Unlabelled texts: different ones, drawn at random if there are too many.

    Attributes:
        texts: The texts.
        given: How many there were.
    """

    texts: list[Any]
    given: int

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class AdaptationSummary:
    """The result of adapting a classifier.

    Attributes:
        adapted: Whether the classifier is adapted.
        reason: Why, in the words of a sentence.
        advised: Whether the texts, or dev data, speak for it; it may have been forced.
        texts: How many texts were given.
        used: How many were used: different ones, drawn at random if there are too many.
        changed: The share of these texts that get another label, or would get one.
        agreement: How far these labels and those by names alone agree, corrected for chance (Cohen's kappa), measured
            before the weight of names is chosen: 1 is the best.
        dev: The score on dev before and after, by the task's metric, if dev data was given.
        seconds: How long it took.
        self_training: The result of self-training, if that was asked for.
    """

    adapted: bool
    reason: str
    advised: bool
    texts: int
    used: int
    changed: float
    agreement: float
    dev: tuple[float, float] | None
    seconds: float
    self_training: SelfTrainingSummary | None = None

    def __str__(self) -> str:
        if not self.adapted:
            return f"The classifier stays as it is: {self.reason}"
        used = f"{self.used:,} different texts of {self.texts:,}"
        what = f"Adapted to {used} in {self.seconds:.0f} s: {self.changed:.0%} of them get another label."
        why = (
            ""
            if self.dev is None and self.advised
            else f" {'' if self.advised else 'As asked, although '}{self.reason}"
        )
        more = "" if self.self_training is None else f" {self.self_training}"
        return f"{what}{why}{more}"


def adapt_bank(
    bank: ModelBank,
    texts: DrawnTexts,
    *,
    dev: DevData | None = None,
    force: bool = False,
    seed: int = 0,
    trained: bool = False,
) -> AdaptationSummary:
    """Adapt the labels of a bank to unlabelled texts, unless that would probably do harm.

    Args:
        bank: The model and its labels.
        texts: Unlabelled texts.
        dev: Labelled texts that decide whether to adapt; None: the texts themselves decide.
        force: Whether to adapt in any case.
        seed: The seed of the groups of texts.
        trained: Whether the classifier was trained.
    """
    started = time.perf_counter()
    plain = bank.copy()
    plain.learn(adaptation=None)
    pipeline = torch_pipeline(plain)
    vectors = pipeline.all_vectors(pipeline.tokenize(texts.texts))  # (n, masks, dim)
    scorer = pipeline.scorer
    adaptation = Adaptation.of(scorer.prepare(vectors), seed, trained=trained)
    before, first = _best(scorer, vectors), _best(scorer.adapted(adaptation), vectors)
    agreement = cohen_kappa(before, first, len(scorer))
    if not trained:
        adaptation = replace(adaptation, name_weight=name_weight(agreement))
    some = vectors[: max(1, SCORES // len(scorer))]
    scale = matching_scale(scorer.scores(some), scorer.adapted(adaptation).scores(some))
    adaptation = replace(adaptation, scale=scale)
    adapted = scorer.adapted(adaptation)
    changed = float(np.mean(before != _best(adapted, vectors)))
    scores = None if dev is None else _dev_scores(dev, pipeline, adapted)
    advised, reason = _decision(len(texts), agreement, scores)
    if advised or force:
        calibration = bank.calibration  # its rows were scored before
        bank.learn(
            adaptation=adaptation, calibration=None if calibration is None else replace(calibration, conformity=())
        )
    summary = AdaptationSummary(
        adapted=advised or force,
        reason=reason,
        advised=advised,
        texts=texts.given,
        used=len(texts),
        changed=round(changed, 4),
        agreement=round(agreement, 4),
        dev=scores,
        seconds=round(time.perf_counter() - started, 2),
    )
    if not summary.adapted:
        logger.warning("%s", summary)
    return summary


def check_adaptable(config: MatcherConfig, labels: LabelSet | None) -> None:
    """Raise if a classifier cannot be adapted, by what is known before training."""
    method = config.method
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
    if labels is not None and len(labels) < 2:
        raise MaskMatchError("There is one label only, so there is nothing to adapt; give at least two.")


def _decision(texts: int, agreement: float, scores: tuple[float, float] | None) -> tuple[bool, str]:
    """Whether to adapt, and why.

    Args:
        texts: How many texts there are.
        agreement: How far labels before and after agree.
        scores: On dev, before and after.
    """
    if scores is not None:
        before, after = scores
        return after >= before, f"the score on dev is {before:.4f} without adapting and {after:.4f} with it."
    if texts < LEAST_TEXTS:
        are = "is only 1 text" if texts == 1 else f"are only {texts} texts"
        return False, f"there {are} to use, and adapting needs {LEAST_TEXTS}."
    measured = f"labels before and after agree by {agreement:.3f}, and adapting needs {LEAST_AGREEMENT}"
    if agreement < LEAST_AGREEMENT:
        return False, f"the texts probably do not group by these labels ({measured})."
    return True, f"the texts group by these labels ({measured})."


def draw_texts(texts: Any, fields: Sequence[str], most: int, seed: int) -> DrawnTexts:
    """Draw different texts at random; blank texts are left out.

    Args:
        texts: A list, a table, or a stream, which is read in constant memory.
        fields: The fields of a text.
        most: How many to draw at most.
        seed: The seed of the draw.
    """
    check_count(most, "max_texts")
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
    return DrawnTexts([drawn[key] for key in order], count)


def _best(scorer: LabelScorer, vectors: NDArray[np.float32]) -> NDArray[np.int64]:
    """The position of the nearest label of each text: (n,)."""
    search = ExactSearch(scorer)
    parts = [search(vectors[start : start + 256], 1).places[:, 0] for start in range(0, len(vectors), 256)]
    return np.concatenate(parts)


def cohen_kappa(before: NDArray[np.int64], after: NDArray[np.int64], labels: int) -> float:
    """The agreement of two assignments of labels (n,), corrected for chance; 0 if all texts have one and the same.

    scikit-learn's function holds a matrix of all pairs of labels, which is too large for very many labels.
    """
    shares = [np.bincount(each, minlength=labels) / len(each) for each in (before, after)]
    by_chance = float(shares[0] @ shares[1])
    if by_chance >= 1.0:
        return 0.0
    return (float(np.mean(before == after)) - by_chance) / (1.0 - by_chance)


def _dev_scores(dev: DevData, pipeline: Pipeline, adapted: LabelScorer) -> tuple[float, float]:
    """The score on dev before and after adapting; its texts are encoded once."""
    vectors = pipeline.all_vectors(dev.prompts)
    before, after = (
        dev.metrics([pairs[0][0] for pairs in each.nearest(vectors)])["score"]
        for each in (pipeline, replace(pipeline, scorer=adapted))
    )
    return round(before, 4), round(after, 4)
