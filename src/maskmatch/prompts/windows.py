"""Windows: a text that is too long for its prompt is read in parts of about equal length, and not truncated."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from maskmatch.prompts.fields import FieldText
from maskmatch.prompts.truncation import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from maskmatch.prompts.batches import TokenizedPrompts
    from maskmatch.prompts.fields import FieldTexts

MOST_WINDOWS = 256
"""How many windows of a text are read at most; a longer text is truncated there."""

LEAST_SHARE = 0.25
"""The smallest share of the tokens that a window must have; if the rest of the prompt takes more, the text is cut."""

SPARE = 4
"""Tokens that are kept free: at its edges a window may have other tokens than the whole text."""

Offsets = list[tuple[int, int]]
"""Where each token of a text starts and ends, in characters."""


@dataclass(frozen=True)
class Windows:
    """The further windows of long texts, besides the first window of each.

    Attributes:
        prompts: The m further windows, those of a text in a row.
        owners: (m,), the row of the text that each belongs to.
    """

    prompts: TokenizedPrompts
    owners: NDArray[np.int64]

    def select(self, rows: NDArray[np.int64]) -> Windows | None:
        """The further windows of some texts, which get new row numbers."""
        counts = np.bincount(self.owners, minlength=int(rows.max(initial=0)) + 1)
        starts = np.cumsum(counts) - counts
        places = [np.arange(starts[row], starts[row] + counts[row]) for row in rows.tolist()]
        own = np.concatenate([*places, np.empty(0, np.int64)]).astype(np.int64)
        if not len(own):
            return None
        return Windows(self.prompts.select(own), np.repeat(np.arange(len(rows)), counts[rows]))


def split_row(
    row: FieldTexts, room: Callable[[FieldTexts], int], offsets: Callable[[str], Offsets], max_length: int
) -> tuple[list[FieldTexts], bool]:
    """The windows of an example that is too long, and whether some of it is in none of them.

    The longest field is split at the ends of words; each window has all other fields. Marked spans must stay together,
    so a field with marked spans is one window: truncation keeps what is around them.

    Args:
        row: The fields of the example.
        room: How many tokens the prompts leave for a field if the others are as in this row.
        offsets: Where each token of a text starts and ends.
        max_length: The maximum number of tokens of a prompt.
    """
    name = max(row, key=lambda field: len(row[field].text))
    value = row[name]
    if value.protected:
        return [row], True
    free = room({**row, name: FieldText("")}) - SPARE
    if free < LEAST_SHARE * max_length:
        return [row], True
    most = MOST_WINDOWS * free * CHARACTERS_PER_TOKEN
    text = value.text[:most]
    pieces = _pieces(text, offsets(text), free)
    kept = pieces[:MOST_WINDOWS]
    windows: list[FieldTexts] = [{**row, name: FieldText(piece)} for piece in kept if piece.strip()]
    return windows or [row], len(kept) < len(pieces) or len(text) < len(value.text)


def _pieces(text: str, tokens: Offsets, size: int) -> list[str]:
    """A text in pieces of at most ``size`` tokens, all of about the same length, that end between words."""
    pieces, start = [], 0
    while len(tokens) - start > size:
        left = len(tokens) - start
        stop = start + math.ceil(left / math.ceil(left / size))
        places = range(stop, start + (stop - start) // 2, -1)
        border = next((place for place in places if _starts_word(text, tokens[place])), stop)
        pieces.append(text[tokens[start][0] : tokens[border][0]])
        start = border
    return [*pieces, text[tokens[start][0] :]] if tokens else [text]


def _starts_word(text: str, token: tuple[int, int]) -> bool:
    """Whether a token is the first of a word, with or without the white space before it."""
    start = token[0]
    return text[start : start + 1].isspace() or text[start - 1 : start].isspace()


def all_windows(prompts: TokenizedPrompts, most: int | None = None) -> tuple[TokenizedPrompts, NDArray[np.int64]]:
    """All windows of texts as texts of their own, and the text that each belongs to: first windows come first.

    Args:
        prompts: The texts.
        most: How many windows per text at most, spread over the text; None: all.
    """
    first, owners = replace(prompts, windows=None), np.arange(len(prompts))
    if prompts.windows is None:
        return first, owners
    further, own = prompts.windows.prompts, prompts.windows.owners
    if most is not None:
        kept = _spread(own, most - 1)
        further, own = further.select(kept), own[kept]
    pools = zip((first, *first.others), (further, *further.others), strict=True)
    joined, *others = (replace(one, others=()).followed_by(replace(other, others=())) for one, other in pools)
    return replace(joined, others=tuple(others)), np.concatenate([owners, own])


def _spread(owners: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """The places of at most so many windows per owner, evenly spaced and with the last one.

    >>> _spread(np.array([0, 0, 0, 0, 0, 2]), 2).tolist()
    [1, 4, 5]
    """
    kept: list[int] = []
    for owner in np.unique(owners).tolist():
        own = np.flatnonzero(owners == owner)
        places = np.linspace(0, len(own), min(most, len(own)) + 1)[1:].round().astype(np.int64) - 1
        kept += own[places].tolist()
    return np.array(kept, np.int64)


def mean_of_windows(vectors: NDArray[np.float32], owners: NDArray[np.int64], texts: int) -> NDArray[np.float32]:
    """The mean vector of each text's windows: (windows, masks, dim) → (texts, masks, dim)."""
    means = vectors[:texts].copy()  # the first windows come first
    np.add.at(means, owners[texts:], vectors[texts:])
    counts = np.bincount(owners, minlength=texts).astype(np.float32)
    return np.asarray(means / counts.reshape(-1, *[1] * (vectors.ndim - 1)), np.float32)


def joined_cut(first: NDArray[np.bool_], further: NDArray[np.bool_], owners: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which texts are truncated in any of their windows: (n,)."""
    return np.asarray(first | (np.bincount(owners, further, minlength=len(first)) > 0))
