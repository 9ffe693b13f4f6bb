"""The sentences that suggest better names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a all also am an and any are as at be been but by can could did do does for from had has have how i if in into
        is it its just me my of on or our she so some than that the their them then there these they this to too us was
        we were what when where which who why will with would you your
        """,
    )
)
"""Words that do not distinguish two names."""


def own_words(name: str, other: str) -> list[str]:
    """Return the words of a name that are neither in the other name nor stop words.

    >>> own_words("card payment fee charged", "cash withdrawal fee charged")
    ['card', 'payment']
    """
    others = set(re.findall(r"\w+", other.casefold()))
    return [word for word in re.findall(r"\w+", name.casefold()) if word not in others and word not in STOP_WORDS]


def quoted(words: Sequence[str]) -> str:
    """List words in a sentence: "one", "two" and "three".

    >>> quoted(["one"]), quoted(["one", "two", "three"])
    ('"one"', '"one", "two" and "three"')
    """
    marked = [f'"{word}"' for word in words]
    return marked[0] if len(marked) == 1 else f"{', '.join(marked[:-1])} and {marked[-1]}"


def suggest_name(typical_words: Sequence[str], *, labelled: bool, similar_words: Sequence[str], default: str) -> str:
    """Suggest how to rename a label.

    Args:
        typical_words: The typical words of its texts, if there are texts.
        labelled: Whether these texts have the label; if not, they are the texts nearest to it.
        similar_words: Vocabulary words that are similar to the name.
        default: The suggestion if there are no words of either kind.
    """
    if typical_words and labelled:
        return f"Typical words of its texts are {quoted(typical_words)}: use them in the name, or add them as phrases."
    if typical_words:
        return (
            f"Typical words of the nearest texts are {quoted(typical_words)}: if these texts have this label, use the "
            "words in the name, or add them as phrases."
        )
    return f"The encoder finds it similar to {quoted(similar_words)}. {default}" if similar_words else default


def suggest_distinction(names: tuple[str, str], typical_words: tuple[Sequence[str], Sequence[str]]) -> str:
    """Suggest how to distinguish two names that are too close.

    Args:
        names: The two names.
        typical_words: The distinguishing words of the texts of each. If there are none, the suggestion shows the words
            in which the names differ.
    """
    both = zip(names, typical_words, strict=True)
    parts = [f'"{name}" could mention {quoted(words)}' for name, words in both if words]
    if parts:
        return f"{'; '.join(parts)}; a description of each label is the best place for it."
    own = own_words(names[0], names[1]), own_words(names[1], names[0])
    share_words = len(own[0]) < len(own_words(names[0], ""))  # only then are the other words the difference
    differences = [f'{quoted(words)} in "{name}"' for name, words in zip(names, own, strict=True) if words]
    difference = f"They differ only by {' and '.join(differences)}. " if share_words and differences else ""
    return f"{difference}Give each a description that says how it differs from the other, or merge them into one label."
