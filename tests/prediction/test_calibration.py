"""Calibration: probabilities that mean what they say, the same answers, and what survives edits, saving and exports."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from maskmatch import ExportedMatcher, MaskMatcher, MaskMatchError
from maskmatch.labels.calibration import Calibration
from maskmatch.storage.export.exporter import export
from maskmatch.training.calibration import HeldOut, expected_temperature, fit_calibration, fit_curve
from maskmatch.training.held_out import fold_rows, held_out_rows
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli_tools import Run

    Tiny = Callable[..., Path]

CURVES = st.builds(
    Calibration,
    slope=st.floats(0.1, 4),
    intercept=st.floats(-3, 3),
    per_log_labels=st.floats(-0.5, 0.5),
    labels=st.integers(1, 100),
)


def rows_of(count: int, labels: int, temperature: float, seed: int = 0) -> HeldOut:
    """Rows whose true labels are drawn by a softmax of their scores at a temperature."""
    rng = np.random.default_rng(seed)
    scores = (4 * rng.normal(size=(count, labels))).astype(np.float32)
    drawn = scores / temperature + rng.gumbel(size=scores.shape)
    return HeldOut(scores, drawn.argmax(axis=1), "dev")


def error(probabilities: Any, truth: Any, bins: int = 15) -> float:
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    own = np.minimum((confidence * bins).astype(int), bins - 1)
    return float(sum(abs(confidence[own == b].sum() - right[own == b].sum()) for b in range(bins)) / len(truth))


def softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)


class TestTheCurve:
    @settings(max_examples=200, deadline=None)
    @given(CURVES, arrays(np.float32, (5, 7), elements=st.floats(-8, 8, width=32)))
    def test_probabilities_stay_probabilities_and_keep_their_order(self, curve: Calibration, scores: Any) -> None:
        before = softmax(scores)
        after = curve.all_labels(before)
        np.testing.assert_allclose(after.sum(axis=1), 1, atol=1e-4)
        assert (after >= 0).all()
        best = before.argmax(axis=1)
        assert (after[np.arange(5), best] >= after.max(axis=1)).all()
        others = np.sort(before, axis=1)[:, ::-1]
        np.testing.assert_allclose(curve.best_first(others, 7), np.sort(after, axis=1)[:, ::-1], atol=1e-5)

    @pytest.mark.parametrize("slope", [0.1, 0.7, 2.0])
    def test_a_probability_that_is_rounded_to_one(self, slope: float) -> None:
        curve = Calibration(slope=slope, labels=3)
        after = curve.all_labels(softmax(np.array([[18.0, 0.0, -1.0], [60.0, 0.0, 0.0]])))
        np.testing.assert_allclose(after.sum(axis=1), 1, atol=1e-4)
        assert (after <= 1).all()
        assert (after.argmax(axis=1) == 0).all()

    def test_nothing_changes_without_a_curve(self) -> None:
        before = softmax(np.random.default_rng(0).normal(size=(4, 3)))
        assert Calibration(temperature=2.0).all_labels(before) is before

    @pytest.mark.parametrize("wrong", [{"temperature": 0.0}, {"slope": -1.0}, {"intercept": float("nan")}])
    def test_damaged_numbers_are_an_error(self, wrong: dict[str, float]) -> None:
        with pytest.raises(ValueError, match=r"NaN|positive"):
            Calibration(**wrong)


class TestFitting:
    @pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0, 8.0, 20.0])
    def test_many_rows_find_the_temperature(self, temperature: float) -> None:
        held = rows_of(3000, 10, temperature)
        found = fit_calibration(held, list(range(10)))
        test = rows_of(5000, 10, temperature, seed=1)
        probabilities = found.all_labels(softmax(test.scores / found.temperature))
        assert error(probabilities, test.targets) < 0.03
        assert found.temperature == pytest.approx(temperature, rel=0.25), "not a flat curve at another temperature"

    def test_few_rows_change_little(self) -> None:
        expected = 2.0
        found = fit_calibration(rows_of(2, 10, 50.0), list(range(10)), expected=expected)
        assert expected / 4 < found.temperature < expected * 4

    def test_no_rows_give_what_is_expected(self) -> None:
        empty = HeldOut(np.zeros((0, 3), np.float32), np.zeros(0, np.int64), "folds")
        found = fit_calibration(empty, ["a", "b", "c"], expected=3.0)
        assert found.temperature == pytest.approx(3.0, rel=0.01)
        assert found.conformity == ()

    def test_unknown_labels_are_left_out(self) -> None:
        held = rows_of(50, 4, 1.0)
        targets = np.where(np.arange(50) < 10, -1, held.targets)
        assert fit_calibration(HeldOut(held.scores, targets, "dev"), list("abcd")).rows == 40

    def test_the_number_of_labels_counts(self) -> None:
        """A classifier whose wrong labels are equally wrong: with fewer of them, it is right more often."""
        rng = np.random.default_rng(0)
        scores = rng.normal(size=(4000, 40)).astype(np.float32)
        targets = rng.integers(0, 40, size=4000)
        scores[np.arange(4000), targets] += 3
        found = fit_calibration(HeldOut(scores, targets, "dev"), list(range(40)))
        few = targets < 10
        subset = softmax(scores[few][:, :10] / found.temperature)
        assert error(found.all_labels(subset), targets[few]) < 0.08

    def test_fewer_training_rows_need_a_higher_temperature(self) -> None:
        temperatures = [expected_temperature(rows) for rows in (5, 50, 500, 5000)]
        assert temperatures == sorted(temperatures, reverse=True)
        assert temperatures[-1] > 1

    def test_several_labels_per_text(self) -> None:
        rng = np.random.default_rng(0)
        logits = (3 * rng.normal(size=(3000, 5))).astype(np.float32)
        truth = rng.random(size=logits.shape) < 1 / (1 + np.exp(-(0.4 * logits - 1)))
        found, usual = fit_curve(HeldOut(logits, truth.astype(np.int64), "dev"), list("abcde"))
        assert found.slope == pytest.approx(0.4, abs=0.08)
        assert found.intercept == pytest.approx(-1, abs=0.15)
        assert 0 < usual < 1
        assert set(found.thresholds) == set("abcde")


@pytest.mark.usefixtures("folds")
class TestRowsToHoldOut:
    def test_few_rows_are_not_held_out_but_folded(self) -> None:
        rows = [label for label in "abcdefghij" for _ in range(5)]
        assert held_out_rows(rows, False, 0) == []
        folds = fold_rows(rows, False, 0)
        for fold in folds:
            kept = [rows[row] for row in range(len(rows)) if row not in set(fold)]
            assert set(kept) == set(rows), "every label keeps a row"
        assert len(set(chain(*folds))) == sum(map(len, folds)), "no row is in two folds"

    def test_a_label_with_one_row_keeps_it(self) -> None:
        assert fold_rows(["a", "b", "c"], False, 0) == []

    def test_many_rows_are_held_out(self) -> None:
        rows = ["a"] * 2990 + ["b"] * 10
        out = held_out_rows(rows, False, 0)
        assert len(out) == 300
        assert sum(rows[row] == "b" for row in out) <= 8


@pytest.fixture
def trained(tiny: Tiny) -> MaskMatcher:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
    return matcher.fit(TEXTS, TRUTH, epochs=2)


@pytest.mark.usefixtures("folds")
class TestAClassifier:
    def test_calibration_never_changes_the_weights_or_the_answers(self, tiny: Tiny, trained: MaskMatcher) -> None:
        plain = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
        plain.fit(TEXTS, TRUTH, epochs=2, calibrate=False)
        assert plain.bank.calibration is None
        assert trained.bank.calibration is not None
        assert trained.training_ is not None
        assert trained.training_.calibrated_on == "folds"
        np.testing.assert_array_equal(plain.text_states(TEXTS), trained.text_states(TEXTS))
        assert plain.predict(TEXTS) == trained.predict(TEXTS)

    def test_all_ways_to_ask_agree(self, trained: MaskMatcher) -> None:
        trained.bank.learn(calibration=Calibration(temperature=2.0, slope=0.7, intercept=-0.4, labels=len(LABELS)))
        probabilities = trained.predict_proba(TEXTS)
        order = list(trained.labels or ())
        assert trained.predict(TEXTS) == [order[place] for place in probabilities.argmax(axis=1)]
        for row, pairs in enumerate(trained.top_k(TEXTS, len(order))):
            for label, value in pairs:
                assert value == pytest.approx(float(probabilities[row, order.index(label)]), abs=1e-5)
        assert [pairs[0][1] for pairs in trained.top_k(TEXTS, 1)] == pytest.approx(probabilities.max(axis=1), abs=1e-5)

    def test_it_is_saved_and_exported(self, trained: MaskMatcher, tmp_path: Path) -> None:
        calibration = Calibration(1.7, 0.8, 0.3, 0.1, labels=3, added=0.02, conformity=(0.2, 0.9), rows=2)
        trained.bank.learn(calibration=calibration)
        before = trained.predict_proba(TEXTS)
        loaded = MaskMatcher.from_pretrained(trained.save_pretrained(tmp_path / "model"), verbose=False)
        assert loaded.bank.calibration == calibration
        np.testing.assert_allclose(loaded.predict_proba(TEXTS), before, atol=1e-6)
        export(trained, tmp_path / "export")
        exported = ExportedMatcher.from_pretrained(tmp_path / "export", verbose=False)
        np.testing.assert_allclose(exported.predict_proba(TEXTS), before, atol=1e-4)

    def test_labels_that_are_added_later_get_an_offset(self, trained: MaskMatcher) -> None:
        calibration = trained.bank.calibration
        assert calibration is not None
        assert calibration.added > 0
        trained.add_labels(["something new"])
        with_offset = trained.predict_proba(TEXTS)[:, -1]
        trained.bank.learn(calibration=replace(calibration, added=0.0))
        without = trained.predict_proba(TEXTS)[:, -1]
        assert (with_offset >= without - 1e-6).all()
        assert with_offset.mean() > without.mean()

    def test_it_survives_edits(self, trained: MaskMatcher) -> None:
        before = trained.bank.calibration
        trained.rename_label(LABELS[0], "another name").add_labels(["new"]).remove_labels([LABELS[1]])
        assert trained.bank.calibration == before
        np.testing.assert_allclose(trained.predict_proba(TEXTS).sum(axis=1), 1, atol=1e-4)

    def test_dev_rows_calibrate(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
        matcher.fit(TEXTS, TRUTH, epochs=1, dev=(TEXTS, TRUTH))
        assert matcher.bank.calibration is not None
        assert matcher.bank.calibration.source == "dev"
        assert matcher.bank.calibration.rows == len(TEXTS)

    def test_calibrate_on_rows(self, matcher: MaskMatcher) -> None:
        answers = matcher.predict(TEXTS)
        matcher.calibrate(TEXTS, TRUTH)
        assert matcher.predict(TEXTS) == answers
        with pytest.raises(MaskMatchError, match="None of these rows"):
            matcher.calibrate(TEXTS[:1], ["a label that there is not"])

    def test_other_settings_drop_it(self, trained: MaskMatcher, tmp_path: Path) -> None:
        folder = trained.save_pretrained(tmp_path / "model")
        assert MaskMatcher.from_pretrained(folder, temperature=0.3).bank.calibration is None
        assert MaskMatcher.from_pretrained(folder, abstain=0.3).bank.calibration is not None

    def test_rows_that_were_trained_on_before_do_not_calibrate(self, trained: MaskMatcher) -> None:
        trained.fit(TEXTS, TRUTH, epochs=1)
        assert trained.bank.calibration is not None
        assert trained.bank.calibration.source == "prior"
        assert trained.bank.calibration.conformity == ()

    def test_wrong_settings_fail_before_training(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, multi_label=True, verbose=False)
        before = matcher.text_states(TEXTS)
        with pytest.raises(MaskMatchError, match="keep_texts needs"):
            matcher.fit(TEXTS, [[label] for label in TRUTH], keep_texts=True)
        with pytest.raises(MaskMatchError, match="out of scope need"):
            matcher.fit([*TEXTS, "x"], [*([label] for label in TRUTH), None], out_of_scope_rows=True)
        np.testing.assert_array_equal(matcher.text_states(TEXTS), before)

    def test_training_again_fits_it_again(self, trained: MaskMatcher) -> None:
        trained.fit(TEXTS, TRUTH, epochs=1, calibrate=False)
        assert trained.bank.calibration is None

    def test_the_default_encoder_is_calibrated_without_training(self) -> None:
        matcher = MaskMatcher.from_pretrained(labels=["abbreviation", "person"], task="question", verbose=False)
        assert matcher.bank.calibration is not None
        assert matcher.bank.calibration.source == "datasets"
        other = MaskMatcher.from_pretrained(labels=["a", "b"], task="question", temperature=0.1, verbose=False)
        assert other.bank.calibration is None


@pytest.mark.usefixtures("folds")
class TestSeveralLabels:
    ROWS = ([[LABELS[0]], [LABELS[1]], [LABELS[0], LABELS[2]], []] * 6)[: len(TEXTS)]

    def test_names_alone_cannot_be_calibrated(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, multi_label=True, verbose=False)
        with pytest.raises(MaskMatchError, match="nothing to calibrate"):
            matcher.calibrate(TEXTS, self.ROWS)

    def test_thresholds_per_label(self, tiny: Tiny, tmp_path: Path) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, multi_label=True, verbose=False)
        matcher.fit(TEXTS, self.ROWS, epochs=2)
        found = matcher.bank.calibration
        assert found is not None
        own = {label: 0.2 + 0.1 * place for place, label in enumerate(matcher.labels or ())}
        calibration = replace(found, thresholds=own)
        matcher.bank.learn(calibration=calibration)
        probabilities = matcher.predict_proba(TEXTS)
        expected = [
            {label for place, label in enumerate(matcher.labels or ()) if row[place] >= calibration.thresholds[label]}
            for row in probabilities
        ]
        assert [set(labels) for labels in matcher.predict(TEXTS)] == expected
        folder = matcher.save_pretrained(tmp_path / "model")
        assert [set(labels) for labels in MaskMatcher.from_pretrained(folder).predict(TEXTS)] == expected
        one = MaskMatcher.from_pretrained(folder, threshold=0.9)
        assert [len(labels) for labels in one.predict(TEXTS)] == (one.predict_proba(TEXTS) >= 0.9).sum(axis=1).tolist()
        assert matcher.predict(TEXTS, threshold=0.0)[0] != []


class TestSets:
    def test_coverage_holds_on_average(self) -> None:
        held, test = rows_of(400, 8, 2.0), rows_of(4000, 8, 2.0, seed=1)
        found = fit_calibration(held, list(range(8)))
        probabilities = found.all_labels(softmax(test.scores / found.temperature))
        for coverage in (0.8, 0.9, 0.95):
            least = found.least_probability(coverage)
            assert least is not None
            assert (probabilities[np.arange(4000), test.targets] >= least).mean() >= coverage - 0.03

    def test_the_quantile_is_that_of_split_conformal_prediction(self) -> None:
        calibration = Calibration(conformity=tuple(np.linspace(0.05, 1, 20).tolist()))
        least = calibration.least_probability(0.9)
        assert least == pytest.approx(0.1)  # the 19th largest of 20: ceil(21 * 0.9) = 19
        assert calibration.least_probability(0.99) is None

    def test_sets_of_a_classifier(self, matcher: MaskMatcher) -> None:
        with pytest.raises(MaskMatchError, match="need a calibration on at least"):
            matcher.predict_set(TEXTS)
        matcher.calibrate(TEXTS * 3, TRUTH * 3)
        small, large = (matcher.predict_set(TEXTS, coverage=coverage) for coverage in (0.5, 0.9))
        assert all(set(one) <= set(other) for one, other in zip(small, large, strict=True))
        assert all(labels[0] == best for labels, best in zip(large, matcher.predict(TEXTS), strict=True) if labels)
        with pytest.raises(MaskMatchError, match="between 0 and 1"):
            matcher.predict_set(TEXTS, coverage=1.5)

    def test_a_warning_after_edits(self, matcher: MaskMatcher, caplog: pytest.LogCaptureFixture) -> None:
        matcher.calibrate(TEXTS * 3, TRUTH * 3).add_labels(["new"])
        matcher.predict_set(TEXTS[:1], coverage=0.5)
        assert "coverage is not guaranteed" in caplog.text


def test_the_command(run: Run, matcher: MaskMatcher, tmp_path: Path) -> None:
    folder = matcher.save_pretrained(tmp_path / "model")
    dev = tmp_path / "dev.jsonl"
    rows = zip(TEXTS, TRUTH, strict=True)
    dev.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows))
    result = run("calibrate", folder, dev)
    assert result.code == 0, result.err
    assert f"calibrated on {len(TEXTS)} rows" in result.out
    assert MaskMatcher.from_pretrained(folder).bank.calibration is not None
    assert json.loads(run("calibrate", folder, dev, "--json").out)["rows"] == len(TEXTS)
