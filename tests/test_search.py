"""Search over labels: exact in blocks, approximate by an index, and probabilities that are right or nearly so."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch import MaskMatcher, MaskMatchError, search
from maskmatch.label_index import LabelIndex, index_available
from maskmatch.search import ApproximateSearch, ExactSearch, LabelRows, make_search, probabilities
from maskmatch.similarity import Similarity, SimilarityConfig
from toy_data import LABELS, TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

needs_index = pytest.mark.skipif(not index_available(), reason="faiss is not installed")
MANY = [*LABELS, *(f"label {number}" for number in range(40))]


def label_rows(config: SimilarityConfig, counts: list[int], seed: int = 0, offset: bool = False) -> Any:
    """A similarity, label vectors in several phrases and which are there."""
    generator = torch.Generator().manual_seed(seed)
    present = torch.arange(max(counts))[None] < torch.tensor(counts)[:, None]
    vectors = torch.randn(len(counts), max(counts), 2, 8, generator=generator)
    return Similarity(config, offset), vectors, present


@settings(max_examples=60, deadline=None)
@given(st.data())
@torch.no_grad()
def test_exact_search_is_the_best_of_all_scores(data: st.DataObject) -> None:
    config = SimilarityConfig(
        kind=data.draw(st.sampled_from(["cosine", "dot"])),
        temperature=0.3,
        phrases=data.draw(st.sampled_from(["mean", "max", "logsumexp"])),
    )
    counts = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=25))
    several = data.draw(st.booleans())
    similarity, vectors, present = label_rows(config, counts, offset=several)
    inputs = torch.randn(data.draw(st.integers(1, 4)), 3, 8, generator=torch.Generator().manual_seed(1))
    scores = similarity(inputs, vectors, present)
    k = data.draw(st.integers(1, len(counts)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "BLOCK", data.draw(st.integers(1, 400)))
        found = ExactSearch(LabelRows.of(similarity, vectors, present))(inputs, k)
    best = scores.topk(k, dim=1)
    torch.testing.assert_close(found.scores, best.values, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(scores.gather(1, found.places), best.values, rtol=1e-4, atol=1e-4)
    expected = (similarity.applies(scores) if several else scores.softmax(dim=1)).gather(1, found.places)
    torch.testing.assert_close(probabilities(similarity, found, len(counts), several), expected, rtol=1e-2, atol=1e-3)


def test_exact_search_holds_no_score_for_every_text_and_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "BLOCK", 1000)
    similarity, vectors, present = label_rows(SimilarityConfig(), [1] * 3000)
    largest = 0
    rows = LabelRows.of(similarity, vectors, present)
    block = LabelRows.block

    def watched(self: LabelRows, inputs: torch.Tensor, start: int, stop: int) -> torch.Tensor:
        nonlocal largest
        scores = block(self, inputs, start, stop)
        largest = max(largest, scores.numel())
        return scores

    monkeypatch.setattr(LabelRows, "block", watched)
    ExactSearch(rows)(torch.randn(7, 1, 8), 5)
    assert 0 < largest <= 1000


@needs_index
class TestIndex:
    @pytest.mark.parametrize("kind", ["cosine", "dot"])
    @pytest.mark.parametrize("phrases", [1, 2])
    @torch.no_grad()
    def test_it_finds_what_exact_search_finds_and_says_how_often(self, kind: Any, phrases: int) -> None:
        config = SimilarityConfig(kind=kind, temperature=0.2, phrases="max")
        counts = [1 + label % phrases for label in range(5000)]
        similarity, vectors, present = label_rows(config, counts)
        rows = LabelRows.of(similarity, vectors, present)
        queries = torch.randn(200, 1, 8, generator=torch.Generator().manual_seed(3))
        approximate, exact = ApproximateSearch(rows, queries), ExactSearch(rows)
        inputs = torch.randn(300, 1, 8, generator=torch.Generator().manual_seed(4))
        ours, theirs = approximate(inputs, 3), exact(inputs, 3)
        recall = (ours.places[:, 0] == theirs.places[:, 0]).float().mean().item()
        assert approximate.report.kind == "approximate"
        assert approximate.report.queries == 200
        assert approximate.report.recall >= 0.99
        assert recall == pytest.approx(approximate.report.recall, abs=0.03)
        same = ours.places[:, 0] == theirs.places[:, 0]
        torch.testing.assert_close(ours.scores[same, 0], theirs.scores[same, 0], rtol=1e-4, atol=1e-4)
        assert all(len(set(row)) == 3 for row in ours.places.tolist())  # a label once, whatever phrases it has

    @pytest.mark.parametrize("temperature", [0.05, 0.2, 1.0])
    @torch.no_grad()
    def test_probabilities_are_shares_of_all_labels_not_of_the_candidates(self, temperature: float) -> None:
        similarity, vectors, present = label_rows(SimilarityConfig(temperature=temperature), [1] * 20000)
        rows = LabelRows.of(similarity, vectors, present)
        inputs = torch.randn(100, 1, 8, generator=torch.Generator().manual_seed(4))
        approximate = ApproximateSearch(rows, inputs)
        ours, theirs = approximate(inputs, 1), ExactSearch(rows)(inputs, 1)
        error = (ours.normaliser - theirs.normaliser).expm1().abs().mean().item()
        assert error < 0.15
        assert approximate.report.probability_error == pytest.approx(error, abs=0.05)
        torch.testing.assert_close(ours.mean, theirs.mean, rtol=0.1, atol=0.1 / temperature)
        torch.testing.assert_close(ours.spread, theirs.spread, rtol=0.1, atol=0.0)

    @torch.no_grad()
    def test_where_so_many_are_asked_for_the_answer_is_exact(self) -> None:
        similarity, vectors, present = label_rows(SimilarityConfig(), [1] * 300)
        rows = LabelRows.of(similarity, vectors, present)
        inputs = torch.randn(5, 1, 8)
        ours, theirs = ApproximateSearch(rows, inputs)(inputs, 300), ExactSearch(rows)(inputs, 300)
        assert torch.equal(ours.places, theirs.places)

    @torch.no_grad()
    def test_the_same_labels_make_the_same_index(self) -> None:
        vectors, inputs = torch.randn(3000, 8), torch.randn(20, 8)
        one, other = (LabelIndex(vectors, of_one_length=False).nearest(inputs, 10) for _ in range(2))
        assert torch.equal(one, other)

    def test_a_classifier_searches_as_it_is_told(self, tiny: Callable[[str], Path], tmp_path: Path) -> None:
        exact = MaskMatcher.from_pretrained(tiny("bert"), MANY, search="exact")
        approximate = MaskMatcher.from_pretrained(tiny("bert"), MANY, search="approximate")
        assert exact.search_.kind == "exact"
        report = approximate.search_
        assert (report.kind, report.labels) == ("approximate", len(MANY))
        assert report.recall > 0.9
        assert approximate.search_ is report  # built once
        assert [row[0][0] for row in approximate.top_k(TEXTS, 2)] == exact.predict(TEXTS)
        np.testing.assert_allclose(approximate.predict_proba(TEXTS), exact.predict_proba(TEXTS), atol=1e-6)
        approximate.add_labels(["another"])
        assert approximate.search_.labels == len(MANY) + 1
        loaded = MaskMatcher.from_pretrained(approximate.save_pretrained(tmp_path / "model"))
        assert loaded.config.search == "approximate"
        assert MaskMatcher.from_pretrained(tmp_path / "model", search="exact").search_.kind == "exact"

    def test_it_is_taken_from_many_labels_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        similarity, vectors, present = label_rows(SimilarityConfig(), [1] * 500)
        rows = LabelRows.of(similarity, vectors, present)
        assert make_search(rows, "auto", lambda: pytest.fail("no index is measured")).report.kind == "exact"
        monkeypatch.setattr(search, "MOST_SEARCHED_EXACTLY", 499)
        assert make_search(rows, "auto", lambda: torch.randn(4, 1, 8)).report.kind == "approximate"
        monkeypatch.setattr(search, "index_available", lambda: False)
        assert make_search(rows, "auto", lambda: torch.randn(4, 1, 8)).report.kind == "exact"


class TestClassifier:
    def test_search_follows_the_weights_and_the_labels(self, tiny: Callable[[str], Path]) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        matcher.top_k(TEXTS, 1)
        with torch.no_grad():
            for parameter in matcher.encoder.model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
        for _ in range(2):
            best = matcher.predict_proba(TEXTS).max(axis=1)
            np.testing.assert_allclose([pairs[0][1] for pairs in matcher.top_k(TEXTS, 1)], best, rtol=1e-4)
            matcher.rename_label("refund", "money back").rename_label("money back", "refund")

    @pytest.mark.parametrize("threshold", [0.0, 0.05, 0.5, 0.99, 1.0])
    def test_labels_above_a_threshold_are_found_however_many(
        self, tiny: Callable[[str], Path], threshold: float
    ) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), MANY, multi_label=True)
        matrix = matcher.predict_proba(TEXTS)
        for row, chosen in zip(matrix, matcher.predict(TEXTS, threshold=threshold), strict=True):
            clear = {MANY[place] for place in np.flatnonzero(row > threshold + 1e-4)}
            perhaps = {MANY[place] for place in np.flatnonzero(row > threshold - 1e-4)}
            assert clear <= set(chosen) <= perhaps
            assert len(set(chosen)) == len(chosen)

    def test_an_unknown_search_is_a_sentence(self, tiny: Callable[[str], Path]) -> None:
        with pytest.raises(MaskMatchError, match="no search 'fast'; choose one of auto, exact, approximate"):
            MaskMatcher.from_pretrained(tiny("bert"), MANY, search="fast")  # type: ignore[arg-type]

    def test_without_faiss_it_says_what_to_install(
        self, tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("maskmatch.label_index.find_spec", lambda _: None)
        matcher = MaskMatcher.from_pretrained(tiny("bert"), MANY, search="approximate")
        with pytest.raises(MaskMatchError, match=r"maskmatch\[index\]"):
            matcher.predict(TEXTS)


def test_the_guide_names_the_switch() -> None:
    assert f"{search.MOST_SEARCHED_EXACTLY:,}" in (MaskMatcher.from_pretrained.__doc__ or "")
    assert math.log2(search.BLOCK).is_integer()
