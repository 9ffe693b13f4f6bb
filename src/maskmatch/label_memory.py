"""Label vectors from the last time each was read, so that a training step need not read all labels.

A step reads afresh the labels that matter to its texts (their own, and those wrong ones that get the most probability)
and some of the others, drawn at random. All that are left keep the vector that they had when they were last read, and
the softmax still runs over all of them.

Kept vectors grow old: training moves all vectors, by as much as the temperature within a few steps, so that old ones
would count for too little. The drawn labels tell by how much. What they score now, against what they would have scored
as they were kept, is what all the others are moved by, for each text by itself. So the drawn ones stand for all that is
not read, in the softmax and in its gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from maskmatch.encoder import length_batches
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from pathlib import Path

    from maskmatch.choices import LabelEncoding
    from maskmatch.encoder import TokenBatch
    from maskmatch.label_vectors import LabelLayout
    from maskmatch.prompts import TokenizedPrompts

MOST_READ_FULLY = 2000
"""Up to how many label texts "auto" reads all of them at every step: as many as memory allows, for it learns better."""

HARDEST = 64
"""How many label texts a step reads as those that matter to it, unless its texts' own labels alone have more."""

DRAWN = 64
"""How many of the others it reads, drawn at random."""

MEMORY_FILE = "label-memory.safetensors"
"""The file of these vectors in a checkpoint."""


def samples_labels(encoding: LabelEncoding, texts: int) -> bool:
    """Whether a training step reads only some of so many label texts."""
    return encoding == "sampled" or (encoding == "auto" and texts > MOST_READ_FULLY)


def moved_along(kept: torch.Tensor, afresh: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
    """The scores of kept label texts, moved as those of the drawn ones have moved since they were kept.

    Args:
        kept: (texts, F), the scores with the kept vectors of all label texts
        afresh: (texts, d), the scores of those label texts that were drawn, as they have now been read
        drawn: (d,), their numbers
    """
    if not len(drawn):
        return kept
    # The drawn ones stand for all that are not read: of the probability of these, and of the gradient that goes with
    # it, each of them takes over its share.
    return kept + (afresh.logsumexp(dim=1) - kept[:, drawn].logsumexp(dim=1))[:, None]


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
        hardest: How many label texts a step reads because they matter to it.
        drawn: How many of the others it reads.
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
        """The numbers of the label texts that matter to a step, and of those of the others that are drawn.

        Args:
            weights: (K,), how much each label matters to the texts of the step.
            own: (K,), which labels are the texts' own: these are read in any case.
        """
        table, present = self._layout.table, self._layout.present  # (K, phrases)
        count = max(int(own.sum()), self._hardest * len(table) // len(self._vectors), 1)
        labels = weights.masked_fill(own, float("inf")).topk(min(count, len(table))).indices.cpu().sort().values
        hardest = table[labels][present[labels]]  # (m,)
        others = torch.ones(len(self._vectors), dtype=torch.bool).index_fill(0, hardest, False).nonzero()[:, 0]
        return hardest, others[torch.randperm(len(others))[: self._drawn]].sort().values

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
