"""Label and LabelSet: readable names, ids of any type, JSON, editing."""

from __future__ import annotations

import json
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch.errors import MaskMatchError, did_you_mean
from maskmatch.labels import Label, LabelSet, label_from_json, label_to_json, readable
from maskmatch.labels.label import PREFIXES


class Intent(Enum):
    CARD_LOST = 1
    Refund = 2


class Level(IntEnum):
    LOW = 0
    HIGH = 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("refund", "refund"),
        ("card_payment_fee", "card payment fee"),
        ("CARD_LOST", "card lost"),
        ("__init__", "init"),
        ("Refund_not_showing_up", "Refund not showing up"),
        ("per:city_of_birth", "person city of birth"),
        ("ORG:founded_by", "organization founded by"),
        ("misc:other", "miscellaneous other"),
        ("perform:music", "perform music"),
        ("per", "per"),
        ("org:", "org"),
        ("person/artist", "person artist"),
        ("Sci/Tech", "Sci Tech"),
        ("PlayMusic", "play music"),
        ("playMusicNow", "play music now"),
        ("AddToPlaylist", "add to playlist"),
        ("HTTPServerError", "HTTP server error"),
        ("BookABook", "book a book"),
        ("FAQ", "FAQ"),
        ("USA", "USA"),
        ("PDFs", "PDFs"),
        ("iPhone", "iPhone"),
        ("e-mail", "e-mail"),
        ("COVID-19", "COVID-19"),
        ("v2.0", "v2.0"),
        ("3.5", "3.5"),
        ("sci.space", "sci space"),
        ("c++", "c++"),
        ("New York", "New York"),
        ("New_York times:PlayMusic", "New_York times:PlayMusic"),
        ("  card \n lost ", "card lost"),
        ("Übermäßig_groß", "Übermäßig groß"),
        ("東京", "東京"),
        ("___", "___"),
        ("", ""),
        ("  ", ""),
    ],
)
def test_readable_names(name: str, words: str) -> None:
    assert readable(name) == words


names = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=15),
    st.text("aBcD_:/. 1-", max_size=15),
    st.sampled_from(sorted(PREFIXES)).flatmap(lambda prefix: st.text("aB_:.", max_size=6).map(f"{prefix}:{{}}".format)),
)


def letters(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


@given(names)
@settings(max_examples=300, deadline=None)
def test_readable_keeps_all_letters_in_order(name: str) -> None:
    prefix, colon, rest = "".join(name.split(maxsplit=0)).strip().partition(":")
    expanded = name
    if colon and rest and prefix.lower() in PREFIXES and not any(letter.isspace() for letter in name.strip()):
        expanded = f"{PREFIXES[prefix.lower()]} {rest}"
    assert letters(readable(name)) == letters(expanded)


@given(names)
@settings(max_examples=300, deadline=None)
def test_readable_is_idempotent(name: str) -> None:
    once = readable(name)
    assert readable(once) == once
    assert once == " ".join(once.split())
    assert bool(once) == bool(name.strip())


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1), min_size=2, max_size=4))
@settings(max_examples=100, deadline=None)
def test_names_with_spaces_stay_as_they_are(words: list[str]) -> None:
    name = " ".join(words)
    assert readable(name) == " ".join(name.split())


@pytest.mark.parametrize(
    ("id_", "plain", "name"),
    [
        ("card_lost", "card_lost", "card lost"),
        (3, 3, "3"),
        (0, 0, "0"),
        (2.5, 2.5, "2.5"),
        (True, True, "True"),
        (np.int64(3), 3, "3"),
        (np.uint8(3), 3, "3"),
        (np.float32(2.5), 2.5, "2.5"),
        (np.bool_(False), False, "False"),
        (np.str_("card_lost"), "card_lost", "card lost"),
        (("animal", "wild_cat"), ("animal", "wild_cat"), "animal wild cat"),
        ((np.int64(1), "a"), (1, "a"), "1 a"),
        (Level.HIGH, Level.HIGH, "HIGH"),
    ],
)
def test_ids_of_every_type(id_: Any, plain: Any, name: str) -> None:
    label = Label(id_)
    assert label.id == plain
    assert type(label.id) is type(plain)
    assert label.name == name
    if isinstance(plain, tuple):
        assert repr(label.id) == repr(plain)


