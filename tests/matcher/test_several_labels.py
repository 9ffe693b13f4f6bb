"""Several labels a text: training, the threshold, and what is said without training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from maskmatch import MaskMatcher, MaskMatchError
from maskmatch.config.methods import ANY_TEXT_METHODS
from maskmatch.evaluation import best_threshold, multi_label_micro_f1
from toy_data import LABELS, TEXTS, TRUTH

Tiny = Callable[..., Path]

SHORT = {"learning_rate": 1e-2, "batch_size": 4, "epochs": 4}  # 12 steps
SEVERAL = [
    ["refund"],
    ["refund", "exchange rate"],
    [],
    ["card lost"],
    ["card lost", "refund"],
    ["exchange rate"],
]
SEVERAL_TEXTS = [
    "refund the parcel please",
    "refund me at this exchange rate",
    "it was wrapped in a newspaper",
    "the card is lost",
    "the card is lost, refund it",
    "exchange money at this rate",
]


class TestSeveralLabels:
    @pytest.fixture
    def trained(self, tiny: Tiny) -> MaskMatcher:
        matcher = MaskMatcher.from_pretrained(tiny("bert"))
        return matcher.fit(
            SEVERAL_TEXTS, SEVERAL, dev=(SEVERAL_TEXTS, SEVERAL), epochs=60, learning_rate=1e-2, batch_size=6
        )

    def test_lists_of_labels_make_it_so(self, trained: MaskMatcher) -> None:
        assert trained.config.multi_label
        assert list(trained.labels or ()) == sorted(LABELS)
        found = trained.predict(SEVERAL_TEXTS)
        assert all(isinstance(labels, list) for labels in found)
        report = trained.evaluate(SEVERAL_TEXTS, SEVERAL)
        assert report.multi_label
        assert report.micro_f1 > 0.9
        assert report.threshold == trained.config.threshold

    def test_the_threshold_is_tuned_on_dev_and_decides(self, trained: MaskMatcher) -> None:
        assert trained.training_ is not None
        assert trained.training_.dev is not None
        threshold = trained.config.threshold
        assert threshold == trained.training_.dev["threshold"]
        assert trained.evaluate(SEVERAL_TEXTS, SEVERAL).micro_f1 == pytest.approx(trained.training_.dev["micro_f1"])
        probabilities = trained.predict_proba(SEVERAL_TEXTS)
        assert trained.labels is not None
        for labels, row in zip(trained.predict(SEVERAL_TEXTS), probabilities, strict=True):
            above = [place for place in np.argsort(-row) if row[place] >= threshold]
            assert labels == [trained.labels[int(place)] for place in above]

    def test_a_text_may_have_no_label_at_all(self, trained: MaskMatcher) -> None:
        assert trained.predict(SEVERAL_TEXTS, threshold=1.0) == [[]] * len(SEVERAL_TEXTS)
        assert trained.predict(SEVERAL_TEXTS)[2] == []

    def test_a_saved_one_is_the_same(self, trained: MaskMatcher, tmp_path: Path) -> None:
        loaded = MaskMatcher.from_pretrained(trained.save_pretrained(tmp_path / "model"))
        assert loaded.config.multi_label
        assert loaded.config.threshold == trained.config.threshold
        assert loaded.predict(SEVERAL_TEXTS) == trained.predict(SEVERAL_TEXTS)
        np.testing.assert_allclose(loaded.predict_proba(SEVERAL_TEXTS), trained.predict_proba(SEVERAL_TEXTS), atol=1e-6)

    def test_single_labels_do_when_several_were_asked_for(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), multi_label=True)
        matcher.fit(TEXTS, TRUTH, **SHORT)
        assert all(isinstance(labels, list) for labels in matcher.predict(TEXTS))

    def test_mixed_rows_and_a_late_change_are_refused(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"))
        with pytest.raises(MaskMatchError, match="1 of 2 rows"):
            matcher.fit(["a", "b"], [["x"], "y"])
        matcher.fit(TEXTS, TRUTH, **SHORT)
        with pytest.raises(MaskMatchError, match="one label per text"):
            matcher.fit(SEVERAL_TEXTS, SEVERAL)

    @pytest.mark.parametrize("method", ANY_TEXT_METHODS)
    def test_every_method_takes_several_labels(self, tiny: Tiny, tmp_path: Path, method: str) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), method=method)
        matcher.fit(SEVERAL_TEXTS, SEVERAL, epochs=2)
        loaded = MaskMatcher.from_pretrained(matcher.save_pretrained(tmp_path / "model"))
        assert loaded.predict(SEVERAL_TEXTS) == matcher.predict(SEVERAL_TEXTS)


class TestThreshold:
    @pytest.fixture
    def trained(self, tiny: Tiny) -> MaskMatcher:
        return MaskMatcher.from_pretrained(tiny("bert")).fit(SEVERAL_TEXTS, SEVERAL, **SHORT)

    def test_predict_takes_one(self, trained: MaskMatcher) -> None:
        counts = [sum(map(len, trained.predict(SEVERAL_TEXTS, threshold=value))) for value in (0, 0.3, 0.7, 1)]
        assert counts == sorted(counts, reverse=True)
        assert counts[0] == 18
        assert counts[-1] == 0
        assert trained.predict(SEVERAL_TEXTS, threshold=0.5) == trained.predict(SEVERAL_TEXTS)
        probabilities = trained.predict_proba(SEVERAL_TEXTS)
        value = float(np.median(probabilities))
        for labels, row in zip(trained.predict(SEVERAL_TEXTS, threshold=value), probabilities, strict=True):
            assert len(labels) == (row >= value).sum()

    def test_it_is_set_when_loading_and_saved(self, trained: MaskMatcher, tmp_path: Path) -> None:
        folder = trained.save_pretrained(tmp_path / "model")
        assert MaskMatcher.from_pretrained(folder).config.threshold == 0.5
        strict = MaskMatcher.from_pretrained(folder, threshold=0.9)
        assert strict.predict(SEVERAL_TEXTS) == trained.predict(SEVERAL_TEXTS, threshold=0.9)
        np.testing.assert_array_equal(strict.predict_proba(SEVERAL_TEXTS), trained.predict_proba(SEVERAL_TEXTS))
        assert strict.evaluate(SEVERAL_TEXTS, SEVERAL).threshold == 0.9
        again = MaskMatcher.from_pretrained(strict.save_pretrained(tmp_path / "again"))
        assert again.config.threshold == 0.9

    def test_a_new_classifier_takes_one(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, multi_label=True, threshold=0.0)
        assert [len(labels) for labels in matcher.predict(TEXTS)] == [3] * len(TEXTS)

    @pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), "0.5", True])
    def test_it_has_to_be_a_probability(self, tiny: Tiny, trained: MaskMatcher, value: object) -> None:
        with pytest.raises(MaskMatchError, match="a number from 0 to 1"):
            trained.predict(SEVERAL_TEXTS, threshold=value)  # type: ignore[arg-type]
        with pytest.raises(MaskMatchError, match="a number from 0 to 1"):
            MaskMatcher.from_pretrained(tiny("bert"), multi_label=True, threshold=value)  # type: ignore[arg-type]

    def test_a_classifier_of_one_label_a_text_has_none(self, tiny: Tiny) -> None:
        with pytest.raises(MaskMatchError, match="threshold needs several labels"):
            MaskMatcher.from_pretrained(tiny("bert"), LABELS, threshold=0.3)
        with pytest.raises(MaskMatchError, match="threshold needs several labels"):
            MaskMatcher.from_pretrained(tiny("bert"), LABELS).predict(TEXTS, threshold=0.3)


class TestWithoutTraining:
    """An encoder's similarities have a level of their own, which must not decide how many labels apply."""

    @pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
    @pytest.mark.parametrize("method", ["mask-matching", "semantic-matching"])
    def test_some_labels_apply_and_not_all(self, tiny: Tiny, family: str, method: str) -> None:
        names = [*LABELS, "parcel", "money", "question", "station", "newspaper"]
        matcher = MaskMatcher.from_pretrained(tiny(family), names, method=method, multi_label=True)
        counts = [len(labels) for labels in matcher.predict(TEXTS)]
        assert 0 < np.mean(counts) < len(names) / 2

    def test_each_text_is_judged_by_itself(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, multi_label=True)
        together = matcher.predict_proba(TEXTS)
        alone = np.concatenate([matcher.predict_proba([text]) for text in TEXTS])
        np.testing.assert_allclose(alone, together, atol=1e-4)

    def test_it_ranks_labels_as_one_label_a_text_would(self, tiny: Tiny) -> None:
        several = MaskMatcher.from_pretrained(tiny("bert"), LABELS, multi_label=True).top_k(TEXTS, 3)
        single = MaskMatcher.from_pretrained(tiny("bert"), LABELS).top_k(TEXTS, 3)
        assert [[label for label, _ in row] for row in several] == [[label for label, _ in row] for row in single]

    def test_a_single_label_still_has_a_probability(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), ["refund"], multi_label=True)
        assert np.isfinite(matcher.predict_proba(TEXTS)).all()

    def test_a_classifier_trained_otherwise_is_judged_so_too(self, tiny: Tiny, tmp_path: Path) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, TRUTH, **SHORT)
        folder = matcher.save_pretrained(tmp_path / "model")
        several = MaskMatcher.from_pretrained(folder, multi_label=True)
        expected = several.predict_proba(TEXTS)
        assert 0 < (expected >= 0.5).mean() < 1
        again = MaskMatcher.from_pretrained(several.save_pretrained(tmp_path / "again"))
        np.testing.assert_allclose(again.predict_proba(TEXTS), expected, atol=1e-6)


