"""The torch runtime: the model itself computes input vectors; and the pipeline of a label bank."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch

from maskmatch.model.encoder import TokenBatch
from maskmatch.prediction.from_bank import LogitScale, pipeline_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from maskmatch.model.matching import MatchingModel
    from maskmatch.model.model_bank import ModelBank
    from maskmatch.prediction.pipeline import Pipeline
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

    at_once = 1
    """torch uses all threads for one batch."""

    def __call__(self, batch: PaddedBatch, *, alone: bool = True) -> NDArray[np.float32]:
        """The vectors of texts, all of whose prompts are in the batch: (texts, masks, dim)."""
        with self._model.evaluating(), torch.inference_mode():
            vectors = self._vectors(TokenBatch.of(batch).to(self._model.device))
        array: NDArray[np.float32] = vectors.float().cpu().numpy()
        return array

    def map(self, batches: Iterable[PaddedBatch]) -> Iterator[NDArray[np.float32]]:
        """The vectors of each batch, one after the other."""
        return map(self, batches)


def torch_pipeline(bank: ModelBank) -> Pipeline:
    """The prediction pipeline of a bank as it is now; made again only if labels, weights or config have changed."""
    return bank.derive(_make_pipeline)


def logit_scale(bank: ModelBank) -> LogitScale:
    """How a model turns similarities into logits."""
    similarity = bank.model.similarity
    offset = None if similarity.offset is None else similarity.offset.item()
    return LogitScale(1 / similarity.temperature, offset, similarity.untrained)


def _make_pipeline(bank: ModelBank) -> Pipeline:
    of_labels = TorchRuntime(bank.model, of_labels=True) if bank.config.labels_in_context else None
    return pipeline_of(bank, bank.tokenizer, logit_scale(bank), TorchRuntime(bank.model), label_runtime=of_labels)