def test_torch_numbers_become_python_numbers() -> None:
    import torch

    assert list(LabelSet.of(torch.tensor([2, 1]))) == [2, 1]


def test_pandas_numbers_become_python_numbers() -> None:
    pandas = pytest.importorskip("pandas")
    labels = LabelSet.of(pandas.Series([2, 1]))
    assert list(labels) == [2, 1]
    assert all(type(id_) is int for id_ in labels)
    for missing in (pandas.NA, pandas.NaT):
        with pytest.raises(MaskMatchError, match="A label is missing"):
            Label(missing)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None,), "A label is missing"),
        ((float("nan"),), "A label is missing"),
        ((np.float64("nan"),), "A label is missing"),
        ((np.datetime64("NaT"),), "A label is missing"),
        ((Decimal("NaN"),), "A label is missing"),
        (("",), "The label '' is blank"),
        ((" \t",), "is blank"),
        ((" ", "a name"), "is blank"),
        (((),), "is blank"),
        ((["a"],), "not hashable"),
        (({"a": 1},), "not hashable"),
        (((["a"],),), "not hashable"),
        ((np.array([1, 2]),), "not hashable"),
        (("a", 5), "The label 'a' has 5 where text is expected"),
        (("a", "", "", ("b", None)), "has None where text is expected"),
        (("a", "", 5), "has 5 where text is expected"),
        (("a", "", "", (5,)), "has 5 where text is expected"),
        (("a", "", "", 5), "has 5 where text is expected"),
        (("a", "", "", ("b", " ")), "has a blank phrase"),
        (("half \ud83d",), "contains half of a character"),
        (("a", "", "half \ud83d"), "contains half of a character"),
        (("a", "", "", ("half \ud83d",)), "contains half of a character"),
    ],
)
def test_invalid_labels_raise(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(MaskMatchError) as caught:
        Label(*arguments)
    assert message in str(caught.value)


def test_none_means_left_out() -> None:
    given: dict[str, Any] = dict.fromkeys(("name", "description", "phrases", "words", "examples"))
    assert Label("card_lost", **given) == Label("card_lost")
    assert Label("a", description=None).texts == ("a",)  # type: ignore[arg-type]


def test_texts_for_the_label_prompt() -> None:
    assert Label("card_lost").texts == ("card lost",)
    assert Label("card_lost", description=" gone \n for good ").texts == ("card lost: gone for good",)
    assert Label("a", "my  name", "", ("b", " b ", "my name", "c")).texts == ("my name", "b", "c")
    assert Label("a", phrases="other words").texts == ("a", "other words")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["a", "b"], [Label("a"), Label("b")]),
        (("a", Label("b", "B name")), [Label("a"), Label("b", "B name")]),
        (iter(["a", "b"]), [Label("a"), Label("b")]),
        (np.array(["a", "b"]), [Label("a"), Label("b")]),
        (np.array([4, 2]), [Label(4), Label(2)]),
        ({"a": None}, [Label("a")]),
        ({"a": "what it means"}, [Label("a", description="what it means")]),
        ({"a": ["b", "c"]}, [Label("a", phrases=("b", "c"))]),
        ({"a": ()}, [Label("a")]),
        ({3: "three"}, [Label(3, "three")]),
        ({True: "yes", False: "no"}, [Label(True, "yes"), Label(False, "no")]),
        ({"a": Label("b", "B name")}, [Label("a", "B name")]),
        ({"a": {"name": "n", "description": "d", "phrases": ["p"]}}, [Label("a", "n", "d", ("p",))]),
        ({"a": {"phrases": "one phrase"}}, [Label("a", phrases=("one phrase",))]),
        ({"a": {"description": None, "phrases": None}}, [Label("a")]),
    ],
)
def test_label_sets_from_every_form(labels: Any, expected: list[Label]) -> None:
    found = LabelSet.of(labels)
    assert list(found.labels) == expected
    assert list(found) == [label.id for label in expected]
    assert found.names == tuple(label.name for label in expected)
    assert LabelSet.of(found) is found


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "There are no labels"),
        ({}, "There are no labels"),
        ("abc", "a list of names or a mapping"),
        (b"abc", "a list of names or a mapping"),
        (5, "not 5"),
        (None, "not None"),
        (["a", "b", "a"], "The label 'a' appears twice"),
        ([1, True], "appears twice"),
        ([1, np.int64(1)], "The label 1 appears twice"),
        (["a", ""], "is blank"),
        (["a", None], "is missing"),
        (["a", float("nan")], "is missing"),
        (["card_lost", "card lost"], "'card_lost' and 'card lost' share the name 'card lost'"),
        (["Refund", "refund"], "share the name 'refund'"),
        ([1, "1"], "share the name '1'"),
        ({1: "x", 2: "X"}, "share the name 'X'"),
        ({"a": 5}, "The label 'a' is described by 5"),
        ({"a": ["b", 5]}, "has 5 where text is expected"),
        ({"a": {"name": 5}}, "has 5 where text is expected"),
        ({"a": {"nmae": "b", "text": "c"}}, "The label 'a' has nmae, text; a label has a name"),
    ],
)
def test_invalid_label_sets_raise(labels: Any, message: str) -> None:
    with pytest.raises(MaskMatchError) as caught:
        LabelSet.of(labels)
    assert message in str(caught.value)


