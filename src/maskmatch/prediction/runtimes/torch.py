"""The torch runtime: the model itself computes input vectors; and the pipeline of a label bank."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from maskmatch.labels.background import background_names
from maskmatch.model.encoder import TokenBatch
from maskmatch.prediction.label_scorer import LabelScorer
from maskmatch.prediction.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from maskmatch.labels.scope import Scope
    from maskmatch.model.label_bank import LabelBank
    from maskmatch.model.matching import MatchingModel
    from maskmatch.prompts.batches import PaddedBatch


def _use_one_thread() -> None:
    """A forked process has none of the threads that its parent's torch would wait for."""
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_use_one_thread)


class TorchRuntime:
    """Computes input vectors with the model, or the vectors of label prompts that are read with each text."""

    def __init__(self, model: MatchingModel, of_labels: bool = False) -> None:
        self._model = model
        self._vectors = model.label_vectors if of_labels else model.input_vectors
        model.prepare()

    def __call__(self, batch: PaddedBatch) -> NDArray[np.float32]:
        """The vectors of texts, all of whose prompts are in the batch: (texts, masks, dim)."""
        with self._model.evaluating(), torch.inference_mode():
            vectors = self._vectors(TokenBatch.of(batch).to(self._model.device))
        array: NDArray[np.float32] = vectors.float().cpu().numpy()
        return array

    def map(self, batches: Iterable[PaddedBatch]) -> Iterator[NDArray[np.float32]]:
        """The vectors of each batch, one after the other: torch uses all threads for one batch."""
        return map(self, batches)


def torch_pipeline(bank: LabelBank) -> Pipeline:
    """The prediction pipeline of a bank as it is now; made again only if labels, weights or config have changed."""
    return bank.derive(_make_pipeline)


def _make_pipeline(bank: LabelBank) -> Pipeline:
    model, config, layout = bank.model, bank.config, bank.layout
    similarity = model.similarity
    how = {
        "scale": 1 / similarity.temperature,
        "offset": None if similarity.offset is None else similarity.offset.item(),
        "untrained": similarity.untrained,
    }
    learned = bank.learned
    parts = config, bank.tokenizer, bank.known_labels
    if config.labels_in_context:
        scorer = LabelScorer.in_context_of(layout, similarity.config, **how).calibrated(learned.calibration)
        return Pipeline(
            *parts, scorer, TorchRuntime(model), TorchRuntime(model, of_labels=True), calibration=learned.calibration
        )
    scorer = LabelScorer.of(bank.vectors().cpu().numpy(), layout, similarity.config, **how)
    scorer = scorer.adapted(learned.adaptation).calibrated(learned.calibration, bank.added)
    return Pipeline(
        *parts,
        scorer,
        TorchRuntime(model),
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
        means[places] = bank.model.similarity.prepare(learned.centroids.vectors).float().cpu().numpy()
    return replace(learned.scope, means=means)


def _background(bank: LabelBank) -> Callable[[], NDArray[np.float32]]:
    """Gives the vectors of names from many domains, prepared: (B, dim). They are encoded once, when they are needed.

    It does not refer to the bank, which holds the pipeline: a cycle would keep both in memory.
    """
    names = list(background_names())
    model, reader, cache, key = bank.model, bank.reader, bank.background_cache, bank.cache_key(names)

    def vectors() -> NDArray[np.float32]:
        with model.evaluating(), torch.inference_mode():
            states = cache.look_up(names, (model.weights_version, key), lambda new: model.labels.read(new, reader))
            array: NDArray[np.float32] = model.similarity.prepare(states).float().cpu().numpy()
        return array

    return vectors
