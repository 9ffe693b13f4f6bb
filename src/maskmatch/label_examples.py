"""Texts that have a label move its vector towards themselves: examples that the user brings, and training texts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from maskmatch.config import MatcherConfig
    from maskmatch.labels import LabelSet

MOST_SHARE = 0.6
"""The share of very many examples in a label's vector: the name keeps the rest."""

SHRINK, TRAINING_SHRINK = 4, 1
"""With so many texts they have half of their share: examples may have been found by a machine, training texts not."""

COMMON_SHRINK = 8
"""With so many labels that have texts, the other labels are moved half as far as these are moved in common."""

TEXTS_A_LABEL, TEXTS_IN_ALL = 32, 50_000
"""How many training texts are read to find where those of a label lie: with very many labels fewer of each."""


def share_of_examples(count: float) -> float:
    """The share that so many examples have in a label's vector.

    A few of them, which may be wrong, move it little, and however many there are, the name keeps a good part.

    >>> share_of_examples(4)
    0.3
    """
    return MOST_SHARE * count / (count + SHRINK)


def share_of_training_texts(count: float, most: float) -> float:
    """The share of so many training texts, whose labels are known, if that of very many were ``most``.

    >>> share_of_training_texts(5, most=0.6)
    0.5
    """
    return most * count / (count + TRAINING_SHRINK)


def check_examples(config: MatcherConfig) -> None:
    """Refuse examples of labels where they would be read in another way than texts are."""
    if config.method.input_readout != config.method.label_readout:
        raise MaskMatchError(
            f"The method {config.method.name} reads texts and labels in different places, so examples cannot stand "
            "for labels; leave them out, or take mask-matching."
        )
    if config.pool or config.label_pool or config.debias in ("labels", "both"):
        raise MaskMatchError(
            "Examples are read in the input prompt and names in the label prompt, so that neither a pool of "
            "prompts nor debiased labels go with them; leave one of the two out."
        )
    if config.prompt.masks != config.label_prompt.masks:
        raise MaskMatchError(
            "Examples can stand for labels only where the input prompt and the label prompt have as many masks; "
            f"here they have {config.prompt.masks} and {config.label_prompt.masks}."
        )


