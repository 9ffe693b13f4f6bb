"""Search over labels: exact in blocks, approximate by an index, and probabilities that are right or nearly so."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch import ExportedMatcher, MaskMatcher, MaskMatchError, export
from maskmatch.config.matcher import MatcherConfig
from maskmatch.config.settings import declared
from maskmatch.config.similarity import SIMILARITIES, SimilarityConfig
from maskmatch.labels.layout import LabelLayout
from maskmatch.prediction import pipeline as prediction
from maskmatch.prediction import search
from maskmatch.prediction.index import LabelIndex, index_available
from maskmatch.prediction.label_scorer import LabelScorer
from maskmatch.prediction.search import ApproximateSearch, ExactSearch, best_places, make_search, probabilities
from maskmatch.storage.export.folder import INDEX_FILE
from toy_data import LABELS, TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

needs_index = pytest.mark.skipif(not index_available(), reason="faiss is not installed")
MANY = [*LABELS, *(f"label {number}" for number in range(40))]


def random_vectors(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def label_scorer(
    config: SimilarityConfig, counts: list[int], seed: int = 0, offset: float | None = None
) -> LabelScorer:
    """Random label vectors, with so many phrases each."""
    layout = LabelLayout(np.array(counts))
    untrained = offset == SIMILARITIES[config.kind].offset
    vectors = random_vectors(layout.size, 2, 8, seed=seed)
    return LabelScorer.of(vectors, layout, config, scale=1 / config.temperature, offset=offset, untrained=untrained)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_exact_search_is_the_best_of_all_scores(data: st.DataObject) -> None:
    config = SimilarityConfig(
        kind=data.draw(st.sampled_from(["cosine", "dot"])),
        temperature=0.3,
        phrases=data.draw(st.sampled_from(["mean", "max", "logsumexp"])),
    )
    counts = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=25))
    kept = label_scorer(
        config, counts, offset=data.draw(st.sampled_from([None, SIMILARITIES[config.kind].offset, 0.7]))
    )
    inputs = random_vectors(data.draw(st.integers(1, 4)), 3, 8, seed=1)
    scores = kept.scores(inputs)
    k = data.draw(st.integers(1, len(counts)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "BLOCK", data.draw(st.integers(1, 400)))
        found = ExactSearch(kept)(inputs, k)
    best = -np.sort(-scores, axis=1)[:, :k]
    np.testing.assert_allclose(found.scores, best, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(np.take_along_axis(scores, found.places, axis=1), best, rtol=1e-4, atol=1e-4)
    expected = np.take_along_axis(kept.probabilities(inputs), found.places, axis=1)
    np.testing.assert_allclose(probabilities(kept, found), expected, rtol=1e-2, atol=1e-3)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3), st.integers(1, 9), st.integers(1, 3000), st.integers(2, 40), st.integers(0, 99))
def test_the_best_of_many_are_those_of_a_sort(rows: int, k: int, width: int, values: int, seed: int) -> None:
    drawn = np.random.default_rng(seed).integers(values, size=(rows, width)).astype(np.float32)  # many are equal
    found = best_places(drawn, k)
    assert found.shape == (rows, min(k, width))
    assert all(len(set(row)) == len(row) for row in found.tolist())
    np.testing.assert_array_equal(np.take_along_axis(drawn, found, axis=1), -np.sort(-drawn, axis=1)[:, :k])


@pytest.mark.parametrize("search_kind", ["exact", pytest.param("approximate", marks=needs_index)])
def test_texts_of_several_batches_keep_their_answers(
    tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, search_kind: Any
) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), MANY, search=search_kind)
    texts = [f"where is my {word}" * (1 + place % 4) for place, word in enumerate(["card", "refund", "rate"] * 4)]
    expected = matcher.predict_proba(texts)
    together = []
    for kind in (ExactSearch, ApproximateSearch):
        call = kind.__call__

        def watched(self: Any, inputs: Any, k: int, call: Any = call) -> Any:
            together.append(len(inputs))
            return call(self, inputs, k)

        monkeypatch.setattr(kind, "__call__", watched)
    monkeypatch.setattr(prediction, "SEARCHED_TOGETHER", 5)
    best = matcher.top_k(texts, 2, batch_size=2)
    assert matcher.labels is not None
    for row, pairs in zip(expected, best, strict=True):
        assert row[[matcher.labels.position(name) for name, _ in pairs]].tolist() == pytest.approx(
            (-np.sort(-row))[:2].tolist(), rel=1e-3
        )
    assert sum(together) == len(texts)
    assert max(together) in (5, 6)


def test_exact_search_holds_no_score_for_every_text_and_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "BLOCK", 1000)
    kept = label_scorer(SimilarityConfig(), [1] * 3000)
    largest = 0
    block = LabelScorer.block

    def watched(self: LabelScorer, rows: Any, start: int, stop: int) -> Any:
        nonlocal largest
        scores = block(self, rows, start, stop)
        largest = max(largest, scores.size)
        return scores

    monkeypatch.setattr(LabelScorer, "block", watched)
    ExactSearch(kept)(random_vectors(7, 1, 8), 5)
    assert 0 < largest <= 1000


@pytest.mark.parametrize("gathered", [1, 40, 1 << 23])
def test_labels_of_their_own_score_as_among_all(gathered: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["maskmatch.prediction.label_scorer"], "GATHERED", gathered)
    kept = label_scorer(SimilarityConfig(phrases="logsumexp"), [1, 3, 2, 1, 2])
    inputs, labels = random_vectors(4, 1, 8, seed=1), np.array([[0, 4], [1, 1], [3, 2], [2, 0]])
    expected = np.take_along_axis(kept.scores(inputs), labels, axis=1)
    np.testing.assert_allclose(kept.candidate_scores(kept.prepare(inputs), labels), expected, rtol=1e-4, atol=1e-4)
    some = np.array([4, 1])
    np.testing.assert_allclose(kept.select(some).scores(inputs), kept.scores(inputs)[:, some], rtol=1e-4, atol=1e-4)


@needs_index
class TestIndex:
    @pytest.mark.parametrize("kind", ["cosine", "dot"])
    @pytest.mark.parametrize("phrases", [1, 2])
    def test_it_finds_what_exact_search_finds_and_says_how_often(self, kind: Any, phrases: int) -> None:
        config = SimilarityConfig(kind=kind, temperature=0.2, phrases="max")
        counts = [1 + label % phrases for label in range(5000)]
        kept = label_scorer(config, counts)
        approximate, exact = ApproximateSearch.built(kept, random_vectors(200, 1, 8, seed=3)), ExactSearch(kept)
        inputs = random_vectors(300, 1, 8, seed=4)
        ours, theirs = approximate(inputs, 3), exact(inputs, 3)
        recall = (ours.places[:, 0] == theirs.places[:, 0]).mean()
        assert approximate.report.kind == "approximate"
        assert approximate.report.queries == 200
        assert approximate.report.recall >= 0.99
        assert recall == pytest.approx(approximate.report.recall, abs=0.03)
        same = ours.places[:, 0] == theirs.places[:, 0]
        np.testing.assert_allclose(ours.scores[same, 0], theirs.scores[same, 0], rtol=1e-4, atol=1e-4)
        assert all(len(set(row)) == 3 for row in ours.places.tolist())  # a label once, whatever phrases it has

    @pytest.mark.parametrize("temperature", [0.05, 0.2, 1.0])
    def test_probabilities_are_shares_of_all_labels_not_of_the_candidates(self, temperature: float) -> None:
        kept = label_scorer(SimilarityConfig(temperature=temperature), [1] * 20000)
        inputs = random_vectors(100, 1, 8, seed=4)
        approximate = ApproximateSearch.built(kept, inputs)
        ours, theirs = approximate(inputs, 1), ExactSearch(kept)(inputs, 1)
        error = np.abs(np.expm1(ours.normaliser - theirs.normaliser)).mean()
        assert error < 0.15
        assert approximate.report.probability_error == pytest.approx(error, abs=0.05)

    def test_where_a_lead_is_asked_for_the_sample_tells_the_mean_and_the_spread(self) -> None:
        config = SimilarityConfig(temperature=0.05)
        kept = label_scorer(config, [1] * 20000, offset=SIMILARITIES[config.kind].offset)
        inputs = random_vectors(100, 1, 8, seed=4)
        ours, theirs = ApproximateSearch.built(kept, inputs)(inputs, 1), ExactSearch(kept)(inputs, 1)
        assert theirs.mean is not None
        assert ours.mean is not None
        np.testing.assert_allclose(ours.mean, theirs.mean, rtol=0.1, atol=2)
        np.testing.assert_allclose(ours.spread, theirs.spread, rtol=0.1, atol=0.0)

    def test_where_so_many_are_asked_for_the_answer_is_exact(self) -> None:
        kept, inputs = label_scorer(SimilarityConfig(), [1] * 300), random_vectors(5, 1, 8)
        ours, theirs = ApproximateSearch.built(kept, inputs)(inputs, 300), ExactSearch(kept)(inputs, 300)
        assert (ours.places == theirs.places).all()

    def test_where_all_labels_are_candidates_probabilities_are_exact(self) -> None:
        kept, inputs = label_scorer(SimilarityConfig(), [1] * 40), random_vectors(5, 1, 8)
        approximate = ApproximateSearch.built(kept, inputs)
        ours, theirs = approximate(inputs, 2), ExactSearch(kept)(inputs, 2)
        np.testing.assert_allclose(probabilities(kept, ours), probabilities(kept, theirs), rtol=1e-3)
        assert approximate.report.probability_error < 1e-3

    def test_where_the_cells_hold_too_few_candidates_all_labels_are_compared(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kept, inputs = label_scorer(SimilarityConfig(), [1] * 300), random_vectors(5, 1, 8)
        approximate = ApproximateSearch.built(kept, inputs)
        monkeypatch.setattr(LabelIndex, "nearest", lambda _, rows, count: np.full((len(rows), count), -1))
        assert (approximate(inputs, 3).places == ExactSearch(kept)(inputs, 3).places).all()

    def test_the_same_labels_make_the_same_index(self) -> None:
        vectors, inputs = random_vectors(3000, 8), random_vectors(20, 8, seed=1)
        one, other = (LabelIndex.of(vectors, unit_norm=False).nearest(inputs, 10) for _ in range(2))
        assert (one == other).all()

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

    def test_an_export_searches_like_its_classifier(self, tiny: Callable[[str], Path], tmp_path: Path) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), MANY, search="approximate")
        export(matcher, tmp_path / "export")
        loaded = ExportedMatcher.from_pretrained(tmp_path / "export")
        assert loaded.search_.kind == "approximate"
        assert loaded.search_ is loaded.search_  # built once
        exact = ExportedMatcher.from_pretrained(tmp_path / "export", search="exact")
        assert exact.search_.kind == "exact"
        for ours, theirs in zip(loaded.top_k(TEXTS, 2), exact.top_k(TEXTS, 2), strict=True):
            assert ours[0][1] == pytest.approx(theirs[0][1], rel=1e-3)
        with pytest.raises(MaskMatchError, match="search is 'fast'"):
            ExportedMatcher.from_pretrained(tmp_path / "export", search="fast")  # type: ignore[arg-type]

    @pytest.mark.parametrize("unit_norm", [True, False])
    def test_an_index_that_was_written_finds_the_same(self, tmp_path: Path, unit_norm: bool) -> None:
        vectors, inputs = random_vectors(5000, 8), random_vectors(50, 8, seed=1)
        if unit_norm:
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        built = LabelIndex.of(vectors, unit_norm=unit_norm)
        assert built.probe_more()
        built.write(tmp_path / "index")
        read = LabelIndex.read(tmp_path / "index", vectors)
        assert (read.nearest(inputs, 20) == built.nearest(inputs, 20)).all()
        assert (read.nearest(inputs, 20) != LabelIndex.of(vectors, unit_norm).nearest(inputs, 20)).any()
        other = random_vectors(5000, 8, seed=2)
        with pytest.raises(MaskMatchError, match="not an index of these labels"):
            LabelIndex.read(tmp_path / "index", other)

    def test_an_export_with_an_index_uses_it_however_few_texts(
        self, tiny: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(search, "MAX_EXACT", len(MANY) - 1)
        export(MaskMatcher.from_pretrained(tiny("bert"), MANY), tmp_path / "export")
        loaded = ExportedMatcher.from_pretrained(tmp_path / "export")
        assert loaded.config.search == "auto"
        asked: list[int] = []
        usual = LabelIndex.nearest

        def nearest(index: LabelIndex, rows: Any, count: int) -> Any:
            asked.append(len(rows))
            return usual(index, rows, count)

        monkeypatch.setattr(LabelIndex, "nearest", nearest)
        loaded.predict(TEXTS[:1])
        assert asked == [1]

    def test_without_faiss_an_export_compares_with_all_labels_and_says_so(
        self,
        tiny: Callable[[str], Path],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        monkeypatch.setattr(search, "MAX_EXACT", len(MANY) - 1)
        export(MaskMatcher.from_pretrained(tiny("bert"), MANY), tmp_path / "export")
        for room in ("storage.export.folder", "prediction.search"):
            monkeypatch.setattr(f"maskmatch.{room}.index_available", lambda: False)
        loaded = ExportedMatcher.from_pretrained(tmp_path / "export")
        assert "faiss is not installed" in caplog.text
        assert loaded.search_.kind == "exact"
        assert len(loaded.predict(TEXTS)) == len(TEXTS)

    def test_an_export_keeps_the_index(
        self, tiny: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), MANY, search="approximate")
        export(matcher, tmp_path / "export")
        monkeypatch.setattr(LabelIndex, "of", lambda *_, **__: pytest.fail("it is not built again"))
        loaded = ExportedMatcher.from_pretrained(tmp_path / "export")
        assert loaded.search_ == matcher.search_
        for [(_, ours)], [(_, theirs)] in zip(loaded.top_k(TEXTS, 1), matcher.top_k(TEXTS, 1), strict=True):
            assert ours == pytest.approx(theirs, rel=1e-3)

    def test_an_index_that_is_damaged_missing_or_another_is_a_sentence(
        self, tiny: Callable[[str], Path], tmp_path: Path
    ) -> None:
        folder, other = tmp_path / "export", tmp_path / "other"
        export(MaskMatcher.from_pretrained(tiny("bert"), MANY, search="approximate"), folder)
        export(MaskMatcher.from_pretrained(tiny("bert"), MANY[:-1], search="approximate"), other)
        (folder / INDEX_FILE).write_bytes((other / INDEX_FILE).read_bytes())
        with pytest.raises(MaskMatchError, match=f"{INDEX_FILE} is damaged, or was changed"):
            ExportedMatcher.from_pretrained(folder)
        with pytest.raises(MaskMatchError, match="not an index of these labels"):
            ExportedMatcher.from_pretrained(folder, verify=False)
        (folder / INDEX_FILE).write_bytes(b"nothing")
        with pytest.raises(MaskMatchError, match="damaged"):
            ExportedMatcher.from_pretrained(folder)
        assert ExportedMatcher.from_pretrained(folder, search="exact").predict(TEXTS)
        (folder / INDEX_FILE).unlink()
        with pytest.raises(MaskMatchError, match=f"{INDEX_FILE} is missing"):
            ExportedMatcher.from_pretrained(folder)

    def test_an_export_with_few_labels_leaves_no_index_of_before(
        self, tiny: Callable[[str], Path], tmp_path: Path
    ) -> None:
        export(MaskMatcher.from_pretrained(tiny("bert"), MANY, search="approximate"), tmp_path / "export")
        export(MaskMatcher.from_pretrained(tiny("bert"), LABELS), tmp_path / "export")
        assert not (tmp_path / "export" / INDEX_FILE).exists()
        assert ExportedMatcher.from_pretrained(tmp_path / "export").search_.kind == "exact"

    def test_it_is_taken_from_many_labels_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        kept = label_scorer(SimilarityConfig(), [1] * 500)
        assert make_search(kept, "auto", lambda: pytest.fail("no index is measured")).report.kind == "exact"
        monkeypatch.setattr(search, "MAX_EXACT", 499)
        assert make_search(kept, "auto", lambda: random_vectors(4, 1, 8)).report.kind == "approximate"
        monkeypatch.setattr(search, "index_available", lambda: False)
        assert make_search(kept, "auto", lambda: random_vectors(4, 1, 8)).report.kind == "exact"


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

    def test_what_was_made_for_the_labels_is_kept_between_calls(self, tiny: Callable[[str], Path]) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        matcher.predict(TEXTS)
        before = matcher.pipeline
        matcher.top_k(TEXTS, 2)
        assert matcher.pipeline is before
        matcher.add_labels(["another"])
        assert matcher.pipeline is not before

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
        with pytest.raises(MaskMatchError, match="search is 'fast'; choose one of auto, exact, approximate"):
            MaskMatcher.from_pretrained(tiny("bert"), MANY, search="fast")  # type: ignore[arg-type]

    def test_without_faiss_it_says_what_to_install(
        self, tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("maskmatch.prediction.index.find_spec", lambda _: None)
        matcher = MaskMatcher.from_pretrained(tiny("bert"), MANY, search="approximate")
        with pytest.raises(MaskMatchError, match=r"maskmatch\[index\]"):
            matcher.predict(TEXTS)


def test_the_setting_says_where_auto_changes_over() -> None:
    help_text = next(each.setting.help for each in declared(MatcherConfig) if each.name == "search")
    assert f"{search.MAX_EXACT:,}" in help_text
