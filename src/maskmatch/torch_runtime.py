"""The torch runtime of prediction: the model itself computes the vectors of prompts."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from maskmatch.encoder import TokenBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from maskmatch.batches import PaddedBatch
    from maskmatch.model import MatchingModel


class TorchRuntime:
    """Computes input vectors with the model itself, or the vectors of label prompts that are read with each text."""

    def __init__(self, model: MatchingModel, of_labels: bool = False) -> None:
        self._model = model
        self._read = model.label_prompt_vectors if of_labels else model.input_vectors
        model.prepare()

    def __call__(self, batch: PaddedBatch) -> NDArray[np.float32]:
        """The vectors of texts or labels, each with all its readings in the batch: (texts, masks, dim)."""
        with evaluating(self._model), torch.inference_mode():
            vectors = self._read(TokenBatch.of(batch).to(self._model.device))
        found: NDArray[np.float32] = vectors.float().cpu().numpy()
        return found


@contextmanager
def evaluating(model: MatchingModel) -> Iterator[None]:
    """Without dropout, also when training looks at dev data."""
    if not model.training:
        yield
        return
    model.eval()
    try:
        yield
    finally:
        model.train()
