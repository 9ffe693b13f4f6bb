"""Candidate examples from unlabelled texts: the texts nearest to each label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.label_tools.expansion.encoded_labels import leads, mean_centred
from maskmatch.label_tools.expansion.result import Candidate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.label_tools.expansion.encoded_labels import EncodedLabels


def nearest_texts(labels: EncodedLabels, texts: Sequence[Any], limit: int) -> list[list[Candidate]]:
    """Assign each text to its nearest label; return the texts per label, largest lead first.

    Texts and labels are mean-centred before they are compared. The mean says nothing about the label of a text, but it
    makes some labels more similar to all texts than others.
    """
    if any(not isinstance(text, str) for text in texts):
        raise MaskMatchError("Examples of labels are texts of one field; texts of several fields cannot be examples.")
    distinct = list(dict.fromkeys(text for text in texts if text.strip()))
    if not distinct:
        return [[] for _ in labels.labels]
    vectors = labels.encode_texts(distinct)  # (n, dim)
    lead = leads(mean_centred(vectors) @ mean_centred(labels.vectors).T)  # (n, K)
    nearest = lead.argmax(axis=1)  # (n,)
    candidates = []
    for position in range(len(labels.labels)):
        own = np.flatnonzero(nearest == position)
        order = own[np.argsort(-lead[own, position], kind="stable")][:limit]
        # Centred vectors decide the label. The lead without centring may differ a little, so it must not filter.
        candidates.append([Candidate(distinct[row], "example", skip_filter=True) for row in order])
    return candidates
