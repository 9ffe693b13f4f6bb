"""Changes of label names, for better or worse. Only the words change; every text keeps its label."""

from __future__ import annotations

import random
import re
from itertools import count, product
from typing import TYPE_CHECKING

from maskmatch.labels import Label, LabelSet
from maskmatch_lab.comparison import LabelChange
from maskmatch_lab.studies.name_tables import GLOSSES, SYNONYMS, WORD_SYNONYMS
from maskmatch_lab.studies.word_lists import GENERIC_ADJECTIVES, GENERIC_NOUNS, THINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from maskmatch_lab.comparison import LabelContext


def abbreviated(names: Sequence[str]) -> list[str]:
    """The first four letters of every word, like column names in a database.

    >>> abbreviated(["declined card payment", "age limit"])
    ['decl card paym', 'age limi']
    """
    return distinct([re.sub(r"\w{5,}", lambda word: word[0][:4], name) for name in names])


def without_vowels(names: Sequence[str]) -> list[str]:
    """Names without vowels, except at the beginning of a word.

    >>> without_vowels(["exchange rate", "age", "aa"])
    ['exchng rt', 'ag', 'a']
    """
    return distinct([re.sub(r"(?<=\w)[aeiouAEIOU]", "", name) for name in names])


def numbered(names: Sequence[str]) -> list[str]:
    """Numbers instead of names.

    >>> numbered(["refund", "card lost"])
    ['label 1', 'label 2']
    """
    return [f"label {number}" for number in range(1, len(names) + 1)]


def generic(names: Sequence[str]) -> list[str]:
    """Words that fit everything.

    >>> generic(["refund", "card lost"])
    ['category', 'class']
    """
    words = _generic_words()
    return [next(words) for _ in names]


def _generic_words() -> Iterator[str]:
    yield from GENERIC_NOUNS
    for length in count(1):
        for parts in product(GENERIC_ADJECTIVES, repeat=length):
            if len(set(parts)) == length:
                yield from (" ".join((*parts, noun)) for noun in GENERIC_NOUNS)
        if length == len(GENERIC_ADJECTIVES):
            break
    yield from (f"category {number}" for number in count(2))


def random_words(names: Sequence[str], seed: int) -> list[str]:
    """Names with as many words as before, drawn from a list of everyday things."""
    rng = random.Random(seed)
    made: dict[str, None] = {}
    for name in names:
        words = max(1, min(4, len(name.split())))
        for tries in count():
            drawn = " ".join(rng.choice(THINGS) for _ in range(words + tries // 100))
            if drawn not in made:
                made[drawn] = None
                break
    return list(made)


def shuffled(names: Sequence[str], seed: int) -> list[str]:
    """The same names, each at another label; with two labels or more, none keeps its own."""
    order = list(range(len(names)))
    random.Random(seed).shuffle(order)
    # A circle through all labels in a random order: each gets the name of the next one.
    following = {place: order[(position + 1) % len(order)] for position, place in enumerate(order)}
    return [names[following[place]] for place in range(len(names))]


def synonyms(names: Sequence[str]) -> list[str]:
    """Synonyms from a table, of whole names or else of single words; names without a synonym stay."""
    return distinct([SYNONYMS.get(name.casefold()) or _by_words(name) for name in names])


def _by_words(name: str) -> str:
    return re.sub(r"\w+", lambda word: WORD_SYNONYMS.get(word[0].casefold(), word[0]), name)


def distinct(names: Sequence[str]) -> list[str]:
    """Distinct names, none of them empty: duplicates get a number.

    >>> distinct(["a", "b", "A", "", "a 2"])
    ['a', 'b', 'A 3', 'label', 'a 2']
    """
    named = [" ".join(name.split()) or "label" for name in names]
    taken = {name.casefold() for name in named}
    seen: set[str] = set()
    made = []
    for name in named:
        if name.casefold() in seen:
            name = next(each for number in count(2) if (each := f"{name} {number}").casefold() not in taken)  # noqa: PLW2901
            taken.add(name.casefold())
        seen.add(name.casefold())
        made.append(name)
    return made


# -- as changes of labels ------------------------------------------------------------------------------------


def renaming(name: str, make: Callable[[Sequence[str]], list[str]]) -> LabelChange:
    """Other names for all labels of a dataset, without descriptions and phrases, which would reveal the old names."""
    return LabelChange(name, lambda context: _with_names(context, make(context.labels.names)))


def drawn_renaming(name: str, make: Callable[[Sequence[str], int], list[str]]) -> LabelChange:
    """The same where each seed draws other names."""
    return LabelChange(name, lambda context: _with_names(context, make(context.labels.names, context.seed)), drawn=True)


def with_glosses(context: LabelContext) -> LabelSet:
    """Every name with a gloss from a table as a second phrase; a name that is not in the table stays as it is."""
    return LabelSet(
        tuple(
            Label(label.id, label.name, phrases=tuple(GLOSSES.get(label.name.casefold(), ())))
            for label in context.labels.labels
        )
    )


def _with_names(context: LabelContext, names: Sequence[str]) -> LabelSet:
    return LabelSet(tuple(Label(id_, name) for id_, name in zip(context.labels, names, strict=True)))


AS_THEY_ARE, NUMBERED = "as they are", "numbered"
CHANGES: dict[str, LabelChange | None] = {
    AS_THEY_ARE: None,
    "expanded": LabelChange("expanded", with_glosses),
    "synonyms": renaming("synonyms", synonyms),
    "abbreviated": renaming("abbreviated", abbreviated),
    "vowels dropped": renaming("vowels dropped", without_vowels),
    "generic": renaming("generic", generic),
    NUMBERED: renaming(NUMBERED, numbered),
    "random words": drawn_renaming("random words", random_words),
    "shuffled": drawn_renaming("shuffled", shuffled),
}
"""The changes by name."""