def test_a_label_set_is_a_sequence_of_ids() -> None:
    labels = LabelSet.of(["a", 3, ("x", 1)])
    assert len(labels) == 3
    assert labels[1] == 3
    assert labels[-1] == ("x", 1)
    assert labels[1:] == [3, ("x", 1)]
    assert labels.position(("x", 1)) == 2
    assert labels.position(np.int64(3)) == 1
    assert labels.label("a") == Label("a")
    assert "a" in labels
    assert np.int64(3) in labels
    assert "b" not in labels
    assert ["a"] not in labels
    assert (["a"],) not in labels
    assert labels == LabelSet.of(["a", 3, ("x", 1)])
    assert labels != LabelSet.of([3, "a", ("x", 1)])
    assert hash(labels) == hash(LabelSet.of(["a", 3, ("x", 1)]))


@pytest.mark.parametrize("unknown", ["b", 7, ["a"], None])
def test_an_unknown_label_raises_and_lists_the_labels(unknown: Any) -> None:
    labels = LabelSet.of([f"a{number}" for number in range(7)])
    with pytest.raises(MaskMatchError) as caught:
        labels.position(unknown)
    message = f"There is no label {unknown!r}; the labels are 'a0', 'a1', 'a2', 'a3', 'a4', …."
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("unknown", "meant"), [("refnd", "'refund'"), ("Card Lost", "'card_lost'"), ("1000", "100"), ("parcel", None)]
)
def test_an_unknown_label_suggests_a_close_one(unknown: str, meant: str | None) -> None:
    with pytest.raises(MaskMatchError) as caught:
        LabelSet.of(["refund", "card_lost", 100]).position(unknown)
    expected = f" Did you mean {meant}?" if meant else ""
    assert str(caught.value) == (f"There is no label {unknown!r}; the labels are 'refund', 'card_lost', 100.{expected}")


def test_did_you_mean_without_known_words() -> None:
    assert did_you_mean("refund", []) == ""
    assert did_you_mean(None, ["refund"]) == ""


def test_labels_are_added_at_the_end() -> None:
    labels = LabelSet.of(["a", "b"])
    more = labels.added({"c": "what c means", "d": None})
    assert list(more) == ["a", "b", "c", "d"]
    assert more.label("c").description == "what c means"
    assert list(labels) == ["a", "b"], "the original set must not change"
    for wrong in (["a"], ["c", "c"], ["A"], [], "c"):
        with pytest.raises(MaskMatchError):
            labels.added(wrong)


