"""Answers: predicted labels, and how they are printed; and checks that predicting shares."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from maskmatch.labels import LabelSet
    from maskmatch.prediction.pipeline import Pipeline
    from maskmatch.prompts import TokenizedPrompts

logger = logging.getLogger("maskmatch")


@dataclass(frozen=True)
class Predictions:
    """The predicted label and confidence of each text; or with several labels per text, lists and all probabilities."""

    labels: list[Any]
    confidence: NDArray[np.float64] | None = None  # (n,)
    probabilities: NDArray[np.float32] | None = None  # (n, K)


def labels_above(
    probabilities: NDArray[Any], labels: LabelSet, threshold: float | NDArray[np.float64]
) -> list[list[Hashable]]:
    """Per row, the labels at or above a threshold, of all labels or (K,) of each, best first."""
    order = np.argsort(-probabilities, axis=1, kind="stable")
    applies = np.take_along_axis(probabilities >= threshold, order, axis=1)
    return [[labels[place] for place in places[own].tolist()] for places, own in zip(order, applies, strict=True)]


def warn_about_texts(prompts: TokenizedPrompts, max_length: int) -> int:
    """Warn how many texts were truncated, and how many the encoder cannot read; returns how many were truncated."""
    cut, unknown = int(prompts.cut.sum()), int(prompts.is_unknown.sum())
    if cut:
        logger.warning("%d of %d texts were longer than %d tokens and were truncated.", cut, len(prompts), max_length)
    if unknown:
        logger.warning(
            "In %d of %d texts most words are unknown to the encoder, so their answers mean little. The default reads "
            "English; for other languages choose an encoder that reads them.",
            unknown,
            len(prompts),
        )
    return cut


def check_count(value: Any, name: str) -> None:
    """Raise unless the value is a positive integer."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise MaskMatchError(f"{name} is {value!r}; it must be an integer of at least 1.")


DIGITS = 6
"""To how many digits probabilities are rounded."""


def json_answer(
    ranked: Sequence[tuple[Hashable, float]],
    k: int,
    applying: Sequence[Hashable] | None = None,
    *,
    abstain: float = 0.0,
    none_label: Hashable = None,
) -> dict[str, Any]:
    """The answer for one text.

    >>> json_answer([("refund", 0.75), ("card lost", 0.25)], k=1)
    {'label': 'refund', 'probability': 0.75, 'top_k': [{'label': 'refund', 'probability': 0.75}]}
    >>> json_answer([("refund", 0.75), ("card lost", 0.25)], k=1, abstain=0.8)
    {'label': None, 'probability': 0.75, 'top_k': [{'label': 'refund', 'probability': 0.75}]}
    >>> json_answer([("late", 0.9), ("broken", 0.6)], k=1, applying=["late", "broken"])
    {'labels': ['late', 'broken'], 'top_k': [{'label': 'late', 'probability': 0.9}]}

    Args:
        ranked: Labels with their probabilities, best first.
        k: How many labels to list.
        applying: With several labels per text: the labels that apply; else None.
        abstain: With one label per text: the probability from which the best label is the answer.
        none_label: The answer below that.
    """
    top_k = [{"label": label, "probability": round(value, DIGITS)} for label, value in ranked[:k]]
    if applying is None:
        best, probability = ranked[0]
        label = best if probability >= abstain else none_label
        return {"label": label, "probability": round(probability, DIGITS), "top_k": top_k}
    return {"labels": list(applying), "top_k": top_k}


def json_answers(
    pipeline: Pipeline,
    lists: Sequence[Sequence[tuple[Hashable, float]]],
    far: NDArray[np.float64] | None,
    k: int,
    *,
    threshold: float | None = None,
    abstain: float | None = None,
    none_label: Hashable = None,
) -> list[dict[str, Any]]:
    """The answers for texts by their nearest labels, and their novelty (n,) if it was computed.

    Args:
        pipeline: The pipeline that ranked the labels.
        lists: Per text, labels with their probabilities, best first.
        far: The novelty of each text, or None.
        k: How many labels to list.
        threshold: With several labels per text: the probability from which a label applies; None: the classifier's.
        abstain: With one label per text: the probability below which the answer is ``none_label``; None: its own.
        none_label: The answer below that.
    """
    config = pipeline.config
    least = config.abstain if abstain is None else abstain
    answers = []
    for place, pairs in enumerate(lists):
        applying = pipeline.applying(pairs, threshold) if config.multi_label else None
        answer = json_answer(pairs, k, applying, abstain=least, none_label=none_label)
        answers.append(answer if far is None else {**answer, "novelty": round(float(far[place]), DIGITS)})
    return answers
