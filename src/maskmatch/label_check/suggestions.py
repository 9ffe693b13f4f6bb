"""What may be done about a label: words that tell it apart, from names or from texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from maskmatch.expansion.training_words import training_words
from maskmatch.labels import LabelSet

if TYPE_CHECKING:
    from collections.abc import Sequence

WORDS = 4
FILLERS = frozenset(
    re.findall(
        r"\w+",
        """
        a all also am an and any are as at be been but by can could did do does for from had has have how i if in into
        is it its just me my of on or our she so some than that the their them then there these they this to too us was
        we were what when where which who why will with would you your
        """,
    )
)
"""Words that tell no two names apart."""


def typical_words(texts: Sequence[Any], places: Sequence[int], labels: int) -> list[list[str]]:
    """For each label the words that set its texts apart from those of the others.

    Args:
        texts: The texts.
        places: The position of each text's label.
        labels: How many labels there are.
    """
    numbers = LabelSet.of(list(range(labels)))
    found = training_words(numbers, texts, list(places), WORDS)
    return [[each.text for each in own] for own in found]


def own_words(name: str, other: str) -> list[str]:
    """The words of a name that another name does not have, without those that only join others.

    >>> own_words("card payment fee charged", "cash withdrawal fee charged")
    ['card', 'payment']
    """
    others = set(re.findall(r"\w+", other.casefold()))
    return [word for word in re.findall(r"\w+", name.casefold()) if word not in others and word not in FILLERS]


def quoted(words: Sequence[str]) -> str:
    """Words as they stand in a sentence: "one", "two" and "three".

    >>> quoted(["one"]), quoted(["one", "two", "three"])
    ('"one"', '"one", "two" and "three"')
    """
    marked = [f'"{word}"' for word in words]
    return marked[0] if len(marked) == 1 else f"{', '.join(marked[:-1])} and {marked[-1]}"


def rename_hint(words: Sequence[str], *, known: bool, read_as: Sequence[str], otherwise: str) -> str:
    """What to call a label.

    Args:
        words: What its texts are typically about, if there are texts.
        known: Whether these texts are known to be its own; else they only come closest to it.
        read_as: Words that the encoder reads much like the name.
        otherwise: What to say if there are no words of either kind.
    """
    if words and known:
        return f"Its texts speak of {quoted(words)}: name it by these, or add them as phrases."
    if words:
        return (
            f"The texts that come closest to it speak of {quoted(words)}: if they belong to it, name it by these, or "
            "add them as phrases."
        )
    return f"The encoder reads it much like {quoted(read_as)}. {otherwise}" if read_as else otherwise


def tell_apart_hint(names: tuple[str, str], words: tuple[Sequence[str], Sequence[str]]) -> str:
    """How two names that are too close may be told apart.

    Args:
        names: The two names.
        words: Words that are typical of the texts of each; without any, it is told what each name has of its own.
    """
    both = zip(names, words, strict=True)
    parts = [f'"{name}" could stress {quoted(typical[:WORDS])}' for name, typical in both if typical]
    if parts:
        return f"{'; '.join(parts)}; a description of each says it best."
    own = own_words(names[0], names[1]), own_words(names[1], names[0])
    alike = len(own[0]) < len(own_words(names[0], ""))  # a word in common, so that the others are what differs
    apart = [f'{quoted(words)} in "{name}"' for name, words in zip(names, own, strict=True) if words]
    told = f"All that sets them apart is {' and '.join(apart)}. " if alike and apart else ""
    return f"{told}Give each a description that says what it is and the other is not, or make them one label."
