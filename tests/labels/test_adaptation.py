"""The adaptation to unlabelled texts, on vectors whose groups are known."""

from __future__ import annotations

import numpy as np
import pytest

from maskmatch.errors import MaskMatchError
from maskmatch.labels.adaptation import Adaptation, centred, matching_scale, smoothed, unit
from maskmatch.labels.layout import LabelLayout

K, DIM = 5, 32


def groups(seed: int, texts: int = 1000, noise: float = 0.2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Texts around K centres that share a direction, their groups, and names that are off their centres."""
    random = np.random.default_rng(seed)
    centres = unit(random.normal(size=(K, DIM)))
    own = random.integers(0, K, texts)
    shared = 2 * random.normal(size=DIM) / np.sqrt(DIM)
    vectors = centres[own] + noise * random.normal(size=(texts, DIM)) + shared
    names = centres + 0.25 * random.normal(size=(K, DIM)) + 2 * random.normal(size=DIM) / np.sqrt(DIM)
    return vectors.astype(np.float32), own, names.astype(np.float32)


@pytest.mark.parametrize("seed", range(5))
def test_labels_move_to_the_groups_of_texts(seed: int) -> None:
    vectors, own, names = groups(seed)
    found = Adaptation.of(vectors)
    labels = found.label_vectors(names, LabelLayout(np.ones(K, np.int64)))
    before = float(np.mean((unit(vectors) @ unit(names).T).argmax(axis=1) == own))
    after = float(np.mean((centred(vectors, found.mean) @ labels.T).argmax(axis=1) == own))
    assert after > before + 0.05
    assert after > 0.95


def test_norms_stay() -> None:
    vectors, _, names = groups(0)
    found = Adaptation.of(vectors)
    labels = found.label_vectors(names, LabelLayout(np.ones(K, np.int64)))
    np.testing.assert_allclose(np.linalg.norm(labels, axis=1), np.linalg.norm(names, axis=1), rtol=1e-4)
    np.testing.assert_allclose(
        np.linalg.norm(centred(vectors, found.mean), axis=1), np.linalg.norm(vectors, axis=1), rtol=1e-4
    )


def test_the_order_of_labels_does_not_matter() -> None:
    vectors, _, names = groups(1)
    found, one_each = Adaptation.of(vectors), LabelLayout(np.ones(K, np.int64))
    forward, backward = found.label_vectors(names, one_each), found.label_vectors(names[::-1], one_each)
    np.testing.assert_allclose(backward[::-1], forward, atol=1e-5)


def test_blocks_of_prototypes_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, _, names = groups(2)
    found, one_each = Adaptation.of(vectors), LabelLayout(np.ones(K, np.int64))
    expected = found.label_vectors(names, one_each)
    monkeypatch.setattr("maskmatch.labels.adaptation.BLOCK", 3 * K)
    np.testing.assert_allclose(found.label_vectors(names, one_each), expected, atol=1e-5)


def test_few_texts_change_little() -> None:
    vectors, _, names = groups(3, texts=5)
    labels = Adaptation.of(vectors).label_vectors(names, LabelLayout(np.ones(K, np.int64)))
    assert (unit(labels) * unit(names)).sum(axis=1).min() > 0.8


def test_phrases_of_a_label_move_together() -> None:
    vectors, _, names = groups(4)
    layout = LabelLayout(np.array([2, 1, 1, 1]))
    labels = Adaptation.of(vectors).label_vectors(names, layout)
    assert labels.shape == names.shape
    assert not np.allclose(labels[0], labels[1])


def test_arrays() -> None:
    found = Adaptation.of(groups(0)[0])
    again = Adaptation.from_arrays(found.to_arrays())
    assert not again.smooths
    older = {**found.to_arrays(), "numbers": np.array([2.0, 1.5], np.float32)}  # before texts could be smoothed
    assert (Adaptation.from_arrays(older).name_weight, Adaptation.from_arrays(older).smooths) == (2.0, False)
    trained = Adaptation.of(groups(0)[0], trained=True)
    assert Adaptation.from_arrays(trained.to_arrays()).smooths
    assert not trained.mean.any()
    np.testing.assert_array_equal(again.prototypes, found.prototypes)
    assert (again.texts, again.scale) == (1000, 1.0)
    with pytest.raises(MaskMatchError, match="do not fit together"):
        Adaptation(found.mean[:-1], found.prototypes, found.counts)


def test_matching_scale() -> None:
    scores = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    assert matching_scale(scores, 5 * scores) == pytest.approx(0.2, rel=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_smoothed_texts_are_nearer_to_their_group(seed: int) -> None:
    random = np.random.default_rng(seed)
    centres, own = unit(random.normal(size=(K, DIM))), random.integers(0, K, 1000)
    vectors = 3 * unit(centres[own] + 0.15 * random.normal(size=(1000, DIM)))
    found = Adaptation.of(vectors[:800], trained=True)
    smooth = smoothed(vectors[800:], found.prototypes)
    before, after = ((unit(each) * centres[own[800:]]).sum(axis=1) for each in (vectors[800:], smooth))
    assert after.mean() > before.mean() + 0.05
    np.testing.assert_allclose(np.linalg.norm(smooth, axis=1), 3.0, rtol=1e-4)


def test_a_text_far_from_all_prototypes_stays() -> None:
    prototypes = unit(np.random.default_rng(0).normal(size=(50, DIM)))
    prototypes[:, 0] = 0.0
    far = np.eye(DIM, dtype=np.float32)[:1]
    np.testing.assert_allclose(smoothed(far, prototypes), far, atol=1e-6)


def test_smoothing_does_not_jump_where_the_nearest_prototypes_change() -> None:
    prototypes = unit(np.random.default_rng(1).normal(size=(200, DIM)))
    start, end = unit(np.random.default_rng(2).normal(size=(2, DIM)))
    steps = np.linspace(0, 1, 2001)[:, None]
    path = smoothed(((1 - steps) * start + steps * end).astype(np.float32), prototypes)
    directions = unit(path)
    assert np.abs(np.diff(directions, axis=0)).max() < 0.02


@pytest.mark.parametrize("count", [1, 2, 5])
def test_smoothing_with_few_prototypes(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(0).normal(size=(7, DIM)).astype(np.float32)
    expected = smoothed(vectors, vectors[:count])
    assert np.isfinite(expected).all()
    assert smoothed(vectors[:0], vectors[:count]).shape == (0, DIM)
    monkeypatch.setattr("maskmatch.labels.adaptation.BLOCK", count)  # a text at a time
    np.testing.assert_allclose(smoothed(vectors, vectors[:count]), expected, atol=1e-6)
