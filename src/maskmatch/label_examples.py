"""Examples of labels: texts that have a label move its vector towards themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import torch

if TYPE_CHECKING:
    from maskmatch.labels import LabelSet

Number = TypeVar("Number", float, torch.Tensor)
MOST_SHARE, SHRINK = 0.6, 4


def share_of_examples(count: Number) -> Number:
    """The share that so many examples have in a label's vector.

    A few of them, which may be wrong, move it little, and however many there are, the name keeps a good part.

    >>> share_of_examples(4)
    0.3
    """
    return MOST_SHARE * count / (count + SHRINK)


def moved_by_examples(vectors: torch.Tensor, labels: LabelSet) -> torch.Tensor:
    """The vectors of names and phrases, each moved towards the mean of its label's examples.

    Names and texts are read with different prompts, so texts lie nearer to one another than to any name. Were an
    example compared by itself, like a further phrase, labels with examples would win over labels without; and the mean
    of scores would let a label lose by having examples that differ from each other.

    Args:
        vectors: (F, masks, dim), all that is read for the labels: for each label its texts, then its examples.
        labels: The labels.

    Returns:
        The vectors of the texts alone.
    """
    owners = torch.tensor([place for place, label in enumerate(labels.labels) for _ in label.parts])  # (F,)
    is_example = torch.tensor([not isinstance(part, str) for label in labels.labels for part in label.parts])
    owners, is_example = owners.to(vectors.device), is_example.to(vectors.device)
    names, examples = vectors[~is_example], vectors[is_example]
    counts = torch.bincount(owners[is_example], minlength=len(labels))  # (K,)
    sums = vectors.new_zeros(len(labels), *vectors.shape[1:])
    sums = sums.index_add(0, owners[is_example], examples / _lengths(examples))
    means = sums / _lengths(sums)  # (K, masks, dim), of length 1
    own = owners[~is_example]
    share = share_of_examples(counts.to(vectors))[own][:, None, None]
    return (1 - share) * names + share * _lengths(names) * means[own]


def _lengths(vectors: torch.Tensor) -> torch.Tensor:
    """The lengths of vectors (n, masks, dim), over all their masks: (n, 1, 1)."""
    lengths: torch.Tensor = torch.linalg.vector_norm(vectors.flatten(1), dim=1)
    return lengths.clamp(min=1e-12)[:, None, None]
