"""Examples from unlabelled texts: those that match a label best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.expansion.ground import centred, leads
from maskmatch.expansion.phrases import Candidate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.expansion.ground import Ground


def matching_texts(ground: Ground, texts: Sequence[Any], number: int) -> list[list[Candidate]]:
    """For each label the texts that come nearer to it than to any other label, those with the largest lead first.

    What all texts have in common, and what all names have in common, is taken out before they are compared: it says
    nothing about which label a text has, but lets some labels stand nearer to everything than others.
    """
    if any(not isinstance(text, str) for text in texts):
        raise MaskMatchError("Examples of labels are texts of one field; texts of several fields cannot be examples.")
    plain = list(dict.fromkeys(text for text in texts if text.strip()))
    if not plain:
        return [[] for _ in ground.labels]
    vectors = ground.read_texts(plain)  # (n, dim)
    lead = leads(centred(vectors) @ centred(ground.vectors).T)  # (n, K)
    best = lead.argmax(axis=1)
    found = []
    for place in range(len(ground.labels)):
        own = np.flatnonzero(best == place)
        order = own[np.argsort(-lead[own, place], kind="stable")][:number]
        # The lead among centred vectors has told that they belong here; among plain ones it may differ a little.
        found.append([Candidate(plain[row], "example", settled=True) for row in order])
    return found
