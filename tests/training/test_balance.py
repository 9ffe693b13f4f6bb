"""Skewed labels and weighted rows: what counts how much, and when users are warned."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from maskmatch import MaskMatcher, MaskMatchError
from maskmatch.config.training import TrainingConfig
from maskmatch.data import Examples
from maskmatch.training import self_training
from maskmatch.training.balance import Balance, balance_of, checked_weights, without_skew
from toy_data import A_LITTLE, FAST, LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Tiny = Callable[[str], Path]

COUNTS = st.lists(st.integers(1, 300), min_size=2, max_size=12)
SKEWED = [*TEXTS, *[f"refund number {number}" for number in range(60)]]
SKEWED_TRUTH = [*TRUTH, *["refund"] * 60]


def rows_of(counts: list[int]) -> Examples:
    labels = [f"label {number}" for number, count in enumerate(counts) for _ in range(count)]
    return Examples([f"text {row}" for row in range(len(labels))], labels)


class TestSkew:
    def test_a_label_with_far_more_rows_gets_some_of_them(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING, "maskmatch"):
            kept = without_skew(rows_of([200, 5, 5, 5]), TrainingConfig())
        assert Counter(kept.labels or []) == {"label 0": 10, "label 1": 5, "label 2": 5, "label 3": 5}
        assert "'label 0' has 200 of 215 rows" in caplog.text
        assert "10 rows of it" in caplog.text

    @given(COUNTS)
    def test_rare_labels_keep_all_rows_and_their_order(self, counts: list[int]) -> None:
        rows = rows_of(counts)
        kept = without_skew(rows, TrainingConfig())
        before, after = Counter(rows.labels or []), Counter(kept.labels or [])
        common = [count for count in counts if count >= 3]
        usual = sorted(common if len(common) > 1 else counts)[(len(common if len(common) > 1 else counts) - 1) // 2]
        over = [label for label in before if after[label] < before[label]]
        assert set(after) == set(before)
        assert len(over) <= max(1, len(counts) / 3)
        assert all(after[label] >= max(10, 2 * usual) for label in over)
        if over:
            assert max(after.values()) <= max(len(kept) / 3, 2 * max(usual, 5) * max(1, usual / 10) + 1)
        if max(counts) <= len(rows) / 3:
            assert kept is rows
        assert [row for row in rows.texts if row in set(kept.texts)] == kept.texts

    @given(st.integers(1, 300), st.integers(2, 10))
    def test_balanced_rows_are_all_used(self, count: int, labels: int) -> None:
        rows = rows_of([count] * labels)
        assert without_skew(rows, TrainingConfig()) is rows

    def test_its_rows_count_as_those_of_the_median_label(self) -> None:
        rows = without_skew(rows_of([200, *[5] * 9]), TrainingConfig())
        assert rows.weights is not None
        totals: Counter[str] = Counter()
        for label, weight in zip(rows.labels or [], rows.weights, strict=True):
            totals[label] += weight
        assert Counter(rows.labels or [])["label 0"] == 22
        assert totals["label 0"] == pytest.approx(5.25)  # it would be 5 if it had far more rows
        assert totals["label 1"] == 5

    @pytest.mark.parametrize("counts", [[1000, 1000, 1, 1], [500, 400, 2, 2, 2, 2], [100, 100, 3, 3]])
    def test_a_few_mistyped_labels_do_not_make_the_others_large(self, counts: list[int]) -> None:
        rows = rows_of(counts)
        assert without_skew(rows, TrainingConfig()) is rows

    def test_a_row_more_does_not_change_everything(self) -> None:
        def total(count: int) -> float:
            kept = without_skew(rows_of([count, 10]), TrainingConfig())
            weights = kept.weights or [1.0] * len(kept)
            return sum(weight for weight, label in zip(weights, kept.labels or [], strict=True) if label == "label 0")

        assert [round(total(count), 1) for count in (20, 21, 40, 400)] == [20, 19.5, 15, 10.5]

    def test_weights_that_are_all_the_same_are_no_weights(self) -> None:
        assert checked_weights([2.0, 2.0], 2) is None
        assert checked_weights([2.0, 1.0], 2) == [2.0, 1.0]

    def test_with_many_rows_per_label_the_limit_rises(self) -> None:
        assert len(without_skew(rows_of([1900, 100, 100]), TrainingConfig())) == 2100

    @pytest.mark.parametrize("how", [{"max_skew": 0}, {"class_weight": "balanced"}])
    def test_users_can_have_all_rows(self, how: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING, "maskmatch"):
            assert len(without_skew(rows_of([200, 5, 5]), TrainingConfig(**how))) == 210
        assert "'label 0' has 200 of 210 rows" in caplog.text

    def test_the_same_seed_draws_the_same_rows(self) -> None:
        rows = rows_of([100, 3, 3, 3])
        one, same, other = (without_skew(rows, TrainingConfig(seed=seed)).texts for seed in (0, 0, 1))
        assert one == same
        assert one != other

    def test_training_uses_them(self, tiny: Tiny, caplog: pytest.LogCaptureFixture) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
        with caplog.at_level(logging.WARNING, "maskmatch"):
            matcher.fit(SKEWED, SKEWED_TRUTH, **A_LITTLE)
        assert matcher.training_ is not None
        assert matcher.training_.texts == 18
        assert "skewed" in caplog.text


class TestWeights:
    @given(COUNTS)
    def test_balanced_labels_count_the_same(self, counts: list[int]) -> None:
        targets = np.repeat(np.arange(len(counts)), counts)
        weights = balance_of(targets, len(counts), TrainingConfig(class_weight="balanced")).weights
        assert weights is not None
        np.testing.assert_allclose(weights.mean(), 1, rtol=1e-4)
        np.testing.assert_allclose(np.bincount(targets, weights), len(targets) / len(counts), rtol=1e-3)

    @given(COUNTS)
    def test_the_adjustment_is_the_log_of_each_labels_share(self, counts: list[int]) -> None:
        targets = np.repeat(np.arange(len(counts)), counts)
        found = balance_of(targets, len(counts), TrainingConfig(logit_adjustment=1.0)).adjustment
        if len(set(counts)) == 1:
            assert found is None
            return
        assert found is not None
        logs = np.log(counts)
        np.testing.assert_allclose(found, logs - logs.mean(), atol=1e-4)

    def test_a_label_without_rows_counts_as_the_rarest(self) -> None:
        found = balance_of(np.array([0, 0, 0, 1]), 3, TrainingConfig(logit_adjustment=1.0)).adjustment
        assert found is not None
        assert found[2] == found[1] < found[0]

    def test_a_row_with_weight_two_counts_as_two_rows(self, tiny: Tiny) -> None:
        settings = {**A_LITTLE, "dropout": False, "example_share": 0.0}
        weighted = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
        weighted.fit(TEXTS, TRUTH, sample_weight=[2.0] + [1.0] * 11, **settings)
        repeated = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
        repeated.fit([TEXTS[0], *TEXTS], [TRUTH[0], *TRUTH], **settings)
        plain = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False).fit(TEXTS, TRUTH, **settings)
        expected = repeated.predict_proba(TEXTS)
        np.testing.assert_allclose(weighted.predict_proba(TEXTS), expected, atol=1e-3)
        assert np.abs(plain.predict_proba(TEXTS) - expected).max() > 1e-3

    def test_rows_with_weight_zero_are_left_out(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
        matcher.fit([*TEXTS, "a wrong row"], [*TRUTH, "refund"], sample_weight=[1.0] * 12 + [0.0], **A_LITTLE)
        assert matcher.training_ is not None
        assert matcher.training_.texts == 12

    def test_a_label_whose_rows_have_no_weight_is_known(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), verbose=False)
        weights = [0.0 if label == "refund" else 1.0 for label in TRUTH]
        matcher.fit(TEXTS, TRUTH, sample_weight=weights, **A_LITTLE)
        assert list(matcher.labels or ()) == sorted(LABELS)

    def test_rows_of_little_weight_hardly_move_the_centroid(self, tiny: Tiny) -> None:
        def centroid(texts: list[str], labels: list[str], weights: list[float] | None) -> Any:
            matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
            matcher.fit(texts, labels, sample_weight=weights, epochs=1, learning_rate=1e-9, calibrate=False)
            found = matcher.bank.centroids
            return found.vectors[found.ids.index("refund")], found.weights[found.ids.index("refund")]

        wrong = ["card", "money at the station", "exchange"]
        vectors, weight = centroid(TEXTS, TRUTH, None)
        light, same = centroid([*TEXTS, *wrong], [*TRUTH, *["refund"] * 3], [1.0] * 12 + [1e-6] * 3)
        heavy, _ = centroid([*TEXTS, *wrong], [*TRUTH, *["refund"] * 3], None)
        np.testing.assert_allclose(light, vectors, atol=1e-4)
        assert same == pytest.approx(weight, abs=1e-4)
        assert np.abs(heavy - vectors).max() > 1e-3

    def test_the_windows_of_a_text_share_its_weight(self) -> None:
        owners = np.array([0, 1, 2, 1, 1])
        for weights in (None, np.array([0.5, 1.5, 1.0], np.float32)):
            rows = Balance(weights).batch(range(5), owners)["weights"].numpy()
            totals = np.bincount(owners, rows)
            assert rows.mean() == pytest.approx(1)
            np.testing.assert_allclose(totals / totals.sum(), (np.ones(3) if weights is None else weights) / 3)
        assert Balance().batch(range(3), np.arange(3))["weights"] is None

    def test_self_training_keeps_them(self, tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[Examples] = []
        fit = self_training.fit_bank

        def spy(bank: Any, examples: Examples, **options: Any) -> Any:
            seen.append(examples)
            return fit(bank, examples, **options)

        monkeypatch.setattr(self_training, "fit_bank", spy)
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
        weights = [2.0] * 11 + [0.0]
        many = [f"{text} {number}" for number in range(10) for text in TEXTS]
        matcher.fit(TEXTS, TRUTH, sample_weight=weights, unlabeled=many, self_training=True, **FAST)
        assert seen
        for rows in seen:
            assert rows.texts[:11] == TEXTS[:11]
            assert rows.weights is not None
            assert rows.weights[:11] == [2.0] * 11
            assert set(rows.weights[11:]) == {1.0}

    def test_weights_go_with_rows_out_of_scope(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
        weights = [1.0, 5.0, *[1.0] * 11]
        matcher.fit(["nothing", *TEXTS], [None, *TRUTH], out_of_scope_rows=True, sample_weight=weights, **A_LITTLE)
        other = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
        other.fit(TEXTS, TRUTH, sample_weight=weights[1:], **A_LITTLE)
        np.testing.assert_array_equal(matcher.predict_proba(TEXTS), other.predict_proba(TEXTS))

    def test_several_labels_per_text_can_be_weighted(self, tiny: Tiny) -> None:
        rows = [[label] for label in TRUTH]
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
        matcher.fit(TEXTS, rows, sample_weight=np.linspace(0.5, 2, 12), **FAST)
        assert matcher.evaluate(TEXTS, rows).accuracy == 1.0
        with pytest.raises(MaskMatchError, match="class_weight needs one label per text"):
            MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, rows, class_weight="balanced", **A_LITTLE)
        with pytest.raises(MaskMatchError, match="logit_adjustment needs one label per text"):
            MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, rows, logit_adjustment=1.0, **A_LITTLE)

    @pytest.mark.parametrize(
        ("weights", "problem"),
        [
            ([1.0], "1 weights for 12 rows"),
            ([-1.0] * 12, "of at least 0"),
            ([0.0] * 12, "not all of them 0"),
            ([float("nan")] * 12, "of at least 0"),
            (["heavy"] * 12, "must be numbers"),
            (1.0, "an array of shape"),
        ],
    )
    def test_wrong_weights_get_one_sentence(self, matcher: MaskMatcher, weights: Any, problem: str) -> None:
        with pytest.raises(MaskMatchError, match=problem):
            matcher.fit(TEXTS, TRUTH, sample_weight=weights)

    def test_the_loss_of_each_text_is_weighted(self, matcher: MaskMatcher) -> None:
        scores, targets = torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 1])
        loss = vars(type(matcher.model))["_matching_loss"]
        one = loss(matcher.model, scores[:1], targets[:1], None, None)
        two = loss(matcher.model, scores[1:], targets[1:], None, None)
        both = loss(matcher.model, scores, targets, torch.tensor([1.5, 0.5]), None)
        assert both.item() == pytest.approx((1.5 * one + 0.5 * two).item() / 2)
