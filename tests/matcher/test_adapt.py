"""Learning from unlabelled texts: what changes, what is kept, what is refused."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import TrainerCallback

from maskmatch import ExportedMatcher, MaskMatcher, export
from maskmatch.testing import check_predictor
from maskmatch.training.adapt import cohen_kappa, draw_texts
from refusals import refusal
from toy_data import A_LITTLE, LABELS, TEXTS, TRUTH

Tiny = Callable[..., Path]
MANY = [f"{text} {number}" for number in range(20) for text in TEXTS]  # 240 different texts


@pytest.fixture
def adapted(tiny: Tiny) -> MaskMatcher:
    return MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False).adapt(MANY, force=True)


def alone(tiny: Tiny, **options: Any) -> Any:
    return MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False, **options)


def test_answers_change_and_weights_do_not(tiny: Tiny, adapted: MaskMatcher) -> None:
    before = alone(tiny)
    assert np.abs(adapted.predict_proba(TEXTS) - before.predict_proba(TEXTS)).max() > 0.01
    np.testing.assert_array_equal(adapted.text_states(TEXTS), before.text_states(TEXTS))
    found = adapted.adaptation_
    assert found is not None
    assert (found.adapted, found.texts, found.used) == (True, 240, 240)


def test_adapting_twice_is_adapting_once(adapted: MaskMatcher) -> None:
    first = adapted.predict_proba(TEXTS)
    adapted.adapt(MANY, force=True)
    np.testing.assert_allclose(adapted.predict_proba(TEXTS), first, atol=1e-6)


@pytest.mark.parametrize(
    "method", ["mask-matching", "mean-matching", "mask-mean-matching", "semantic-matching", "prompt-tuning"]
)
def test_every_method_that_reads_names(tiny: Tiny, method: str) -> None:
    matcher = alone(tiny, method=method).adapt(MANY, force=True)
    assert np.isfinite(matcher.predict_proba(TEXTS)).all()


def test_it_is_saved_copied_and_exported(adapted: MaskMatcher, tmp_path: Path) -> None:
    expected = adapted.predict_proba(TEXTS)
    folder = adapted.save_pretrained(tmp_path / "model")
    export(adapted, tmp_path / "export")
    for other in (
        MaskMatcher.from_pretrained(folder),
        ExportedMatcher.from_pretrained(tmp_path / "export"),
        copy.deepcopy(adapted),
    ):
        np.testing.assert_allclose(other.predict_proba(TEXTS), expected, atol=1e-4)
    assert "adapted to 240 unlabelled texts" in (folder / "README.md").read_text()
    for path in folder.iterdir():
        assert MANY[7].encode() not in path.read_bytes(), "no text is saved"


def test_adapted_classifiers_conform(adapted: MaskMatcher, tmp_path: Path) -> None:
    check_predictor(
        adapted, TEXTS, reload=lambda each: MaskMatcher.from_pretrained(each.save_pretrained(tmp_path / "m"))
    )


def test_labels_can_be_edited(tiny: Tiny, adapted: MaskMatcher, tmp_path: Path) -> None:
    """Prototypes are kept, so a label that is added later is adapted like the others."""
    later = alone(tiny)
    later.remove_labels(["exchange rate"])
    later.adapt(MANY, force=True).add_labels(["exchange rate"])
    logits, expected = (np.log(each.predict_proba(TEXTS)) for each in (later, adapted))
    for one, other in zip(logits, expected, strict=True):  # the same up to the scale, which was found with two labels
        assert np.corrcoef(one, other)[0, 1] > 0.999
    adapted.rename_label("refund", "money back").remove_labels(["card lost"])
    assert adapted.predict_proba(TEXTS).shape == (len(TEXTS), 2)
    reloaded = MaskMatcher.from_pretrained(adapted.save_pretrained(tmp_path / "model"))
    np.testing.assert_allclose(reloaded.predict_proba(TEXTS), adapted.predict_proba(TEXTS), atol=1e-5)


def test_labels_with_phrases(tiny: Tiny) -> None:
    labels = {"refund": ["money back", "pay back"], "card lost": "stolen or gone", "exchange rate": ["currency"]}
    matcher = MaskMatcher.from_pretrained(tiny("bert"), labels, verbose=False).adapt(MANY, force=True)
    assert matcher.predict_proba(TEXTS).shape == (len(TEXTS), 3)


def test_a_trained_classifier(tiny: Tiny) -> None:
    matcher = alone(tiny).fit(TEXTS, TRUTH, unlabeled=MANY, dev=(TEXTS, TRUTH), **A_LITTLE)
    assert matcher.adaptation_ is not None
    assert matcher.adaptation_.dev is not None
    before, after = matcher.adaptation_.dev
    assert matcher.adaptation_.adapted == (after >= before)
    matcher.adapt(MANY, force=True)
    matcher.fit(TEXTS, TRUTH, **A_LITTLE)  # other weights: what was learned of texts no longer holds
    assert matcher.bank.adaptation is None
    assert matcher.adaptation_ is None


def test_a_trained_classifier_smooths_texts(tiny: Tiny, tmp_path: Path) -> None:
    """Its label vectors stay; saved, copied and exported it answers the same."""
    matcher = alone(tiny).fit(TEXTS, TRUTH, **A_LITTLE)
    plain, labels = matcher.predict_proba(TEXTS), matcher.pipeline.scorer.vectors
    matcher.adapt(MANY, force=True)
    expected = matcher.predict_proba(TEXTS)
    assert np.abs(expected - plain).max() > 1e-3
    np.testing.assert_array_equal(matcher.pipeline.scorer.vectors, labels)
    export(matcher, tmp_path / "export")
    folder = matcher.save_pretrained(tmp_path / "model")
    for other in (
        MaskMatcher.from_pretrained(folder),
        ExportedMatcher.from_pretrained(tmp_path / "export"),
        copy.deepcopy(matcher),
    ):
        np.testing.assert_allclose(other.predict_proba(TEXTS), expected, atol=1e-4)
    check_predictor(matcher, TEXTS)


def test_few_texts_are_not_used(tiny: Tiny, caplog: pytest.LogCaptureFixture) -> None:
    matcher = alone(tiny)
    expected = matcher.predict_proba(TEXTS)
    matcher.adapt([*TEXTS, *TEXTS])
    assert "only 12 texts to use" in caplog.text
    np.testing.assert_array_equal(matcher.predict_proba(TEXTS), expected)
    assert matcher.adaptation_ is not None
    assert not matcher.adaptation_.adapted


def test_an_adapted_classifier_stays_adapted_if_more_texts_do_not_help(adapted: MaskMatcher) -> None:
    expected = adapted.predict_proba(TEXTS)
    adapted.adapt(TEXTS)
    assert adapted.adaptation_ is not None
    assert not adapted.adaptation_.adapted
    assert "stays as it is" in str(adapted.adaptation_)
    np.testing.assert_array_equal(adapted.predict_proba(TEXTS), expected)


def test_texts_that_do_not_group_by_the_labels(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("maskmatch.training.adapt.LEAST_AGREEMENT", 1.01)
    matcher = alone(tiny).adapt(MANY)
    assert "do not group by these labels" in caplog.text
    assert matcher.bank.adaptation is None


@pytest.mark.parametrize(("after", "kept"), [(0.6, True), (0.5, True), (0.4, False)])
def test_dev_data_decides(tiny: Tiny, monkeypatch: pytest.MonkeyPatch, after: float, kept: bool) -> None:
    found = iter((0.5, after))
    monkeypatch.setattr("maskmatch.training.dev.DevData.metrics", lambda *_: {"score": next(found)})
    matcher = alone(tiny).adapt(MANY, dev=(TEXTS, TRUTH))
    assert matcher.adaptation_ is not None
    assert matcher.adaptation_.adapted == kept
    assert (matcher.bank.adaptation is not None) == kept


def test_accuracy_on_dev_is_that_of_the_classifier(tiny: Tiny) -> None:
    matcher = alone(tiny)
    before = matcher.evaluate(TEXTS, TRUTH).accuracy
    matcher.adapt(MANY, dev=(TEXTS, TRUTH), force=True)
    assert matcher.adaptation_ is not None
    assert matcher.adaptation_.dev == (round(before, 4), round(matcher.evaluate(TEXTS, TRUTH).accuracy, 4))


def test_dev_rows_may_be_iterators_and_must_have_known_labels(tiny: Tiny) -> None:
    matcher = alone(tiny).adapt(MANY, dev=(iter(TEXTS), iter(TRUTH)), force=True)
    assert matcher.adaptation_ is not None
    assert matcher.adaptation_.dev is not None
    matcher.fit(TEXTS, TRUTH, dev=(iter(TEXTS), iter(TRUTH)), unlabeled=MANY, **A_LITTLE)
    assert matcher.adaptation_.dev is not None
    assert "none of the labels" in refusal(alone(tiny).adapt, MANY, dev=(TEXTS, ["zzz"] * len(TEXTS)))


def test_what_cannot_be_adapted_is_reported_before_training(tiny: Tiny) -> None:
    class Never(TrainerCallback):
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            raise AssertionError("trained")

    for matcher, rows, texts in (
        (alone(tiny, method="fine-tuning"), TRUTH, MANY),
        (alone(tiny), TRUTH, []),
        (alone(tiny), [[label] for label in TRUTH], MANY),
    ):
        assert refusal(matcher.fit, TEXTS, rows, unlabeled=texts, callbacks=[Never()], **A_LITTLE)


def test_agreement_is_cohens_kappa_for_any_number_of_labels() -> None:
    from sklearn.metrics import cohen_kappa_score

    random = np.random.default_rng(0)
    one = random.integers(0, 7, 500)
    other = np.where(random.random(500) < 0.6, one, random.integers(0, 7, 500))
    assert cohen_kappa(one, other, 7) == pytest.approx(cohen_kappa_score(one, other))
    assert cohen_kappa(one * 0, one * 0, 7) == 0.0
    many = random.integers(0, 1_000_000, 20_000)
    assert cohen_kappa(many, many, 1_000_000) == pytest.approx(1.0)


def test_names_keep_more_weight_where_texts_do_not_group(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = []
    for agreement in (0.4, 0.9):
        monkeypatch.setattr("maskmatch.training.adapt.cohen_kappa", lambda *_, found=agreement: found)
        adaptation = alone(tiny).adapt(MANY, force=True).bank.adaptation
        assert adaptation is not None
        weights.append(adaptation.name_weight)
    assert weights == [1.0, pytest.approx(0.1)]


def test_a_stream_is_read_in_constant_memory(tiny: Tiny) -> None:
    alive = 0

    def texts() -> Iterator[str]:
        nonlocal alive
        for number in range(5000):
            alive += 1
            yield f"refund {number}"

    matcher = alone(tiny).adapt(texts(), max_texts=150, force=True)
    assert matcher.adaptation_ is not None
    assert (matcher.adaptation_.texts, matcher.adaptation_.used) == (5000, 150)


def test_each_text_of_a_stream_has_the_same_chance() -> None:
    hits = np.zeros(40)
    for seed in range(400):
        drawn = draw_texts([f"text {number}" for number in range(40)], ("text",), 10, seed)
        hits[[int(text.split()[1]) for text in drawn.texts]] += 1
    assert abs(hits / 400 - 0.25).max() < 0.1


def test_blank_and_repeated_texts(tiny: Tiny, caplog: pytest.LogCaptureFixture) -> None:
    matcher = alone(tiny).adapt(["", "  ", *MANY, *MANY], force=True)
    assert "2 of 482 unlabelled texts are blank" in caplog.text
    assert matcher.adaptation_ is not None
    assert matcher.adaptation_.used == 240


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "fine-tuning"}, "must be trained first"),
        ({"multi_label": True}, "several labels per text"),
        ({"label_prompt": "{text} {label} is {mask}."}, "read with each text"),
        ({"masks": "late", "prompt": "{text} {mask} {mask}", "label_prompt": "{label} {mask} {mask}"}, "late"),
    ],
)
def test_what_cannot_be_adapted(tiny: Tiny, options: dict[str, Any], said: str) -> None:
    assert said in refusal(alone(tiny, **options).adapt, MANY)


@pytest.mark.parametrize("texts", ["one text", 3, [], [""]])
def test_what_is_no_list_of_texts(tiny: Tiny, texts: Any) -> None:
    assert refusal(alone(tiny).adapt, texts)


def test_another_method_drops_what_was_learned(
    adapted: MaskMatcher, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = adapted.save_pretrained(tmp_path / "model")
    with caplog.at_level(logging.WARNING):
        other = MaskMatcher.from_pretrained(folder, method="semantic-matching")
    assert "unlabelled texts cannot be used" in caplog.text
    assert other.bank.adaptation is None
    assert MaskMatcher.from_pretrained(folder, temperature=0.2).bank.adaptation is not None


def test_answers_are_as_confident_as_before(tiny: Tiny, adapted: MaskMatcher) -> None:
    before = alone(tiny).predict_proba(MANY).max(axis=1).mean()
    assert adapted.predict_proba(MANY).max(axis=1).mean() == pytest.approx(before, abs=0.02)


def test_other_masks_drop_what_was_learned(tiny: Tiny) -> None:
    two = {"prompt": "{text} {mask} {mask}", "label_prompt": "{label} {mask} {mask}"}
    matcher = alone(tiny, **two).adapt(MANY, force=True)
    assert matcher.bank.with_config(matcher.config.changed({"masks": "concat"})).adaptation is None


def test_interrupted_training_leaves_no_stale_adaptation(adapted: MaskMatcher) -> None:
    class Stop(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        adapted.fit(TEXTS, TRUTH, callbacks=[Stop()], **A_LITTLE)
    assert adapted.bank.adaptation is None
