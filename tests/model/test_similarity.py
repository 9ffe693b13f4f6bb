"""Similarities against numpy, joins of phrases against loops."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch.config.similarity import PHRASE_JOINS, SimilarityConfig
from maskmatch.errors import MaskMatchError
from maskmatch.labels.layout import LabelLayout
from maskmatch.model.similarity import Similarity
from maskmatch.prediction import label_scorer as scorer_module
from maskmatch.prediction.label_scorer import LabelScorer, lead_probability
from maskmatch.prediction.search import ExactSearch

KINDS: tuple[str, ...] = ("dot", "cosine")
JOINS: tuple[str, ...] = ("mean", "max", "logsumexp")
MASKS: tuple[str, ...] = ("mean", "concat", "late")


def masks_by_hand(config: SimilarityConfig, text: np.ndarray, label: np.ndarray) -> float:
    """How similar the masks of a text (masks, dim) are to those of a label text (masks, dim)."""

    def similarity(x: np.ndarray, y: np.ndarray) -> float:
        product = float(x @ y)
        return product / float(np.linalg.norm(x) * np.linalg.norm(y)) if config.kind == "cosine" else product

    if config.masks == "mean":
        return similarity(text.mean(axis=0), label.mean(axis=0))
    if config.masks == "concat":
        return similarity(text.flatten(), label.flatten())
    return float(np.mean([max(similarity(x, y) for y in label) for x in text]))


def by_hand(
    config: SimilarityConfig,
    inputs: torch.Tensor,
    labels: torch.Tensor,
    present: torch.Tensor,
    offset: float = 0.0,
) -> np.ndarray:
    """The scores, one at a time."""
    texts, count = len(inputs), present.shape[0]
    scores = np.zeros((texts, count))
    for row in range(texts):
        for label in range(count):
            own = labels[row, label] if labels.dim() == 5 else labels[label]
            found = []
            for phrase in range(present.shape[1]):
                if present[label, phrase]:
                    product = masks_by_hand(config, inputs[row].double().numpy(), own[phrase].double().numpy())
                    found.append((product - offset) / config.temperature)
            scores[row, label] = {
                "mean": np.mean(found),
                "max": np.max(found),
                "logsumexp": np.log(np.mean(np.exp(found))),
            }[config.phrases]
    return scores


@st.composite
def cases(draw: st.DrawFn, same_masks: bool = False) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Inputs (n, masks, dim), labels (K, phrases, masks, dim), and which phrases are there."""
    texts, count, phrases = (draw(st.integers(1, 4)) for _ in range(3))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))
    dimension = draw(st.integers(1, 6))
    masks = draw(st.integers(1, 3))
    label_masks = draw(st.just(masks) if same_masks else st.integers(1, 3))
    inputs = torch.randn(texts, masks, dimension, generator=generator) + 0.1
    labels = torch.randn(count, phrases, label_masks, dimension, generator=generator) + 0.1
    numbers = torch.tensor(draw(st.lists(st.integers(1, phrases), min_size=count, max_size=count)))
    return inputs, labels, torch.arange(phrases)[None] < numbers[:, None]


CONFIGS = st.builds(
    SimilarityConfig,
    kind=st.sampled_from(KINDS),
    temperature=st.sampled_from([0.05, 0.5, 1.0, 4.0]),
    phrases=st.sampled_from(JOINS),
    masks=st.sampled_from(MASKS),
)


