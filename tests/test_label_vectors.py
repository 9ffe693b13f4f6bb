"""Label vectors: how they are laid out, kept and made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch.label_vectors import LabelLayout, LabelMatrix, LabelVectorStore, verbalizer_vectors
from maskmatch.labels import Label, LabelSet

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
    layout = LabelLayout.of(labels)
    assert layout.texts == tuple(text for label in labels.labels for text in label.texts)
    assert layout.present.sum(dim=1).tolist() == [count + 1 for count in phrases]
    flat = torch.arange(len(layout.texts) * 6.0).reshape(-1, 2, 3)  # (F, masks, dim)
    arranged = layout.arrange(flat)
    assert arranged.shape == (len(phrases), max(phrases) + 1, 2, 3)
    for number, label in enumerate(labels.labels):
        for place, text in enumerate(label.texts):
            assert layout.present[number, place]
            assert torch.equal(arranged[number, place], flat[layout.texts.index(text)])


class Counting:
    """An encoder of label texts that says what it was asked for."""

    def __init__(self, factor: float = 1.0) -> None:
        self.asked: list[list[str]] = []
        self.factor = factor

    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        self.asked.append(list(texts))
        return torch.tensor([[[self.factor * len(text), ord(text[0])]] for text in texts])  # (F, 1, 2)


def test_only_texts_that_are_missing_are_encoded() -> None:
    store, encode = LabelVectorStore(), Counting()

    def look_up(*texts: str) -> torch.Tensor:
        vectors = store.look_up(texts, weights=1, key="k", encode=encode)
        assert torch.equal(vectors, Counting()(texts)), "the order is that of the request"
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
def test_the_store_always_gives_what_encoding_would(requests: list[list[str]]) -> None:
    store, encode = LabelVectorStore(), Counting()
    before: set[str] = set()
    for texts in requests:
        calls = len(encode.asked)
        vectors = store.look_up(texts, weights=0, key="", encode=encode)
        assert torch.equal(vectors, Counting()(texts))
        newly = {text for asked in encode.asked[calls:] for text in asked}
        assert newly == set(texts) - before
        before = set(texts)


@pytest.mark.parametrize(("weights", "key"), [(2, "k"), (1, "other"), (0, "")])
def test_other_weights_or_another_key_start_afresh(weights: int, key: str) -> None:
    store = LabelVectorStore()
    store.look_up(["a", "bb"], weights=1, key="k", encode=Counting())
    encode = Counting(factor=3.0)
    vectors = store.look_up(["bb", "a"], weights=weights, key=key, encode=encode)
    assert encode.asked == [["bb", "a"]]
    assert vectors[:, 0, 0].tolist() == [6.0, 3.0]


def test_vectors_from_elsewhere_are_kept() -> None:
    store, encode = LabelVectorStore(), Counting()
    read = torch.tensor([[[7.0, 7.0]], [[8.0, 8.0]]])
    store.keep(["a", "bb"], read, weights=4, key="k")
    assert torch.equal(store.look_up(["a", "bb"], weights=4, key="k", encode=encode), read)
    assert store.look_up(["bb", "ccc"], weights=4, key="k", encode=encode)[:, 0, 0].tolist() == [8.0, 3.0]
    assert encode.asked == [["ccc"]]


def test_a_label_matrix_has_a_vector_a_label() -> None:
    matrix = LabelMatrix(3, 4)
    assert matrix().shape == (3, 1, 1, 4)
    assert 0 < matrix().std() < 0.1
    matrix().sum().backward()
    assert matrix.weight.grad is not None
    before = matrix.weight.detach().clone()
    matrix.select([2, 0])
    assert torch.equal(matrix()[:, 0, 0], before[[2, 0]])
    assert matrix.weight.requires_grad
    read = torch.arange(20.0).reshape(5, 1, 4)
    matrix.load(read)
    assert torch.equal(matrix(), read[:, None])
    assert isinstance(matrix.weight, torch.nn.Parameter)


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5), min_size=1, max_size=6))
@settings(max_examples=50, deadline=None)
def test_verbalizer_vectors_are_means_of_word_embeddings(token_ids: list[list[int]]) -> None:
    torch.manual_seed(0)
    embeddings = torch.nn.Embedding(10, 4)
    vectors = verbalizer_vectors(token_ids, lambda ids: embeddings.weight[ids], torch.device("cpu"))
    expected = torch.stack([torch.stack([embeddings.weight[id_] for id_ in ids]).mean(0) for ids in token_ids])
    torch.testing.assert_close(vectors, expected[:, None])
    vectors.sum().backward()
    assert embeddings.weight.grad is not None
