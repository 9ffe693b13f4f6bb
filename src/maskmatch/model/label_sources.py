"""Where label vectors come from: one class per source, entered in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from maskmatch.config.methods import LabelSource as SourceName
    from maskmatch.labels import LabelText
    from maskmatch.model.label_reader import LabelReader
    from maskmatch.prompts import TokenizedPrompts


class LabelSource(nn.Module):
    """A source of label vectors.

    A new source is a subclass, a row in LABEL_SOURCES, what it reads of a label (``labels/reading.py``), and a name in
    ``config/methods.py``.

    Args:
        dimension: The size of a hidden state.
        words: Computes the vectors of words: (tokens,) token ids → (tokens, dim).
    """

    learned: ClassVar[bool] = False
    """Whether training learns a vector per label, so that a label cannot be added without training."""

    def __init__(self, dimension: int, words: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()

    def read(self, texts: Sequence[LabelText], reader: LabelReader) -> torch.Tensor:
        """The vectors of label texts without a gradient: (F, masks, dim)."""
        raise NotImplementedError

    def prompts(self, texts: Sequence[LabelText], reader: LabelReader) -> TokenizedPrompts | None:
        """The prompts that a training step encodes for label texts; None if it encodes none."""
        return None

    def words(self, texts: Sequence[LabelText], reader: LabelReader) -> Sequence[Sequence[int]]:
        """The token ids of each label text, where a training step needs them."""
        return ()

    def forward(self, encoded: torch.Tensor | None, words: Sequence[Sequence[int]]) -> torch.Tensor:
        """The vectors of label texts in a training step: (F, masks, dim).

        Args:
            encoded: (F, masks, dim), the vectors of the prompts that the step encoded, if any.
            words: The token ids of each label text, if the source needs them.
        """
        raise NotImplementedError

    def set_count(self, labels: int) -> None:
        """Prepare for this many labels."""

    def select(self, rows: Sequence[int]) -> None:
        """Keep only the labels at these positions, in this order."""

    def load(self, vectors: torch.Tensor) -> None:
        """Load the learned vectors (K, 1, dim) of a saved classifier."""

    @property
    def count(self) -> int:
        """The number of labels with a learned vector."""
        return 0


class PromptLabels(LabelSource):
    """The encoder reads each label text in the label prompt."""

    def read(self, texts: Sequence[LabelText], reader: LabelReader) -> torch.Tensor:
        """The vectors of label texts without a gradient: (F, masks, dim)."""
        return reader.encode(reader.label_prompts(texts))

    def prompts(self, texts: Sequence[LabelText], reader: LabelReader) -> TokenizedPrompts | None:
        """The label texts in the label prompt."""
        return reader.label_prompts(texts)

    def forward(self, encoded: torch.Tensor | None, words: Sequence[Sequence[int]]) -> torch.Tensor:
        """What the step encoded."""
        assert encoded is not None
        return encoded


class WordLabels(LabelSource):
    """A verbalizer: the mean of the word embeddings of each label text's words."""

    def __init__(self, dimension: int, words: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__(dimension, words)
        self._word_vectors = words

    def read(self, texts: Sequence[LabelText], reader: LabelReader) -> torch.Tensor:
        """The vectors of label texts without a gradient: (F, 1, dim)."""
        with torch.no_grad():
            return self.forward(None, self.words(texts, reader))

    def words(self, texts: Sequence[LabelText], reader: LabelReader) -> Sequence[Sequence[int]]:
        """The token ids of each label text."""
        return reader.tokenizer.words([str(text) for text in texts])

    def forward(self, encoded: torch.Tensor | None, words: Sequence[Sequence[int]]) -> torch.Tensor:
        """The mean of the vectors of each label text's words: (F, 1, dim)."""
        lengths = torch.tensor([len(ids) for ids in words])
        vectors = self._word_vectors(torch.tensor([id_ for ids in words for id_ in ids]))  # (tokens, dim)
        lengths = lengths.to(vectors.device)
        rows = torch.repeat_interleave(torch.arange(len(words), device=vectors.device), lengths)
        totals = vectors.new_zeros(len(words), vectors.shape[1]).index_add(0, rows, vectors)
        return (totals / lengths[:, None])[:, None]


class MatrixLabels(LabelSource):
    """A learned vector per label: a classification head without a bias."""

    learned: ClassVar[bool] = True

    def __init__(self, dimension: int, words: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__(dimension, words)
        self._dimension = dimension
        self.weight = nn.Parameter(torch.empty(0, dimension))

    def read(self, texts: Sequence[LabelText], reader: LabelReader) -> torch.Tensor:
        """The learned vectors of all labels: (K, 1, dim)."""
        return self.weight.detach()[:, None]

    def forward(self, encoded: torch.Tensor | None, words: Sequence[Sequence[int]]) -> torch.Tensor:
        """The learned vectors of all labels: (K, 1, dim)."""
        return self.weight[:, None]

    def set_count(self, labels: int) -> None:
        """Draw a vector per label, unless there are as many already."""
        if self.count != labels:
            weight = torch.empty(labels, self._dimension)
            nn.init.normal_(weight, std=0.02)
            self.weight = nn.Parameter(weight.to(self.weight))

    @property
    def count(self) -> int:
        """The number of labels with a learned vector."""
        return len(self.weight)

    def load(self, vectors: torch.Tensor) -> None:
        """Load the learned vectors (K, 1, dim) of a saved classifier."""
        self.weight = nn.Parameter(vectors.flatten(1).to(self.weight))

    def select(self, rows: Sequence[int]) -> None:
        """Keep only the labels at these positions, in this order."""
        self.weight = nn.Parameter(self.weight.detach()[list(rows)])


LABEL_SOURCES: dict[SourceName, type[LabelSource]] = {
    "prompt": PromptLabels,
    "verbalizer": WordLabels,
    "matrix": MatrixLabels,
}