def test_a_renamed_label_keeps_position_and_description() -> None:
    labels = LabelSet.of({"a": {"description": "meaning", "phrases": ["new name", "p"]}, "b": None})
    renamed = labels.renamed("a", "new_name")
    assert list(renamed) == ["new_name", "b"]
    assert renamed.label("new_name") == Label("new_name", "new name", "meaning", ("p",))
    assert labels.renamed("b", Label("c", "see", "sea")).label("c") == Label("c", "see", "sea")
    assert list(labels.renamed("b", "b")) == ["a", "b"]
    for old, new in (("x", "c"), ("a", "b"), ("a", ""), ("a", None)):
        with pytest.raises(MaskMatchError):
            labels.renamed(old, new)


@pytest.mark.parametrize("id_", [3, "r1", True, ("a", 1)])
def test_a_renamed_label_keeps_an_id_that_is_not_its_name(id_: Any) -> None:
    labels = LabelSet((Label(id_, "refund", "money back"), Label("b")))
    renamed = labels.renamed(id_, "card_lost")
    assert renamed.label(id_) == Label(id_, "card lost", "money back")
    assert list(renamed) == [id_, "b"]
    assert labels.renamed(id_, Label("new")).labels[0] == Label("new")
    with pytest.raises(MaskMatchError, match="share the name 'b'"):
        labels.renamed(id_, "b")


def test_renaming_a_number() -> None:
    labels = LabelSet.of([3, 4])
    assert list(labels.renamed(3, 5)) == [5, 4]
    assert labels.renamed(3, "refund").labels[0] == Label(3, "refund")


def test_resolve_finds_an_id_in_another_spelling() -> None:
    numbers, texts = LabelSet.of({3: "refund", -1: "fee"}), LabelSet.of(["3", "-1", "True"])
    assert [numbers.resolve(id_) for id_ in ("3", 3, "-1", "refund", "03", None)] == [3, 3, -1, "refund", "03", None]
    assert [texts.resolve(id_) for id_ in (3, "3", -1, True)] == ["3", "3", "-1", "True"]
    both = LabelSet((Label(3, "a"), Label("3", "b")))
    assert (both.resolve(3), both.resolve("3")) == (3, "3")


def test_labels_are_removed() -> None:
    labels = LabelSet.of(["a", "bc", 3, "d"])
    assert list(labels.removed(["d", "a"])) == ["bc", 3]
    assert list(labels.removed("bc")) == ["a", 3, "d"]
    assert list(labels.removed(3)) == ["a", "bc", "d"]  # type: ignore[arg-type]
    assert list(labels.removed([])) == list(labels)
    with pytest.raises(MaskMatchError, match="There is no label 'x'"):
        labels.removed(["a", "x"])
    with pytest.raises(MaskMatchError, match="at least one has to stay"):
        labels.removed(list(labels))


plain_ids = st.recursive(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip),
        st.integers(),
        st.booleans(),
        st.floats(allow_nan=False),
    ),
    lambda parts: st.lists(parts, min_size=1, max_size=3).map(tuple),
    max_leaves=5,
)
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(str.strip)


@given(plain_ids, st.one_of(st.just(""), words), st.one_of(st.just(""), words), st.lists(words, max_size=3))
@settings(max_examples=150, deadline=None)
def test_json_round_trip(id_: Any, name: str, description: str, phrases: list[str]) -> None:
    label = Label(id_, name, description, tuple(phrases))
    back = label_from_json(json.loads(json.dumps(label_to_json(label), allow_nan=True)))
    assert back == label
    assert type(back.id) is type(label.id)
    assert repr(back.id) == repr(label.id), "1, 1.0 and True are equal, but different ids"


@pytest.mark.parametrize("id_", [Intent.CARD_LOST, frozenset({1}), ("a", Intent.CARD_LOST), ("a", None)])
def test_an_id_that_cannot_be_saved_raises_at_once(id_: Any) -> None:
    for call in (Label, lambda id_: LabelSet.of(["a", id_]), lambda id_: LabelSet.of({id_: "a name"})):
        with pytest.raises(MaskMatchError, match="cannot be saved; give strings, numbers"):
            call(id_)
