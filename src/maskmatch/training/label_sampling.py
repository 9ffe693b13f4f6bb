"""Sampled labels: a training step encodes some labels and takes cached vectors for the rest.

A step encodes the labels that matter to its texts (their own, and the hardest wrong ones, which get the most
probability) and a random sample of the others. All others keep the vectors of the last step that encoded them, and the
softmax still runs over all labels.

Cached vectors become stale: training moves all vectors, within a few steps by as much as the temperature, so stale ones
would count too much or too little. The sampled labels show by how much. The difference between their logits with fresh
and with stale vectors is added to the logits of all labels that are not encoded, for each text by itself. So the sample
stands for all labels that are not encoded, in the softmax and in its gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from maskmatch.errors import MaskMatchError
from maskmatch.files import write_file
from maskmatch.model.encoder import length_batches

if TYPE_CHECKING:
    from pathlib import Path

    from maskmatch.config.training import LabelEncoding
    from maskmatch.labels.layout import LabelLayout
    from maskmatch.model.encoder import TokenBatch
    from maskmatch.prompts import TokenizedPrompts

MAX_FULL = 500
"""Up to how many label texts "auto" encodes all of them at every step. From about 150 a step that samples is faster; at
500 it takes less than half of the time. With 150, 300 and 1,063 labels it learned as much."""

HARDEST = 32
"""How many label texts of the hardest wrong labels a step encodes, besides the texts' own labels."""

DRAWN = 64
"""How many label texts of the other labels it encodes, drawn at random."""

MEMORY_FILE = "label-memory.safetensors"
"""The file of cached vectors in a checkpoint."""


def samples_labels(encoding: LabelEncoding, texts: int) -> bool:
    """Whether a training step encodes only some of so many label texts."""
    return encoding == "sampled" or (encoding == "auto" and texts > MAX_FULL)


class LabelMemory:
    """The last known vectors of all label texts, and the choice of those that a step encodes.

    It holds ``4 * dim`` bytes per label text; a step adds its scores, a few times ``4 * texts`` bytes per label text.

    Args:
        prompts: The label texts in their prompt.
        layout: Which label texts belong to which label.
        vectors: (F, dim), the vectors of label texts before training, prepared for the similarity; for late
            interaction (F, masks, dim).
        pad_id: The token id to pad with.
        held: (F, dim), the vectors that those of label texts are kept near, if they are.
        hardest: How many label texts of the hardest wrong labels a step encodes.
        drawn: How many label texts of the other labels it encodes.
    """

    def __init__(
        self,
        prompts: TokenizedPrompts,
        layout: LabelLayout,
        vectors: torch.Tensor,
        pad_id: int,
        *,
        held: torch.Tensor | None = None,
        hardest: int | None = None,
        drawn: int | None = None,
    ) -> None:
        self.held = held
        self._prompts, self._pad_id = prompts, pad_id
        self._hardest = HARDEST if hardest is None else hardest
        self._drawn = DRAWN if drawn is None else drawn
        self._vectors = vectors.detach().clone()  # (F, dim)
        self._table, self._present = torch.from_numpy(layout.table), torch.from_numpy(layout.present)
        self._read: list[tuple[torch.Tensor, torch.Tensor]] = []

    @property
    def vectors(self) -> torch.Tensor:
        """The last known vectors, (F, dim). They do not change until this is called again.

        Fresh vectors replace stale ones here, not at once: the backward pass still needs the stale ones.
        """
        for rows, vectors in self._read:
            self._vectors[rows.to(self._vectors.device)] = vectors.to(self._vectors)
        self._read.clear()
        return self._vectors

    def choose(self, weights: torch.Tensor, own: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The positions of the labels that matter to a step, and of a random sample of the others.

        Args:
            weights: (K,), how much each label matters to the texts of the step.
            own: (K,), which labels are the texts' own: these are always encoded.
        """
        count = int(own.sum()) + self._labels(self._hardest)
        hardest = weights.masked_fill(own, float("inf")).topk(min(count, len(weights))).indices.cpu().sort().values
        others = torch.ones(len(weights), dtype=torch.bool).index_fill(0, hardest, False).nonzero()[:, 0]
        return hardest, others[torch.randperm(len(others))[: self._labels(self._drawn)]].sort().values

    def _labels(self, texts: int) -> int:
        """How many labels have so many label texts, on average; at least one, if any are wanted."""
        return min(texts, max(1, texts * len(self._table) // len(self._vectors)))

    def texts_of(self, labels: torch.Tensor) -> torch.Tensor:
        """The numbers of all label texts of some labels."""
        return self._table[labels][self._present[labels]]

    def batches(self, rows: torch.Tensor) -> list[TokenBatch]:
        """Some label texts as token batches of similar length."""
        batches = length_batches(self._prompts.select(rows.numpy()), self._pad_id)
        return [batch.to(self._vectors.device) for batch in batches]

    def keep(self, rows: torch.Tensor, vectors: torch.Tensor) -> None:
        """Cache the vectors (m, dim) of label texts that this step encoded."""
        self._read.append((rows, vectors.detach()))

    def save(self, folder: Path) -> None:
        """Write the vectors into the folder of a checkpoint, whole or not at all."""
        with write_file(folder / MEMORY_FILE) as scratch:
            save_file({"vectors": self.vectors.cpu().contiguous()}, scratch)

    def load(self, folder: Path) -> None:
        """Load the vectors from the folder of a checkpoint."""
        try:
            found = load_file(folder / MEMORY_FILE)
        except (OSError, SafetensorError) as error:
            raise MaskMatchError(f"{folder / MEMORY_FILE} is damaged and cannot be read: {error}") from error
        if found.keys() != {"vectors"} or found["vectors"].shape != self._vectors.shape:
            raise MaskMatchError(f"{folder / MEMORY_FILE} belongs to another classifier: encoder or labels differ.")
        self._read.clear()
        self._vectors = found["vectors"].to(self._vectors)
