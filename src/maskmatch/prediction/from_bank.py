"""The prediction pipeline of a label bank as it is now, whatever encodes its texts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from maskmatch.labels.background import background_names
from maskmatch.prediction.label_scorer import LabelScorer, prepared
from maskmatch.prediction.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from maskmatch.labels.bank import LabelBank
    from maskmatch.labels.scope import Scope
    from maskmatch.prediction.pipeline import Runtime
    from maskmatch.prediction.search import MeasuredIndex
    from maskmatch.prompts import PromptTokenizer


@dataclass(frozen=True)
class LogitScale:
    """How similarities become logits.

    Attributes:
        scale: One over the temperature.
        offset: The offset (bias) of the logits, where a text may have several labels; else None.
        untrained: Whether the offset has not been trained and so says nothing.
    """

    scale: float
    offset: float | None = None
    untrained: bool = False


def pipeline_of(
    bank: LabelBank,
    tokenizer: PromptTokenizer,
    logits: LogitScale,
    runtime: Runtime,
    *,
    label_runtime: Runtime | None = None,
    index: MeasuredIndex | None = None,
) -> Pipeline:
    """The prediction pipeline of a bank as it is now.

    Args:
        bank: The labels, their vectors, and what texts have taught about them.
        tokenizer: Turns prompts into tokens.
        logits: How similarities become logits.
        runtime: Computes the vectors of texts.
        label_runtime: Computes the vectors of label prompts, if labels are read with each text.
        index: An index over these label vectors that was built before.
    """
    config, layout, learned = bank.config, bank.layout, bank.learned
    parts = config, tokenizer, bank.known_labels
    if config.labels_in_context:
        scorer = LabelScorer.in_context_of(layout, config.similarity, **vars(logits)).calibrated(learned.calibration)
        return Pipeline(*parts, scorer, runtime, label_runtime, calibration=learned.calibration)
    scorer = LabelScorer.of(bank.vectors(), layout, config.similarity, **vars(logits))
    scorer = scorer.adapted(learned.adaptation).calibrated(learned.calibration, bank.added)
    return Pipeline(
        *parts,
        scorer,
        runtime,
        index=index,
        calibration=learned.calibration,
        kept=learned.texts,
        scope=_scope(bank, scorer),
        background=_background(bank) if config.method.label_source == "prompt" else None,
    )


def _scope(bank: LabelBank, scorer: LabelScorer) -> Scope | None:
    """What texts of the labels look like, with the labels of now; None if texts are compared otherwise by now."""
    learned = bank.learned
    if learned.scope is None or learned.adaptation is not None:
        return None
    means = scorer.vectors[scorer.layout.table[:, 0]].copy()  # (K, dim)
    if len(learned.centroids):
        places = [bank.known_labels.position(id_) for id_ in learned.centroids.ids]
        means[places] = prepared(learned.centroids.vectors, bank.config.similarity)
    return replace(learned.scope, means=means)


def background_key(bank: LabelBank) -> tuple[object, str]:
    """What the vectors of names from many domains depend on."""
    return bank.weights_version, bank.cache_key(list(background_names()))


def background_vectors(bank: LabelBank) -> NDArray[np.float32]:
    """The vectors of names from many domains, as they are read: (B, masks, dim)."""
    return bank.background_cache.look_up(list(background_names()), background_key(bank), bank.reading())


def _background(bank: LabelBank) -> Callable[[], NDArray[np.float32]]:
    """Gives the vectors of names from many domains, prepared: (B, dim). They are encoded once, when they are needed.

    It does not refer to the bank, which holds the pipeline: a cycle would keep both in memory.
    """
    names, cache, key = list(background_names()), bank.background_cache, background_key(bank)
    read, similarity = bank.reading(), bank.config.similarity
    return lambda: prepared(cache.look_up(names, key, read), similarity)
