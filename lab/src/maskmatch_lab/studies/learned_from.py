"""The datasets that the default encoder was trained on: results on them do not carry over to others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LEARNED_FROM = frozenset({"clinc150", "snips", "goemotions", "goemotions_multi", "naics1065", "fewrel_nyt25"})
"""The datasets whose train splits the default's adapter was trained on, as their licences allow."""


def unseen(datasets: Iterable[str], model: str | Path | None) -> list[str]:
    """The datasets that an encoder was not trained on; None is the default encoder.

    >>> unseen(["banking77", "snips", "clinc150@10"], None)
    ['banking77']
    """
    return [name for name in datasets if model is not None or name.partition("@")[0] not in LEARNED_FROM]
