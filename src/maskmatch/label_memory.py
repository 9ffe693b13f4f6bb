"""Label vectors from the last time each was read, so that a training step need not read all labels.

A step reads afresh the labels that matter to its texts (their own, and those wrong ones that get the most probability)
and some of the others, drawn at random. All that are left keep the vectors that they had when they were last read, and
the softmax still runs over all of them.

Kept vectors grow old: training moves all vectors, by as much as the temperature within a few steps, so that old ones
would count for too little or too much. The drawn labels tell by how much. What they score now, against what they would
have scored as they were kept, is what all that are not read are moved by, for each text by itself. So the drawn ones
stand for all that is not read, in the softmax and in its gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch.nn.functional import logsigmoid

from maskmatch.encoder import length_batches
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from pathlib import Path

    from maskmatch.choices import LabelEncoding
    from maskmatch.encoder import TokenBatch
    from maskmatch.label_vectors import LabelLayout
    from maskmatch.prompts import TokenizedPrompts

MOST_READ_FULLY = 500
"""Up to how many label texts "auto" reads all of them at every step. From some 150 on a step that samples is quicker,
and here it takes less than half of the time; with 150, 300 and 1,063 labels it learned as much."""

HARDEST = 32
"""How many label texts of wrong labels a step reads as those that matter to it, besides its texts' own labels."""

DRAWN = 64
"""How many label texts of the other labels it reads, drawn at random."""

MEMORY_FILE = "label-memory.safetensors"
"""The file of these vectors in a checkpoint."""


def samples_labels(encoding: LabelEncoding, texts: int) -> bool:
    """Whether a training step reads only some of so many label texts."""
    return encoding == "sampled" or (encoding == "auto" and texts > MOST_READ_FULLY)


def lag(now: torch.Tensor, kept: torch.Tensor, multi_label: bool = False) -> torch.Tensor:
    """By how much the scores of labels have moved since these were kept, told from some labels: (texts, 1).

    Its gradient goes to each of them by its share of their probability, as they stand for others.

    Args:
        now: (texts, d), the scores of labels as they have just been read
        kept: (texts, d), their scores as they were kept
        multi_label: Whether each label has a probability of its own, instead of one among all.
    """
    if not multi_label:
        return now.logsumexp(dim=1, keepdim=True) - kept.logsumexp(dim=1, keepdim=True)
    shares = logsigmoid(now.detach()).softmax(dim=1)  # their probabilities, made to add up to 1
    return (shares * (now - kept)).sum(dim=1, keepdim=True)


class LabelMemory:
    """The last known vectors of all label texts, and which of them a step reads afresh.

    It holds ``4 * dim`` bytes a label text; a step adds its scores, a few times ``4 * texts`` bytes a label text.

    Args:
        prompts: The label texts in their prompt.
        layout: Which label texts belong to which label.
        vectors: (F, dim), the label texts' vectors before training, as the similarity compares them; for late
            interaction (F, masks, dim).
        pad_id: The token id to pad with.
        held: (F, dim), where the label texts' vectors are held, if they are.
        hardest: How many label texts of wrong labels a step reads because they matter to it.
        drawn: How many label texts of the others it reads.
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
        self._prompts, self._layout, self._pad_id = prompts, layout, pad_id
        self._hardest = HARDEST if hardest is None else hardest
        self._drawn = DRAWN if drawn is None else drawn
        self._vectors = vectors.detach().clone()  # (F, dim)
        self._read: list[tuple[torch.Tensor, torch.Tensor]] = []

    @property
    def vectors(self) -> torch.Tensor:
        """The last known vectors, (F, dim). They stay as they are until this is asked again.

        What was read since then is taken in now, not at once: the backward pass still needs the old ones.
        """
        for rows, vectors in self._read:
            self._vectors[rows.to(self._vectors.device)] = vectors.to(self._vectors)
        self._read.clear()
        return self._vectors

    def choose(self, weights: torch.Tensor, own: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The numbers of the labels that matter to a step, and of those of the others that are drawn.

        Args:
            weights: (K,), how much each label matters to the texts of the step.
            own: (K,), which labels are the texts' own: these are read in any case.
        """
        count = int(own.sum()) + self._labels(self._hardest)
        hardest = weights.masked_fill(own, float("inf")).topk(min(count, len(weights))).indices.cpu().sort().values
        others = torch.ones(len(weights), dtype=torch.bool).index_fill(0, hardest, False).nonzero()[:, 0]
        return hardest, others[torch.randperm(len(others))[: self._labels(self._drawn)]].sort().values

    def _labels(self, texts: int) -> int:
        """How many labels have so many label texts, on average; at least one, if any are wanted."""
        return min(texts, max(1, texts * len(self._layout.table) // len(self._vectors)))

    def texts_of(self, labels: torch.Tensor) -> torch.Tensor:
        """The numbers of all label texts of some labels."""
        return self._layout.table[labels][self._layout.present[labels]]

    def batches(self, rows: torch.Tensor) -> list[TokenBatch]:
        """Some label texts as token batches of like length."""
        batches = length_batches(self._prompts.select(rows.numpy()), self._pad_id)
        return [batch.to(self._vectors.device) for batch in batches]

    def keep(self, rows: torch.Tensor, vectors: torch.Tensor) -> None:
        """Take in the vectors (m, dim) of label texts that were read in this step."""
        self._read.append((rows, vectors.detach()))

    def save(self, folder: Path) -> None:
        """Write the vectors into the folder of a checkpoint, whole or not at all."""
        scratch = folder / f"{MEMORY_FILE}.writing"
        save_file({"vectors": self.vectors.cpu().contiguous()}, scratch)
        scratch.replace(folder / MEMORY_FILE)

    def load(self, folder: Path) -> None:
        """Go on from the vectors in the folder of a checkpoint."""
        try:
            found = load_file(folder / MEMORY_FILE)
        except (OSError, SafetensorError) as error:
            raise MaskMatchError(f"{folder / MEMORY_FILE} is damaged and cannot be read: {error}") from error
        if found.keys() != {"vectors"} or found["vectors"].shape != self._vectors.shape:
            raise MaskMatchError(f"{folder / MEMORY_FILE} is of another classifier: encoder or labels differ.")
        self._read.clear()
        self._vectors = found["vectors"].to(self._vectors)
