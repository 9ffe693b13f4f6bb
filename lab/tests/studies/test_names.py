"""Names made better or worse: whatever the names, there are as many, all different, none empty."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from comparison_tools import toy_splits
from maskmatch.labels import LabelSet
from maskmatch_lab.comparison import LabelContext
from maskmatch_lab.studies.distractors import ID, combined_names, distractors, near_words
from maskmatch_lab.studies.name_tables import GLOSSES, SYNONYMS
from maskmatch_lab.studies.names import (
    CHANGES,
    abbreviated,
    distinct,
    generic,
    numbered,
    random_words,
    shuffled,
    synonyms,
    without_vowels,
)

WORD = st.text(alphabet="aeiouybcdtré ÄßI-1", min_size=1, max_size=12).map(lambda text: " ".join(text.split()) or "x")
NAMES = st.lists(WORD, min_size=1, max_size=12, unique_by=lambda name: name.casefold())
MAKERS = (abbreviated, without_vowels, numbered, generic, synonyms, distinct)


@settings(deadline=None)
@given(NAMES, st.integers(0, 5))
def test_as_many_names_all_different_none_empty(names: list[str], seed: int) -> None:
    for made in [make(names) for make in MAKERS] + [random_words(names, seed), shuffled(names, seed)]:
        assert len(made) == len(names)
        assert all(name.strip() for name in made)
        assert len({name.casefold() for name in made}) == len(made)


@settings(deadline=None)
@given(NAMES, st.integers(0, 5))
def test_shuffled_names_are_the_same_and_none_keeps_its_place(names: list[str], seed: int) -> None:
    made = shuffled(names, seed)
    assert sorted(made) == sorted(names)
    if len(names) > 1:
        assert all(one != other for one, other in zip(made, names, strict=True))


def test_seeds_draw_others_and_the_same_again() -> None:
    names = ["refund", "card lost", "exchange rate", "age limit"]
    assert random_words(names, 0) == random_words(names, 0) != random_words(names, 1)
    assert [len(name.split()) for name in random_words(names, 3)] == [1, 2, 2, 2]


def test_names_that_fall_together_are_told_apart() -> None:
    assert without_vowels(["card", "crad", "cord"]) == ["crd", "crd 2", "crd 3"]
    assert abbreviated(["payment", "paymaster"]) == ["paym", "paym 2"]
    assert len(set(generic(["x"] * 3000))) == 3000


def test_tables_hold_a_synonym_and_a_gloss_for_each_name() -> None:
    assert len(SYNONYMS) == len(GLOSSES) == 50
    assert all(synonym.casefold() != name for name, synonym in SYNONYMS.items())
    assert len(set(SYNONYMS.values())) == 50
    assert synonyms(["city", "Exchange rate"]) == ["town", "conversion rate"]


def _context(seed: int = 0) -> LabelContext:
    data = toy_splits()
    return LabelContext(data.labels, data.name, data.task, data.train, data.train, seed, None)


def test_changes_keep_the_ids() -> None:
    context = _context()
    for name, change in CHANGES.items():
        if change is not None:
            made = change(context)
            assert list(made) == list(context.labels), name
    number = CHANGES["numbered"]
    assert number is not None
    assert number(context).names == ("label 1", "label 2", "label 3")


def test_distractors_are_added_until_there_are_enough() -> None:
    context = _context()
    near, far = distractors("near", 40)(context), distractors("far", 40)(context)
    for made in (near, far):
        assert len(made) == 40
        assert list(made)[:3] == list(context.labels)
        assert all(str(id_).startswith(ID) for id_ in list(made)[3:])
    words = set(near_words(context.labels.names, context.pool))
    assert {"refund", "card", "exchange"} <= words
    assert all(set(name.split()) <= words for name in near.names[3:])
    assert not any(set(name.split()) & words for name in far.names[3:])
    assert distractors("near", 2)(context) == LabelSet.of(context.labels)


def test_few_words_still_make_many_names() -> None:
    names = combined_names(["one", "two"], 200, {"one two"})
    assert len(set(names)) == 200
    assert "one two" not in names
