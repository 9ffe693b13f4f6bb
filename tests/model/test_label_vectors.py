"""Label vectors: their layout, the cache, learned rows and verbalizers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch.labels import Label, LabelSet
from maskmatch.labels.layout import LabelLayout
from maskmatch.labels.vector_cache import VectorCache
from maskmatch.model.label_sources import MatrixLabels, WordLabels

if TYPE_CHECKING:
    from collections.abc import Sequence


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6))
@settings(max_examples=50, deadline=None)
def test_every_label_gets_the_vectors_of_its_own_texts(phrases: list[int]) -> None:
    labels = LabelSet(
        tuple(
            Label(f"l{number}", phrases=tuple(f"l{number} p{place}" for place in range(count)))
            for number, count in enumerate(phrases)
        )
    )
    layout = LabelLayout.of([label.texts for label in labels.labels])
    assert layout.texts == tuple(text for label in labels.labels for text in label.texts)
    assert layout.present.sum(axis=1).tolist() == [count + 1 for count in phrases]
    assert layout.table.shape == (len(phrases), max(phrases) + 1)
    assert layout.size == len(layout.texts) == len(layout.owners)
    for number, label in enumerate(labels.labels):
        for place, text in enumerate(label.texts):
            assert layout.present[number, place]
            assert layout.texts[layout.table[number, place]] == text
            assert layout.owners[layout.table[number, place]] == number


class Counting:
    """An encoder of label texts that says what it was asked for."""

    def __init__(self, factor: float = 1.0) -> None:
        self.asked: list[list[str]] = []
        self.factor = factor

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        self.asked.append(list(texts))
        return np.array([[[self.factor * len(text), ord(text[0])]] for text in texts], np.float32)  # (F, 1, 2)


def test_only_texts_that_are_missing_are_encoded() -> None:
    cache, encode = VectorCache(), Counting()

    def look_up(*texts: str) -> np.ndarray:
        vectors = cache.look_up(texts, (1, "k"), encode)
        assert np.array_equal(vectors, Counting()(texts)), "the order is that of the request"
        return vectors

    look_up("a", "bb")
    assert encode.asked == [["a", "bb"]]
    look_up("a", "bb")
    assert encode.asked == [["a", "bb"]]
    look_up("ccc", "bb", "a", "ccc", "dddd")
    assert encode.asked == [["a", "bb"], ["ccc", "dddd"]]
    look_up("dddd", "a")
    look_up("a", "dddd", "a")
    assert len(encode.asked) == 2, "what was there needs no encoding in another order"
    look_up("eeeee", "a")
    assert encode.asked[2:] == [["eeeee"]]


@given(st.lists(st.lists(st.sampled_from(["a", "bb", "ccc", "dd", "e"]), min_size=1, max_size=6), max_size=6))
@settings(max_examples=50, deadline=None)
def test_the_cache_always_gives_what_encoding_would(requests: list[list[str]]) -> None:
    cache, encode = VectorCache(), Counting()
    before: set[str] = set()
    for texts in requests:
        calls = len(encode.asked)
        vectors = cache.look_up(texts, (0, ""), encode)
        assert np.array_equal(vectors, Counting()(texts))
        newly = {text for asked in encode.asked[calls:] for text in asked}
        assert newly == set(texts) - before
        before = set(texts)


@pytest.mark.parametrize(("weights", "key"), [(2, "k"), (1, "other"), (0, "")])
def test_other_weights_or_another_key_start_afresh(weights: int, key: str) -> None:
    cache = VectorCache()
    cache.look_up(["a", "bb"], (1, "k"), Counting())
    encode = Counting(factor=3.0)
    vectors = cache.look_up(["bb", "a"], (weights, key), encode)
    assert encode.asked == [["bb", "a"]]
    assert vectors[:, 0, 0].tolist() == [6.0, 3.0]


def test_vectors_from_elsewhere_are_cached() -> None:
    cache, encode = VectorCache(), Counting()
    read = np.array([[[7.0, 7.0]], [[8.0, 8.0]]], np.float32)
    cache.fill(["a", "bb"], read, (4, "k"))
    assert np.array_equal(cache.look_up(["a", "bb"], (4, "k"), encode), read)
    assert cache.look_up(["bb", "ccc"], (4, "k"), encode)[:, 0, 0].tolist() == [8.0, 3.0]
    assert encode.asked == [["ccc"]]


def test_learned_labels_have_a_vector_per_label() -> None:
    source = MatrixLabels(4, lambda ids: ids)
    source.set_count(3)
    assert source(None, ()).shape == (3, 1, 4)
    assert 0 < source(None, ()).std() < 0.1
    source(None, ()).sum().backward()
    assert source.weight.grad is not None
    before = source.weight.detach().clone()
    source.set_count(3)
    assert torch.equal(source.weight, before), "as many as before: nothing is drawn again"
    source.select([2, 0])
    assert torch.equal(source(None, ())[:, 0], before[[2, 0]])
    assert source.weight.requires_grad
    vectors = torch.arange(20.0).reshape(5, 1, 4)
    source.load(vectors)
    assert torch.equal(source(None, ()), vectors)
    assert isinstance(source.weight, torch.nn.Parameter)


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5), min_size=1, max_size=6))
@settings(max_examples=50, deadline=None)
def test_verbalizer_vectors_are_means_of_word_embeddings(token_ids: list[list[int]]) -> None:
    torch.manual_seed(0)
    embeddings = torch.nn.Embedding(10, 4)
    vectors = WordLabels(4, lambda ids: embeddings.weight[ids])(None, token_ids)
    expected = torch.stack([torch.stack([embeddings.weight[id_] for id_ in ids]).mean(0) for ids in token_ids])
    torch.testing.assert_close(vectors, expected[:, None])
    vectors.sum().backward()
    assert embeddings.weight.grad is not None
