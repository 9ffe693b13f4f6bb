"""Where label vectors come from, and keeping them so that each is computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from maskmatch.labels import LabelSet, LabelText


@dataclass(frozen=True)
class LabelLayout:
    """How the texts of all labels, laid out flat, belong to labels.

    A label may be read in several phrases, and labels may differ in how many they have: ``table`` says for
    each label which flat texts are its own, padded with 0 where ``present`` is false.
    """

    texts: tuple[str, ...]  # (F,), every text of every label
    table: torch.Tensor  # (K, phrases)
    present: torch.Tensor  # (K, phrases)

    @classmethod
    def of(cls, labels: LabelSet, words: bool = False) -> LabelLayout:
        """Lay out the texts of a label set, or the words that stand for its labels at a mask."""
        return cls.of_texts([label.verbalizer if words else label.texts for label in labels.labels])

    @classmethod
    def of_texts(cls, texts: Sequence[Sequence[str]]) -> LabelLayout:
        """Lay out the texts of each label."""
        counts = torch.tensor([len(phrases) for phrases in texts])
        present = torch.arange(int(counts.max()))[None, :] < counts[:, None]  # (K, phrases)
        table = torch.zeros(present.shape, dtype=torch.long)
        table[present] = torch.arange(int(counts.sum()))
        return cls(tuple(text for phrases in texts for text in phrases), table, present)

    def arrange(self, flat: torch.Tensor) -> torch.Tensor:
        """Flat vectors (F, masks, dim) as (K, phrases, masks, dim)."""
        if self.table.shape[1] == 1:  # one text a label: the order is already right, and nothing is copied
            return flat[:, None]
        return flat[self.table.to(flat.device)]

    def arrange_scores(self, flat: torch.Tensor, labels: torch.Tensor | None = None) -> torch.Tensor:
        """Scores of flat texts (n, F) as (n, K, phrases), or as (n, d, phrases) for some labels (d,)."""
        if labels is not None:
            return flat[:, self.table[labels].to(flat.device)]
        if self.table.shape[1] == 1:
            return flat[:, :, None]
        return flat[:, self.table.to(flat.device)]


class LabelVectorStore:
    """Keeps the vectors of label texts for one state of the weights and one way of reading them.

    Asking again encodes only the texts that are not there yet; asking with other weights or another key
    starts afresh.
    """

    def __init__(self) -> None:
        self._key: tuple[int, str] | None = None
        self._texts: tuple[LabelText, ...] = ()
        self._vectors: torch.Tensor | None = None

    def look_up(
        self,
        texts: Sequence[LabelText],
        *,
        weights: int,
        key: str,
        encode: Callable[[Sequence[LabelText]], torch.Tensor],
    ) -> torch.Tensor:
        """The vectors of label texts, (F, masks, dim).

        Args:
            texts: The label texts.
            weights: Which state of the weights: any number that changes with them.
            key: What else the vectors hang on: the prompts, and where they are read.
            encode: Computes vectors for the texts that are missing.
        """
        texts = tuple(texts)
        if self._key != (weights, key) or self._vectors is None:
            self.keep(texts, encode(texts), weights=weights, key=key)
        elif texts != self._texts:
            known = {text: place for place, text in enumerate(self._texts)}
            missing = [text for text in dict.fromkeys(texts) if text not in known]
            vectors = self._vectors
            if missing:
                known |= {text: len(vectors) + place for place, text in enumerate(missing)}
                vectors = torch.cat([vectors, encode(missing).to(vectors)])
            places = torch.tensor([known[text] for text in texts], device=vectors.device)
            self.keep(texts, vectors[places], weights=weights, key=key)
        assert self._vectors is not None
        return self._vectors

    def keep(self, texts: Sequence[LabelText], vectors: torch.Tensor, *, weights: int, key: str) -> None:
        """Take in vectors that were computed elsewhere, for instance read from a saved model."""
        self._key, self._texts, self._vectors = (weights, key), tuple(texts), vectors


class LabelMatrix(nn.Module):
    """A learned vector per label: a classification head without a bias."""

    def __init__(self, labels: int, dimension: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(labels, dimension))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self) -> torch.Tensor:
        """The vectors, (K, 1, 1, dim)."""
        return self.weight[:, None, None]

    def load(self, vectors: torch.Tensor) -> None:
        """Take in the vectors (K, 1, dim) of a saved model."""
        self.weight = nn.Parameter(vectors.flatten(1).to(self.weight))

    def select(self, rows: Sequence[int]) -> None:
        """Keep only these rows, in this order."""
        self.weight = nn.Parameter(self.weight.detach()[list(rows)])


def verbalizer_vectors(
    token_ids: Sequence[Sequence[int]], words: Callable[[torch.Tensor], torch.Tensor], device: torch.device
) -> torch.Tensor:
    """The vector of each label text as the mean of its words' vectors: (F, 1, dim).

    Args:
        token_ids: The token ids of each label text.
        words: The vectors of words by their token ids: (tokens,) → (tokens, dim).
        device: Where to compute.
    """
    lengths = torch.tensor([len(ids) for ids in token_ids], device=device)
    flat = torch.tensor([id_ for ids in token_ids for id_ in ids], device=device)
    rows = torch.repeat_interleave(torch.arange(len(token_ids), device=device), lengths)
    vectors = words(flat)  # (tokens, dim)
    totals = vectors.new_zeros(len(token_ids), vectors.shape[1]).index_add(0, rows, vectors)
    return (totals / lengths[:, None])[:, None]
