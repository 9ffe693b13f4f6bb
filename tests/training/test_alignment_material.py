"""The training data of an alignment: texts and names of every form."""

from __future__ import annotations

import sys
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from alignment_tools import BANK, BRIEF, PAIRS, Tiny, vectors_of
from maskmatch import align
from maskmatch.data import LabelledTexts
from maskmatch.model.encoder import Encoder
from maskmatch.training.alignment.material import cut_phrases
from toy_data import LABELS, TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from maskmatch.training.alignment.batches import AlignmentData

    Gather = Callable[..., "Material"]


class Material:
    """The training data of an alignment."""

    def __init__(self, data: AlignmentData) -> None:
        self.texts, self.names = list(data.material.texts), list(data.material.names)
        self.sets = list(data.material.label_sets)
        self.vectors = dict(data.vectors)


@pytest.fixture
def gather(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> Gather:
    """Run an alignment up to the training, and return its training data."""

    class Stop(BaseException):
        pass

    found: list[AlignmentData] = []

    def stop(_: Any, data: AlignmentData, *__: Any) -> None:
        found.append(data)
        raise Stop

    monkeypatch.setattr(sys.modules["maskmatch.training.alignment.align"], "train", stop)

    def call(*arguments: Any, **options: Any) -> Material:
        with pytest.raises(Stop):
            align(*arguments, model=tiny("bert"), **{**BRIEF, "steps": 10, **options})
        return Material(found[-1])

    return call


class TestMaterial:
    def test_repeated_and_blank_texts_are_dropped(self, gather: Gather) -> None:
        found = gather(["a text", " ", "another", "a text", ""])
        assert sorted(found.texts) == ["a text", "another"]

    def test_texts_of_every_form(self, gather: Gather) -> None:
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"text": TEXTS, "other": 3})
        for texts in (tuple(TEXTS), (text for text in TEXTS), pandas.Series(TEXTS), frame):
            assert sorted(gather(texts).texts) == sorted(TEXTS)
        assert sorted(gather([{"text": text} for text in TEXTS]).texts) == sorted(TEXTS)

    def test_no_more_texts_are_encoded_than_can_be_drawn(self, gather: Gather) -> None:
        found = gather([f"text {number}" for number in range(500)], LABELS, steps=2, draws=3, texts_a_draw=4)
        assert len(found.texts) == 2 * 3 * 4
        assert len(found.vectors) == 24 + len(LABELS)

    def test_label_names_of_every_form(self, gather: Gather) -> None:
        labels = {"card_lost": "it is gone", "refund": ["money back", "reimbursement"]}
        assert gather(TEXTS, labels).names == ["card lost: it is gone", "refund", "money back", "reimbursement"]
        assert gather(TEXTS, ["PlayMusic"]).names == ["play music"]

    def test_without_names_phrases_are_cut_from_the_texts(self, gather: Gather) -> None:
        found = gather(TEXTS)
        assert len(found.names) > 3
        assert all(any(name in " ".join(text.split()) for text in TEXTS) for name in found.names)
        assert set(found.vectors) == {*TEXTS, *found.names}

    def test_texts_of_punctuation_only(self, gather: Gather) -> None:
        assert sorted(gather(["...", "?!"]).names) == ["...", "?!"]

    def test_names_of_label_sets_become_readable(self, gather: Gather) -> None:
        machine = LabelledTexts(
            "machine", "topic", (("card_lost", "CardGone"), ("per:city_of_birth",)), (("a b",), ("c d",))
        )
        found = gather(["e f", "a b"], ["refund"], label_sets=[machine])
        assert found.sets[0].names == (("card lost", "card gone"), ("person city of birth",))
        assert found.names == ["refund", "card lost", "card gone", "person city of birth"]
        assert sorted(found.texts) == ["a b", "c d", "e f"]

    def test_label_sets_without_texts(self, gather: Gather) -> None:
        found = gather([], label_sets=[BANK, PAIRS])
        assert sorted(found.texts) == sorted(text for texts in BANK.texts for text in texts)
        assert "two words" in found.names

    def test_only_texts_of_one_field_and_names_have_a_target_vector(self, gather: Gather) -> None:
        found = gather([], label_sets=[BANK, PAIRS])
        assert set(found.vectors) == {*found.texts, *found.names}
        assert all(vector.norm().item() == pytest.approx(1, abs=1e-5) for vector in found.vectors.values())

    def test_target_vectors_are_mean_pooled(self, gather: Gather, tiny: Tiny) -> None:
        found = gather(TEXTS, LABELS).vectors
        expected = vectors_of(Encoder.load(tiny("bert"), "bert"), list(found), "semantic-matching", "{text}")
        assert torch.allclose(torch.stack(list(found.values())), expected, atol=1e-5)

    def test_very_long_texts_are_truncated(self, gather: Gather) -> None:
        assert len(gather(["refund " * 5000, "card " * 300]).vectors) >= 2


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=8), st.integers(0, 1000))
@settings(max_examples=300, deadline=None)
def test_cut_phrases_are_words_of_the_texts(texts: list[str], seed: int) -> None:
    phrases = cut_phrases(texts, Random(seed))
    assert 1 <= len(phrases) <= len(texts)
    assert len(set(phrases)) == len(phrases)
    for phrase in phrases:
        assert phrase.strip()
        assert len(phrase.split()) <= 4
        assert any(phrase in " ".join(text.split()) for text in texts)