@given(st.data(), CONFIGS, st.booleans())
@settings(max_examples=120, deadline=None)
def test_scores_are_those_worked_by_hand(data: st.DataObject, config: SimilarityConfig, offset: bool) -> None:
    inputs, labels, present = data.draw(cases(same_masks=config.masks == "concat"))
    similarity = Similarity(config, offset=offset)
    moved = {"dot": 0.0, "cosine": 0.5}[config.kind] if offset else 0.0
    if offset:
        assert similarity.offset is not None
        assert similarity.offset.item() == moved
        with torch.no_grad():
            similarity.offset += 0.25
        moved += 0.25
    with torch.no_grad():
        scores = similarity(inputs, labels, present)
        repeated = similarity(inputs, labels.expand(len(inputs), *labels.shape), present)
    expected = by_hand(config, inputs, labels, present, moved)
    assert scores.shape == (len(inputs), len(labels))
    np.testing.assert_allclose(scores.numpy(), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(repeated.numpy(), scores.numpy(), rtol=1e-5, atol=1e-5)


def test_labels_that_hang_on_the_text_are_scored_with_their_own_text() -> None:
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(3, 2, 4, generator=generator)
    labels = torch.randn(3, 5, 2, 1, 4, generator=generator)
    present = torch.tensor([[True, True], [True, False], [True, True], [True, False], [True, True]])
    for kind in KINDS:
        config = SimilarityConfig(kind=kind, temperature=0.5)
        scores = Similarity(config)(inputs, labels, present)
        np.testing.assert_allclose(scores.numpy(), by_hand(config, inputs, labels, present), rtol=1e-5, atol=1e-5)


def test_phrases_that_are_not_there_do_not_count_whatever_stands_in_their_place() -> None:
    inputs = torch.randn(2, 1, 4)
    labels = torch.randn(3, 2, 1, 4)
    present = torch.tensor([[True, True], [True, False], [True, False]])
    other = labels.clone()
    other[~present] = 1e6
    for join in JOINS:
        similarity = Similarity(SimilarityConfig(kind="dot", temperature=1.0, phrases=join))
        assert torch.equal(similarity(inputs, labels, present), similarity(inputs, other, present))


def test_joins_of_phrases_worked_by_hand() -> None:
    scores = torch.tensor([[[1.0, 3.0], [2.0, 50.0]]])
    present = torch.tensor([[True, True], [True, False]])
    assert PHRASE_JOINS["mean"].torch(scores, present).tolist() == [[2.0, 2.0]]
    assert PHRASE_JOINS["max"].torch(scores, present).tolist() == [[3.0, 2.0]]
    soft = PHRASE_JOINS["logsumexp"].torch(scores, present)
    assert soft[0].tolist() == pytest.approx([math.log((math.e + math.e**3) / 2), 2.0])
    alike = PHRASE_JOINS["logsumexp"].torch(torch.full((1, 2, 3), 0.7), torch.ones(2, 3, dtype=torch.bool))
    assert alike[0].tolist() == pytest.approx([0.7, 0.7]), "a label gains nothing by saying the same thrice"


def test_a_learned_temperature_is_a_parameter_and_a_fixed_one_is_not() -> None:
    fixed = Similarity(SimilarityConfig(temperature=0.07))
    learned = Similarity(SimilarityConfig(temperature=0.07, learn_temperature=True))
    assert [name for name, _ in fixed.named_parameters()] == []
    assert "log_scale" in fixed.state_dict()
    assert [name for name, _ in learned.named_parameters()] == ["log_scale"]
    assert fixed.temperature == pytest.approx(0.07)
    learned(torch.ones(1, 1, 2), torch.ones(1, 1, 1, 2), torch.ones(1, 1, dtype=torch.bool)).sum().backward()
    assert learned.log_scale.grad is not None
    assert learned.log_scale.grad.item() == pytest.approx(1 / 0.07, rel=1e-4)
    with torch.no_grad():
        learned.log_scale += math.log(2)
    assert learned.temperature == pytest.approx(0.035)


def test_an_offset_is_learned() -> None:
    similarity = Similarity(SimilarityConfig(kind="cosine", temperature=0.1), offset=True)
    assert [name for name, _ in similarity.named_parameters()] == ["offset"]
    same = similarity(torch.ones(1, 1, 2), torch.ones(1, 1, 1, 2), torch.ones(1, 1, dtype=torch.bool))
    assert same.item() == pytest.approx((1 - 0.5) / 0.1)
    same.sum().backward()
    assert similarity.offset is not None
    assert similarity.offset.grad is not None
    assert similarity.offset.grad.item() == pytest.approx(-10.0)


def test_a_kind_alone_brings_its_usual_temperature() -> None:
    assert SimilarityConfig.of("dot") == SimilarityConfig(kind="dot", temperature=1.0)
    assert SimilarityConfig.of("cosine") == SimilarityConfig(kind="cosine", temperature=0.05)
    own = SimilarityConfig(kind="dot", temperature=3.0, learn_temperature=True, phrases="max")
    assert SimilarityConfig.of(own) is own


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "euclidean"}, "similarity is 'euclidean'; choose one of cosine, dot"),
        ({"kind": None}, "similarity is None"),
        ({"phrases": "median"}, "phrase_join is 'median'; choose one of mean, max, logsumexp"),
        ({"masks": "sum"}, "masks is 'sum'; choose one of mean, concat, late"),
        ({"temperature": 0}, "temperature is 0; it must be a number from 1e-06 to 1000000.0"),
        ({"temperature": -0.5}, "temperature is -0.5"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": float("inf")}, "temperature is inf"),
        ({"temperature": "warm"}, "temperature is 'warm'"),
        ({"temperature": None}, "temperature is None"),
    ],
)
def test_a_similarity_that_there_is_not_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(MaskMatchError) as caught:
        SimilarityConfig(**options)
    assert message in str(caught.value)


def test_a_kind_that_there_is_not_is_refused() -> None:
    with pytest.raises(MaskMatchError, match="similarity is 'l2'"):
        SimilarityConfig.of("l2")