def some_of_each(targets: NDArray[Any]) -> dict[int, NDArray[np.int64]]:
    """Rows of each label that has some, from all over the data: (n,) positions of labels → their rows.

    >>> some_of_each(np.array([2, 0, 2]))
    {0: array([1]), 2: array([0, 2])}
    """
    order = np.argsort(targets, kind="stable")
    labels, starts = np.unique(targets[order], return_index=True)
    most = max(1, min(TEXTS_A_LABEL, TEXTS_IN_ALL // max(1, len(labels))))
    found = {}
    for label, own in zip(labels, np.split(order, starts[1:]), strict=True):
        found[int(label)] = own[np.linspace(0, len(own) - 1, min(len(own), most)).round().astype(np.int64)]
    return found


@dataclass(frozen=True)
class Centres:
    """Where the texts of labels lie.

    Attributes:
        ids: The ids of the labels that have texts.
        vectors: The mean direction of each label's texts, of length 1 over all masks: (k, masks, dim).
        shares: The share that it has in the label's vector: (k,).
    """

    ids: tuple[Hashable, ...]
    vectors: torch.Tensor
    shares: torch.Tensor

    def __post_init__(self) -> None:
        if self.vectors.dim() != 3 or not len(self.ids) == len(self.vectors) == len(self.shares):
            raise ValueError(f"{len(self.ids)} labels do not go with vectors {tuple(self.vectors.shape)}.")

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(
        cls, ids: Sequence[Hashable], vectors: torch.Tensor, owners: torch.Tensor, shares: Sequence[float]
    ) -> Centres:
        """The centres of labels by the vectors of their texts, (n, masks, dim), and the places of their ids, (n,)."""
        sums = vectors.new_zeros(len(ids), *vectors.shape[1:])
        sums = sums.index_add(0, owners.to(vectors.device), vectors / _lengths(vectors))
        return cls(tuple(ids), sums / _lengths(sums), torch.tensor(shares, dtype=torch.float64))

    def renamed(self, ids: Mapping[Hashable, Hashable]) -> Centres:
        """The centres of labels that are still there, under the ids that they have now."""
        places = [place for place, id_ in enumerate(self.ids) if id_ in ids]
        kept = tuple(ids[self.ids[place]] for place in places)
        return Centres(kept, self.vectors[places], self.shares[places])

    def joined(self, other: Centres) -> Centres:
        """Those of both; where both know a label, its texts are taken together, with the larger share."""
        if not len(other) or not len(self):
            return other if not len(self) else self
        ids = tuple(dict.fromkeys((*self.ids, *other.ids)))
        place = {id_: number for number, id_ in enumerate(ids)}
        owners = torch.tensor([place[id_] for id_ in (*self.ids, *other.ids)], device=self.vectors.device)
        vectors = torch.cat([self.vectors, other.vectors.to(self.vectors)])
        shares = torch.cat([self.shares.to(owners.device), other.shares.to(owners.device)])
        sums = vectors.new_zeros(len(ids), *vectors.shape[1:])
        sums = sums.index_add(0, owners, vectors * shares.to(vectors)[:, None, None])
        largest = shares.new_zeros(len(ids)).index_reduce(0, owners, shares, "amax")
        return Centres(ids, sums / _lengths(sums), largest)

    def move(self, names: torch.Tensor, owners: Sequence[Hashable]) -> torch.Tensor:
        """The vectors of names and phrases, each moved towards the centre of its label.

        Names and texts are read with different prompts, so texts lie nearer to one another than to any name. Were a
        text compared by itself, like a further phrase, labels with texts would win over labels without; and the mean of
        scores would let a label lose by having texts that differ from each other. For the same reason labels without
        texts go along with what the moves of the others have in common, the more surely the more labels have moved.

        Args:
            names: (F, masks, dim), the vectors of names and phrases.
            owners: (F,), the ids of their labels.
        """
        place = {id_: number for number, id_ in enumerate(self.ids)}
        own = [place.get(owner, -1) for owner in owners]
        moving = [row for row, number in enumerate(own) if number >= 0]
        if not moving:
            return names
        has = torch.tensor(moving, device=names.device)
        known = torch.tensor([own[row] for row in moving], device=self.vectors.device)  # (f,)
        targets, shares = self.vectors[known].to(names), self.shares.to(known.device)[known].to(names)
        lengths = _lengths(names)
        moved = names / lengths
        moves = shares[:, None, None] * (targets - moved[has])  # (f, masks, dim)
        phrases = Counter(own[row] for row in moving)
        weights = torch.tensor([1 / phrases[own[row]] for row in moving]).to(names)[:, None, None]
        common = (weights * moves).sum(dim=0) / (len(phrases) + COMMON_SHRINK)
        fixed = moved[has] + moves
        moved = moved.add_(common).index_copy_(0, has, fixed)
        return moved.mul_(lengths / _lengths(moved))  # as long as before: a dot product should not favour the unmoved


NO_CENTRES = Centres((), torch.empty(0, 1, 0), torch.empty(0))


def split_examples(vectors: torch.Tensor, labels: LabelSet) -> tuple[torch.Tensor, Centres]:
    """The vectors of names and phrases alone, and the centres of labels that have examples.

    Args:
        vectors: (F, masks, dim), all that is read for the labels: for each label its texts, then its examples.
        labels: The labels.
    """
    with_examples = [label for label in labels.labels if label.examples]
    number = {label.id: place for place, label in enumerate(with_examples)}
    parts = [(label.id, isinstance(part, str)) for label in labels.labels for part in label.parts]
    names = [row for row, (_, is_name) in enumerate(parts) if is_name]
    examples = [row for row, (_, is_name) in enumerate(parts) if not is_name]
    owners = torch.tensor([number[parts[row][0]] for row in examples])
    shares = [share_of_examples(len(label.examples)) for label in with_examples]
    return vectors[names], Centres.of(list(number), vectors[examples], owners, shares)


def _lengths(vectors: torch.Tensor) -> torch.Tensor:
    """The lengths of vectors (n, masks, dim), over all their masks: (n, 1, 1)."""
    lengths: torch.Tensor = torch.linalg.vector_norm(vectors.flatten(1), dim=1)
    return lengths.clamp(min=1e-12)[:, None, None]
