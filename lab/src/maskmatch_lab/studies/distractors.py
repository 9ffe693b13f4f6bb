"""Distractors: labels that no text has, with names of real words, near to those of a dataset or far from them."""

from __future__ import annotations

import random
import re
from collections import Counter
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Literal

from maskmatch.labels import Label
from maskmatch_lab.comparison import LabelChange
from maskmatch_lab.studies.word_lists import THINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.labels import LabelSet
    from maskmatch_lab.comparison import LabelContext, Rows

Kind = Literal["near", "far"]
FREQUENT = 300
"""Near names consist of words of real names and of this many most frequent words of the training texts."""

LEAST_LETTERS = 4
ID = "distractor: "
"""The prefix of the ids of distractors; no row has such a label."""


def distractors(kind: Kind, labels: int) -> LabelChange:
    """Add names up to this number of labels; a dataset that has as many already stays as it is.

    Args:
        kind: ``"near"``: words of the dataset's own names and training texts; ``"far"``: words for everyday things.
        labels: The number of labels in total.
    """
    return LabelChange(f"{kind} distractors up to {labels}", partial(_added, kind=kind, total=labels))


def _added(context: LabelContext, kind: Kind, total: int) -> LabelSet:
    missing = total - len(context.labels)
    if missing <= 0:
        return context.labels
    words = near_words(context.labels.names, context.pool) if kind == "near" else THINGS
    names = combined_names(words, missing, {name.casefold() for name in context.labels.names})
    return context.labels.added([Label(f"{ID}{name}", name) for name in names])


def near_words(names: Sequence[str], rows: Rows) -> tuple[str, ...]:
    """The words of names, and then the most frequent longer words of texts."""
    of_names = [word for name in names for word in _words(name)]
    texts = (text if isinstance(text, str) else str(text.get("text", "")) for text in rows.texts)
    counts = Counter(word for text in texts for word in _words(text))
    frequent = sorted(counts, key=lambda word: (-counts[word], word))[:FREQUENT]
    return tuple(dict.fromkeys([*of_names, *frequent])) or THINGS


def combined_names(words: Sequence[str], number: int, taken: set[str]) -> list[str]:
    """This many different names of two or three words, none of them taken; always the same ones.

    A name that contains all words of a taken one, or only words of it, could be a correct answer. Such names are
    avoided as long as there are enough words.
    """
    rng = random.Random(0)
    by_word: dict[str, list[frozenset[str]]] = {}
    for own in {frozenset(name.split()) for name in taken}:
        for word in own:
            by_word.setdefault(word, []).append(own)
    made: dict[str, None] = {}
    for tries in count():
        if len(made) == number:
            break
        length = 2 + rng.randrange(2) + tries // (20 * number)  # longer ones when the short ones run out
        drawn = [rng.choice(words) for _ in range(length)]
        name, own = " ".join(drawn), frozenset(drawn)
        near = any(each <= own or own <= each for word in own for each in by_word.get(word, ()))
        if name not in taken and (tries > 60 * number or (len(own) == length and not near)):
            made[name] = None
    return list(made)


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"[^\W\d_]+", text.casefold()) if len(word) >= LEAST_LETTERS]