class TestStandingOut:
    def test_it_hangs_neither_on_the_level_nor_on_the_scale(self) -> None:
        scores = np.array([[0.1, 0.2, 0.9, 0.15], [1.0, 0.0, 0.9, 0.1]])
        expected = by_lead(scores)
        for other in (scores + 5.0, scores * 0.01, scores * 20 - 3):
            np.testing.assert_allclose(by_lead(other), expected, atol=1e-3)
        assert (expected[0] >= 0.5).tolist() == [False, False, True, False]

    def test_equal_scores_say_that_none_stands_out(self) -> None:
        assert (by_lead(np.full((2, 5), 0.7)) < 0.5).all()

    def test_more_labels_ask_for_a_larger_lead(self) -> None:
        few, many = np.zeros((1, 3)), torch.randn(1, 200, generator=torch.Generator().manual_seed(0)).numpy()
        few[0, 0] = 1.0
        assert by_lead(few)[0, 0] > 0.5
        assert 0 < (by_lead(many) > 0.5).sum() < 6


def test_a_moved_offset_makes_a_score_the_first_that_applies() -> None:
    similarity = Similarity(SimilarityConfig(kind="cosine", temperature=0.05), offset=True)
    assert similarity.untrained
    vectors = torch.randn(4, 1, 8, generator=torch.Generator().manual_seed(0))
    labels, present = torch.randn(5, 1, 1, 8, generator=torch.Generator().manual_seed(1)), torch.ones(5, 1).bool()
    with torch.no_grad():
        before = similarity(vectors, labels, present)
        similarity.shift_offset(-3.0)
        after = similarity(vectors, labels, present)
        torch.testing.assert_close(after, before + 3.0, atol=1e-4, rtol=0)
        similarity.untrained = False
        scorer = label_scorer(similarity, labels, present)
        expected = after.sigmoid().numpy()
        np.testing.assert_allclose(scorer.probabilities(vectors.numpy()), expected, atol=1e-5)


def by_lead(scores: Any) -> Any:
    return lead_probability(
        scores, scores.mean(axis=1, keepdims=True), scores.std(axis=1, keepdims=True), scores.shape[1]
    )


def label_scorer(similarity: Similarity, labels: torch.Tensor, present: torch.Tensor) -> LabelScorer:
    offset = None if similarity.offset is None else similarity.offset.item()
    return LabelScorer.of(
        labels[present].numpy(),
        LabelLayout(present.sum(dim=1).numpy()),
        similarity.config,
        scale=1 / similarity.temperature,
        offset=offset,
        untrained=similarity.untrained,
    )


@given(
    config=CONFIGS,
    offset=st.booleans(),
    shape=st.tuples(*[st.integers(1, 4)] * 4),
    seed=st.integers(0, 1000),
    products=st.sampled_from([1, 5, scorer_module.LATE_PRODUCTS]),
)
@settings(deadline=None)
def test_prediction_scores_as_training_does(
    config: SimilarityConfig, offset: bool, shape: tuple[int, int, int, int], seed: int, products: int
) -> None:
    texts, labels, most, masks = shape
    random = torch.Generator().manual_seed(seed)
    config = replace(config, temperature=max(0.3, config.temperature))  # where rounding shows less
    similarity = Similarity(config, offset=offset)
    inputs = torch.randn(texts, masks, 5, generator=random)
    vectors = torch.randn(labels, most, masks, 5, generator=random)
    present = torch.arange(most)[None] < torch.randint(1, most + 1, (labels, 1), generator=random)
    with torch.no_grad():
        expected = similarity(inputs, vectors, present)
    scorer = label_scorer(similarity, vectors, present)
    with patch.object(scorer_module, "LATE_PRODUCTS", products):  # late interaction works through blocks of labels
        np.testing.assert_allclose(scorer.scores(inputs.numpy()), expected.numpy(), atol=1e-4, rtol=1e-4)
    of_each = vectors[present].expand(texts, *vectors[present].shape).numpy()  # (n, F, masks, dim)
    how = {"scale": scorer.scale, "offset": scorer.offset}
    in_context = LabelScorer.in_context_of(scorer.layout, config, **how).for_texts(of_each)
    np.testing.assert_allclose(in_context.scores(inputs.numpy()), expected.numpy(), atol=1e-4, rtol=1e-4)
    found = ExactSearch(in_context)(inputs.numpy(), labels)
    np.testing.assert_allclose(found.scores, np.sort(expected.numpy(), axis=1)[:, ::-1], atol=1e-4, rtol=1e-4)
    if not offset:
        np.testing.assert_allclose(scorer.probabilities(inputs.numpy()), expected.softmax(1).numpy(), atol=1e-4)
