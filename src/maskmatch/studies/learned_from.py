"""Which datasets the default encoder has learned from: what is measured on them says little of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LEARNED_FROM = frozenset({"clinc150", "snips", "goemotions", "goemotions_multi", "naics1065", "fewrel_nyt25"})
"""The datasets whose licence lets the default's adapter learn from their train splits."""


def unseen(datasets: Iterable[str], model: str | Path | None) -> list[str]:
    """Those of some datasets that an encoder has not learned from; None is the default one.

    >>> unseen(["banking77", "snips", "clinc150@10"], None)
    ['banking77']
    """
    return [name for name in datasets if model is not None or name.partition("@")[0] not in LEARNED_FROM]