class TestShortTraining:
    """Few steps hardly move the offset, so it is settled by the training rows where there is no dev data."""

    @pytest.mark.parametrize("similarity", ["cosine", "dot"])
    def test_about_as_many_labels_apply_as_the_rows_have(self, tiny: Tiny, similarity: str) -> None:
        rows = [[label] for label in TRUTH]
        matcher = MaskMatcher.from_pretrained(tiny("bert"), similarity=similarity)  # type: ignore[arg-type]
        matcher.fit(TEXTS, rows, epochs=1, learning_rate=1e-6)
        found = matcher.predict(TEXTS)
        assert 0.5 <= np.mean([len(labels) for labels in found]) <= 2.5
        probabilities, truth = (
            matcher.predict_proba(TEXTS),
            np.array([[row == [id_] for id_ in matcher.labels or ()] for row in rows]),
        )
        best = best_threshold(truth, probabilities)
        reached = multi_label_micro_f1(rows, matcher.predict(TEXTS, threshold=best))
        assert multi_label_micro_f1(rows, found) == pytest.approx(reached, abs=1e-6)

    def test_a_label_added_later_shares_what_was_learned(self, tiny: Tiny, tmp_path: Path) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert")).fit(SEVERAL_TEXTS, SEVERAL, **SHORT)
        before = matcher.predict_proba(SEVERAL_TEXTS)
        matcher.add_labels(["parcel"])
        np.testing.assert_allclose(matcher.predict_proba(SEVERAL_TEXTS)[:, :3], before, atol=1e-6)
        loaded = MaskMatcher.from_pretrained(matcher.save_pretrained(tmp_path / "model"))
        np.testing.assert_allclose(loaded.predict_proba(SEVERAL_TEXTS)[:, :3], before, atol=1e-6)

    def test_a_second_fit_does_not_begin_again(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"))
        matcher.fit(SEVERAL_TEXTS, SEVERAL, epochs=60, learning_rate=1e-2, batch_size=6)
        learned = matcher.predict_proba(SEVERAL_TEXTS)
        matcher.fit(SEVERAL_TEXTS, SEVERAL, epochs=1, learning_rate=1e-7)
        np.testing.assert_allclose(matcher.predict_proba(SEVERAL_TEXTS), learned, atol=1e-2)

    def test_what_training_has_told_apart_stays_as_it_is(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"))
        matcher.fit(SEVERAL_TEXTS, SEVERAL, epochs=60, learning_rate=1e-2, batch_size=6)
        assert [sorted(labels) for labels in matcher.predict(SEVERAL_TEXTS)] == [sorted(labels) for labels in SEVERAL]

    def test_a_refused_fit_tells_nothing(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, multi_label=True)
        before = matcher.predict_proba(TEXTS)
        with pytest.raises(MaskMatchError):
            matcher.fit(SEVERAL_TEXTS, SEVERAL, arguments={"no_such_argument": 1})
        np.testing.assert_allclose(matcher.predict_proba(TEXTS), before, atol=1e-6)
