"""Texts that have a label move its vector towards themselves: examples that the user brings, and training texts."""

from __future__ import annotations

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

TEXTS_A_LABEL = 32
"""How many training texts of a label are read to find where they lie."""


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


def moves_to_training_texts(config: MatcherConfig) -> bool:
    """Whether label vectors can move towards those of training texts.

    Both have to be read, and of one shape. Where a text may have several labels, the similarity from which on a label
    applies was learned with names as they are.
    """
    masks = 1 if config.method.reads_pairs else max(1, config.prompt.masks)
    read = config.method.label_source == "prompt" and not config.labels_in_context
    return read and not config.multi_label and masks == max(1, config.label_prompt.masks)


def some_of_each(targets: NDArray[Any]) -> dict[int, NDArray[np.int64]]:
    """Rows of each label that has some, at most 32, from all over the data: (n,) positions of labels → their rows.

    >>> some_of_each(np.array([2, 0, 2]))
    {0: array([1]), 2: array([0, 2])}
    """
    found = {}
    for place in np.unique(targets):
        own = np.flatnonzero(targets == place)
        chosen = np.linspace(0, len(own) - 1, min(len(own), TEXTS_A_LABEL)).round().astype(np.int64)
        found[int(place)] = own[chosen]
    return found


@dataclass(frozen=True)
class Centre:
    """Where the texts of a label lie.

    Attributes:
        vector: Their mean direction, of length 1 over all masks: (masks, dim).
        share: The share that it has in the label's vector.
    """

    vector: torch.Tensor
    share: float

    @classmethod
    def of(cls, vectors: torch.Tensor, share: float) -> Centre:
        """The centre of texts by their vectors, (n, masks, dim)."""
        total = (vectors / _lengths(vectors)).sum(dim=0, keepdim=True)
        return cls((total / _lengths(total))[0], share)


def centres_of_examples(vectors: torch.Tensor, labels: LabelSet) -> tuple[torch.Tensor, dict[Hashable, Centre]]:
    """The vectors of names and phrases alone, and the centres of labels that have examples.

    Args:
        vectors: (F, masks, dim), all that is read for the labels: for each label its texts, then its examples.
        labels: The labels.
    """
    names, centres, start = [], {}, 0
    for label in labels.labels:
        middle = start + len(label.texts)
        end = middle + len(label.examples)
        names.append(vectors[start:middle])
        if label.examples:
            centres[label.id] = Centre.of(vectors[middle:end], share_of_examples(len(label.examples)))
        start = end
    return torch.cat(names), centres


def moved_to_centres(
    names: torch.Tensor, owners: Sequence[Hashable], centres: Mapping[Hashable, Centre]
) -> torch.Tensor:
    """The vectors of names and phrases, each moved towards the centre of its label.

    Names and texts are read with different prompts, so texts lie nearer to one another than to any name. Were a text
    compared by itself, like a further phrase, labels with texts would win over labels without; and the mean of scores
    would let a label lose by having texts that differ from each other. For the same reason labels without a centre go
    along with what the others' moves have in common, the more surely the more labels have moved.

    Args:
        names: (F, masks, dim), the vectors of names and phrases.
        owners: (F,), the ids of their labels.
        centres: The centres of labels by their ids; a label may have none.
    """
    places = [place for place, owner in enumerate(owners) if owner in centres]  # (f,)
    if not places:
        return names
    own, has = [centres[owners[place]] for place in places], torch.tensor(places, device=names.device)
    targets = torch.stack([centre.vector for centre in own]).to(names)  # (f, masks, dim)
    shares = torch.tensor([centre.share for centre in own]).to(names)[:, None, None]
    lengths = _lengths(names)
    directions = names / lengths
    moves = shares * (targets - directions[has])  # (f, masks, dim)
    count = len({owners[place] for place in places})
    common = moves.mean(dim=0, keepdim=True) * count / (count + COMMON_SHRINK)
    moved = directions + common
    moved[has] = directions[has] + moves
    return moved * lengths


def _lengths(vectors: torch.Tensor) -> torch.Tensor:
    """The lengths of vectors (n, masks, dim), over all their masks: (n, 1, 1)."""
    lengths: torch.Tensor = torch.linalg.vector_norm(vectors.flatten(1), dim=1)
    return lengths.clamp(min=1e-12)[:, None, None]
