"""Labels that no text has: names built of real words, near to those of a dataset or far from them."""

from __future__ import annotations

import random
import re
from collections import Counter
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Literal

from maskmatch.comparison import LabelChange
from maskmatch.labels import Label
from maskmatch.studies.word_lists import THINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.comparison import LabelContext, Rows
    from maskmatch.labels import LabelSet

Kind = Literal["near", "far"]
FREQUENT = 300
"""How many of the most frequent words of the training texts near names are built of, besides those of real names."""

LEAST_LETTERS = 4
ID = "distractor: "
"""How the ids of labels begin that were added; no row has such a label."""


def distractors(kind: Kind, labels: int) -> LabelChange:
    """Adds names until there are so many labels; a dataset that has as many already stays as it is.

    Args:
        kind: ``"near"``: of the words of the dataset's own names and training texts; ``"far"``: of the words for
            everyday things.
        labels: How many labels there are then.
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
    """So many different names of two or three words, none of which is taken; always the same ones.

    A name that holds all words of one that is taken, or only such words, could as well be right: there is none, as long
    as the words allow.
    """
    rng = random.Random(0)
    by_word: dict[str, list[frozenset[str]]] = {}
    for own in {frozenset(name.split()) for name in taken}:
        for word in own:
            by_word.setdefault(word, []).append(own)
    found: dict[str, None] = {}
    for tries in count():
        if len(found) == number:
            break
        length = 2 + rng.randrange(2) + tries // (20 * number)  # longer ones when the short ones run out
        drawn = [rng.choice(words) for _ in range(length)]
        name, own = " ".join(drawn), frozenset(drawn)
        near = any(each <= own or own <= each for word in own for each in by_word.get(word, ()))
        if name not in taken and (tries > 60 * number or (len(own) == length and not near)):
            found[name] = None
    return list(found)


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"[^\W\d_]+", text.casefold()) if len(word) >= LEAST_LETTERS]
