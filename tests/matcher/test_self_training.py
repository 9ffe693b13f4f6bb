"""Self-training: which texts are trained on, when it is kept, and what an interruption leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskmatch import Label, MaskMatcher
from maskmatch.errors import MaskMatchError, TrainingDivergedError
from maskmatch.prediction.answers import Predictions
from maskmatch.training import self_training
from maskmatch.training.self_training import confident_rows
from refusals import refusal
from toy_data import A_LITTLE, LABELS, TEXTS, TRUTH

Tiny = Callable[..., Path]
MANY = [f"{text} {number}" for number in range(10) for text in TEXTS]  # 120 different texts


def alone(tiny: Tiny) -> MaskMatcher:
    return MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)


def weights(matcher: MaskMatcher) -> dict[str, Any]:
    return {name: value.clone() for name, value in matcher.model.state_dict().items()}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(bool((value == other[name]).all()) for name, value in one.items())


def test_the_most_confident_texts_of_each_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_training, "MOST_ROWS", 12)
    labels = ["a"] * 20 + ["b"] * 8 + ["c"] * 2
    confidence = np.linspace(0.2, 0.9, 30)
    rows = confident_rows(Predictions(labels, confidence=confidence), 3)
    chosen = [labels[row] for row in rows]
    assert {label: chosen.count(label) for label in "abc"} == {"a": 4, "b": 4, "c": 2}
    assert set(rows) == {16, 17, 18, 19, 24, 25, 26, 27, 28, 29}, "the last of each label are the most confident"


def test_it_trains_adapts_and_reports(tiny: Tiny) -> None:
    matcher = alone(tiny)
    before = weights(matcher)
    matcher.adapt(MANY, force=True, self_training=True)
    assert matcher.adaptation_ is not None
    found = matcher.adaptation_.self_training
    assert found is not None
    assert found.kept
    assert found.dev is None
    assert 1 <= found.rounds <= self_training.ROUNDS
    assert 0 < found.rows <= len(MANY)
    assert "Self-training took" in str(matcher.adaptation_)
    assert not same(before, weights(matcher))
    assert matcher.training_ is not None
    assert matcher.bank.adaptation is not None
    matcher.add_labels(["parcel"])
    assert matcher.predict_proba(TEXTS).shape == (len(TEXTS), len(LABELS) + 1)


def test_it_stops_when_no_label_changes(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_training, "LEAST_CHANGE", 1.01)  # no change is large enough for another round
    monkeypatch.setattr(self_training, "ROUNDS", 5)
    matcher = alone(tiny).adapt(MANY, force=True, self_training=True)
    assert matcher.adaptation_ is not None
    assert matcher.adaptation_.self_training is not None
    assert matcher.adaptation_.self_training.rounds == 1


@pytest.mark.parametrize(("after", "kept"), [(0.6, True), (0.5, True), (0.4, False)])
def test_dev_data_decide(tiny: Tiny, monkeypatch: pytest.MonkeyPatch, after: float, kept: bool) -> None:
    found = iter((0.4, 0.5, after))  # names alone, adapted, self-trained
    monkeypatch.setattr("maskmatch.training.dev.DevData.metrics", lambda *_: {"score": next(found)})
    matcher = alone(tiny)
    before = weights(matcher)
    adapted = alone(tiny).adapt(MANY, force=True).predict_proba(TEXTS)
    matcher.adapt(MANY, force=True, self_training=True, dev=(TEXTS, TRUTH))
    assert matcher.adaptation_ is not None
    assert matcher.adaptation_.self_training is not None
    assert matcher.adaptation_.self_training.kept == kept
    assert same(before, weights(matcher)) == (not kept)
    assert (matcher.training_ is None) == (not kept)
    if not kept:
        np.testing.assert_allclose(matcher.predict_proba(TEXTS), adapted, atol=1e-6)
        assert "it is not used" in str(matcher.adaptation_)


def test_examples_are_trained_on_beside_confident_texts(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[list[Any]] = []
    fit = self_training.fit_bank

    def watched(bank: Any, examples: Any, **options: Any) -> Any:
        trained.append(list(examples.texts))
        return fit(bank, examples, **options)

    monkeypatch.setattr(self_training, "fit_bank", watched)
    monkeypatch.setattr(self_training, "ROUNDS", 1)
    alone(tiny).fit(TEXTS, TRUTH, unlabeled=MANY, self_training=True, **A_LITTLE)
    assert trained[0][: len(TEXTS)] == list(TEXTS)
    assert len(trained[0]) > len(TEXTS)
    assert set(trained[0][len(TEXTS) :]) <= set(MANY)


def test_dev_scores_are_those_of_the_classifier(tiny: Tiny, tmp_path: Path) -> None:
    """With real dev rows; saved and loaded it answers the same."""
    matcher = alone(tiny).adapt(MANY, force=True, self_training=True, dev=(TEXTS, TRUTH))
    assert matcher.adaptation_ is not None
    found = matcher.adaptation_.self_training
    assert found is not None
    assert found.dev is not None
    best = found.dev[1] if found.kept else found.dev[0]
    assert matcher.evaluate(TEXTS, TRUTH).accuracy == pytest.approx(best, abs=1e-4)
    loaded = MaskMatcher.from_pretrained(matcher.save_pretrained(tmp_path / "model"))
    np.testing.assert_allclose(loaded.predict_proba(TEXTS), matcher.predict_proba(TEXTS), atol=1e-5)


def failing(monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    """Fail after the weights of the first round were trained."""
    adapt = self_training.adapt_bank
    calls = []

    def broken(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            raise error("stop")
        return adapt(*arguments, **options)

    monkeypatch.setattr(self_training, "adapt_bank", broken)


@pytest.mark.parametrize("trained", [False, True])
def test_an_interruption_leaves_the_classifier_as_it_was(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, trained: bool
) -> None:
    matcher = alone(tiny)
    if trained:
        matcher.fit(TEXTS, TRUTH, unlabeled=MANY, **A_LITTLE)
    before, expected = weights(matcher), matcher.predict_proba(TEXTS)
    failing(monkeypatch, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        matcher.adapt(MANY, force=True, self_training=True, dev=(TEXTS, TRUTH))
    assert same(before, weights(matcher))
    np.testing.assert_array_equal(matcher.predict_proba(TEXTS), expected)


@pytest.mark.parametrize("error", [MaskMatchError, TrainingDivergedError])
def test_if_training_fails_the_adaptation_stays(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: type[MaskMatchError]
) -> None:
    expected = alone(tiny).adapt(MANY, force=True).predict_proba(TEXTS)
    failing(monkeypatch, error)
    matcher = alone(tiny).adapt(MANY, force=True, self_training=True)
    np.testing.assert_allclose(matcher.predict_proba(TEXTS), expected, atol=1e-6)
    assert matcher.adaptation_ is not None
    assert matcher.adaptation_.self_training is not None
    assert matcher.adaptation_.self_training.problem == "stop"
    assert "Self-training failed, so it is not used: stop" in caplog.text
    assert matcher.training_ is None


def test_examples_of_labels_and_names_of_label_numbers(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets import ClassLabel, Dataset, Features, Value

    seen: list[Any] = []
    fit = self_training.fit_bank
    monkeypatch.setattr(
        self_training, "fit_bank", lambda bank, rows, **how: seen.append(rows) or fit(bank, rows, **how)
    )
    monkeypatch.setattr(self_training, "ROUNDS", 1)
    labels = [Label(name, examples=(f"an example of {name}",)) for name in LABELS]
    matcher = MaskMatcher.from_pretrained(tiny("bert"), labels, verbose=False)
    matcher.adapt(MANY, force=True, self_training=True)
    assert [*seen[0].texts[: len(LABELS)]] == [f"an example of {name}" for name in LABELS]
    features = Features({"text": Value("string"), "label": ClassLabel(names=LABELS)})
    rows = Dataset.from_dict({"text": TEXTS, "label": [LABELS.index(label) for label in TRUTH]}, features=features)
    alone(tiny).fit(rows, unlabeled=MANY, self_training=True, **A_LITTLE)
    assert list(seen[1].labels[: len(TRUTH)]) == TRUTH


def test_examples_of_an_earlier_fit_are_not_replaced_without_dev(tiny: Tiny) -> None:
    matcher = alone(tiny).fit(TEXTS, TRUTH, **A_LITTLE)
    assert "would replace what it learned" in refusal(matcher.adapt, MANY, force=True, self_training=True)
    summary = matcher.training_
    matcher.adapt(MANY, force=True, self_training=True, dev=(TEXTS, TRUTH))
    assert summary is not None
    assert matcher.training_ is not None
    assert replace(matcher.training_, calibrated_on=None) == replace(summary, calibrated_on=None), "the record stays"


def test_without_unlabelled_texts_it_is_refused(tiny: Tiny) -> None:
    assert "needs unlabelled texts" in refusal(alone(tiny).fit, TEXTS, TRUTH, self_training=True)
