"""Training: it learns, it can be repeated exactly, stopped, resumed, and steered."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import Dropout
from transformers import TrainerCallback

from maskmatch import MaskMatcher, MaskMatchError, SimilarityConfig, TrainingConfig
from maskmatch.config.methods import ANY_TEXT_METHODS
from maskmatch.model.encoder import Encoder
from matcher_tools import new_matcher
from toy_data import FAST, LABELS, TEXTS, TRUTH

Tiny = Callable[..., Path]

SHORT = {"learning_rate": 1e-2, "batch_size": 4, "epochs": 4}  # 12 steps


def weights(matcher: MaskMatcher) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in matcher.model.state_dict().items()}


def same_weights(one: MaskMatcher, other: MaskMatcher) -> bool:
    left, right = weights(one), weights(other)
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


class Witness(TrainerCallback):
    """Notes what happens, and stops a run after some steps if asked to."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.stop_after = stop_after
        self.steps = 0
        self.scores: list[float] = []
        self.arguments: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        self.arguments = args

    def on_step_end(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        self.steps += 1
        if state.global_step == self.stop_after:
            control.should_training_stop = True

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **options: Any) -> None:
        self.scores.append(metrics["eval_score"])


class TestLearning:
    @pytest.mark.parametrize("seed", [0, 1])
    def test_mask_matching_learns_the_toy_set(self, tiny: Tiny, seed: int) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        assert matcher.evaluate(TEXTS, TRUTH).accuracy < 1.0
        assert matcher.fit(TEXTS, TRUTH, **FAST, seed=seed) is matcher
        assert matcher.evaluate(TEXTS, TRUTH).accuracy == 1.0
        summary = matcher.training_
        assert summary is not None
        assert (summary.texts, summary.labels, summary.steps) == (12, 3, FAST["epochs"])
        usual = {"max_tokens": 8192, "hold": 0.0, "label_encoding": "full", "example_share": 0.6}
        usual |= {"head_rate": 10.0, "weight_decay": 0.01, "max_skew": 2.0, "logit_adjustment": 0.0}
        trained = {name: value for name, value in FAST.items() if name != "calibrate"}
        assert summary.config == {**trained, **usual, "seed": seed}

    @pytest.mark.parametrize("wanted", [True, False, None])
    def test_dropout_is_the_users_choice(self, tiny: Tiny, wanted: bool | None) -> None:
        matcher, seen = MaskMatcher.from_pretrained(tiny("bert"), LABELS), []

        class Look(TrainerCallback):
            def on_step_end(self, *args: Any, model: Any, **options: Any) -> None:
                seen.extend(module.training for module in model.encoder.modules() if isinstance(module, Dropout))

        matcher.fit(TEXTS, TRUTH, epochs=2, dropout=not wanted)
        seen.clear()
        matcher.fit(TEXTS, TRUTH, epochs=2, dropout=wanted, callbacks=[Look()])
        assert seen
        assert all(each is (wanted is not False) for each in seen)
        assert matcher.training_ is not None
        assert matcher.training_.config.get("dropout") == wanted

    def test_dropout_is_a_choice_of_two(self, tiny: Tiny) -> None:
        for wrong in ("no", 1, 0.1, np.float32(0)):
            with pytest.raises(MaskMatchError, match=r"dropout is .*; it must be True, False or None\."):
                MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, TRUTH, dropout=wrong)
        assert TrainingConfig(dropout=np.bool_(False)).dropout is False  # type: ignore[arg-type]

    @pytest.mark.parametrize("method", ANY_TEXT_METHODS)
    def test_every_method_fits_predicts_saves_and_loads(self, tiny: Tiny, tmp_path: Path, method: str) -> None:
        labels = {"refund": ["money back"], "card lost": "the card is gone", "exchange rate": None}
        matcher = MaskMatcher.from_pretrained(tiny("bert"), labels, method=method)
        matcher.fit(TEXTS, TRUTH, **{**FAST, "epochs": 60})
        accuracy = matcher.evaluate(TEXTS, TRUTH).accuracy
        assert accuracy >= 0.9, method
        loaded = MaskMatcher.from_pretrained(matcher.save_pretrained(tmp_path / "model"))
        assert loaded.config == matcher.config
        np.testing.assert_allclose(loaded.predict_proba(TEXTS), matcher.predict_proba(TEXTS), atol=1e-6)
        assert loaded.predict(TEXTS) == matcher.predict(TEXTS)

    def test_a_second_fit_goes_on_from_the_first(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method="soft-prompt")
        matcher.fit(TEXTS, TRUTH, **FAST)
        learned = matcher.predict_proba(TEXTS)
        matcher.fit(TEXTS, TRUTH, epochs=1, learning_rate=1e-6, calibrate=False)
        np.testing.assert_allclose(matcher.predict_proba(TEXTS), learned, atol=1e-2)

    def test_a_learned_temperature_learns(self, tiny: Tiny, tmp_path: Path) -> None:
        similarity = SimilarityConfig(learn_temperature=True)
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, similarity=similarity)
        matcher.fit(TEXTS, TRUTH, **SHORT)
        temperature = matcher.model.similarity.temperature
        assert temperature != pytest.approx(0.05, rel=1e-3)
        loaded = MaskMatcher.from_pretrained(matcher.save_pretrained(tmp_path / "model"))
        assert loaded.model.similarity.temperature == pytest.approx(temperature)

    def test_what_is_not_pretrained_learns_at_its_own_rate(self, tiny: Tiny) -> None:
        def matrix(head_rate: float) -> torch.Tensor:
            matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method="fine-tuning")
            matcher.fit(TEXTS, TRUTH, epochs=5, learning_rate=1e-4, head_rate=head_rate)
            learned = matcher.model.labels
            assert learned is not None
            return learned.weight.detach()

        still, slow, fast = matrix(1e-9), matrix(1.0), matrix(100.0)
        assert (fast - still).abs().mean() > 20 * (slow - still).abs().mean() > 0


class TestSeeds:
    @pytest.mark.parametrize("method", ["mask-matching", "fine-tuning"])
    def test_same_seed_same_weights_other_seed_others(self, tiny: Tiny, method: str) -> None:
        def trained(seed: int, disturb: bool = False) -> MaskMatcher:
            matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method=method)
            if disturb:  # what was done before must not matter
                torch.rand(7)
                np.random.rand(7)
                if method == "mask-matching":
                    matcher.predict(TEXTS)
                else:
                    with pytest.raises(MaskMatchError):
                        matcher.predict(TEXTS)
            return matcher.fit(TEXTS, TRUTH, **SHORT, seed=seed)

        first, again, other = trained(3), trained(3, disturb=True), trained(4)
        assert same_weights(first, again)
        assert np.array_equal(first.predict_proba(TEXTS), again.predict_proba(TEXTS))
        assert not same_weights(first, other)
        assert np.abs(first.predict_proba(TEXTS) - other.predict_proba(TEXTS)).max() > 1e-4


class TestConfig:
    def test_options_and_config_are_two_ways_to_say_the_same(self, tiny: Tiny) -> None:
        by_options = MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, TRUTH, **SHORT)
        by_config = MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, TRUTH, training=TrainingConfig(**SHORT))
        assert same_weights(by_options, by_config)
        both = MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, TRUTH, training=TrainingConfig(**SHORT), epochs=1)
        assert both.training_ is not None
        assert both.training_.steps == 3

    def test_arguments_reach_the_trainer(self, tiny: Tiny) -> None:
        witness = Witness()
        matcher = MaskMatcher.from_pretrained(tiny("bert"))
        arguments = {"max_steps": 2, "gradient_accumulation_steps": 2, "run_name": "toy"}
        matcher.fit(TEXTS, TRUTH, **SHORT, callbacks=[witness], arguments=arguments)
        assert witness.arguments.run_name == "toy"
        assert witness.arguments.gradient_accumulation_steps == 2
        assert matcher.training_ is not None
        assert matcher.training_.steps == witness.steps == 2

    @pytest.mark.parametrize(
        ("arguments", "steps"),
        [
            ({}, 12),
            ({"max_steps": 40}, 40),
            ({"gradient_accumulation_steps": 2}, 8),
            ({"per_device_train_batch_size": 2}, 24),
            ({"num_train_epochs": 10}, 30),
        ],
    )
    def test_dev_is_looked_at_ten_times_whatever_makes_the_steps(
        self, tiny: Tiny, arguments: dict[str, Any], steps: int
    ) -> None:
        witness = Witness()
        matcher = MaskMatcher.from_pretrained(tiny("bert"))
        matcher.fit(TEXTS, TRUTH, dev=(TEXTS, TRUTH), **SHORT, callbacks=[witness], arguments=arguments)
        assert matcher.training_ is not None
        assert matcher.training_.steps == steps
        assert witness.arguments.eval_steps == math.ceil(steps / 10)
        assert len(witness.scores) == steps // math.ceil(steps / 10)

    def test_arguments_that_make_no_number_of_steps_are_refused(self, tiny: Tiny) -> None:
        for arguments in ({"max_steps": "many"}, {"gradient_accumulation_steps": 0}):
            with pytest.raises(MaskMatchError, match="training arguments do not fit"):
                MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, TRUTH, arguments=arguments)

    def test_numbers_of_numpy_are_numbers(self, tiny: Tiny, tmp_path: Path) -> None:
        options = {"epochs": np.int64(1), "batch_size": np.int64(4), "seed": np.int32(1)}
        matcher = MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, TRUTH, **options)
        matcher.save_pretrained(tmp_path / "model")
        assert MaskMatcher.from_pretrained(tmp_path / "model").training_ == matcher.training_

    def test_nothing_is_left_in_the_working_folder(
        self, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, TRUTH, dev=(TEXTS, TRUTH), **SHORT)
        assert list(tmp_path.iterdir()) == []


class TestDev:
    def test_the_best_weights_on_dev_are_kept(self, tiny: Tiny) -> None:
        witness = Witness()
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        by_name = {**SHORT, "epochs": 10, "example_share": 0}
        matcher.fit(TEXTS, TRUTH, dev=(TEXTS, TRUTH), callbacks=[witness], **by_name)
        assert len(witness.scores) >= 5
        assert matcher.training_ is not None
        assert matcher.training_.dev is not None
        assert matcher.training_.dev["accuracy"] == max(witness.scores)
        assert matcher.evaluate(TEXTS, TRUTH).accuracy == pytest.approx(max(witness.scores))

    def test_dev_is_measured_with_the_weights_of_the_moment(self, tiny: Tiny) -> None:
        """Labels are read anew at each look, or the scores would be those of labels from before training."""
        seen: list[float] = []

        class Look(TrainerCallback):
            def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any) -> None:
                fresh = new_matcher(matcher.encoder, matcher.config, matcher.labels)
                seen.append(fresh.evaluate(TEXTS, TRUTH).accuracy - metrics["eval_accuracy"])

        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        matcher.predict(TEXTS)
        matcher.fit(TEXTS, TRUTH, dev=(TEXTS, TRUTH), callbacks=[Look()], **SHORT)
        assert len(seen) >= 5
        np.testing.assert_allclose(seen, 0.0, atol=1e-6)

    def test_patience_stops_early_and_goes_back(self, tiny: Tiny) -> None:
        """Dev rows that contradict the training rows get worse with every step, so the first look is best."""
        contradiction = [LABELS[(LABELS.index(label) + 1) % 3] for label in TRUTH]
        witness = Witness()
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        matcher.fit(TEXTS, TRUTH, dev=(TEXTS, contradiction), patience=2, callbacks=[witness], **FAST)
        assert matcher.training_ is not None
        assert matcher.training_.steps < 40
        best = int(np.argmax(witness.scores))
        assert len(witness.scores) == best + 1 + 2
        assert matcher.evaluate(TEXTS, contradiction).accuracy == pytest.approx(max(witness.scores))

    def test_labels_that_only_dev_has_count_as_wrong(self, tiny: Tiny, caplog: pytest.LogCaptureFixture) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        matcher.fit(TEXTS, TRUTH, dev=(TEXTS, ["parcel"] * 11 + TRUTH[-1:]), **SHORT)
        assert matcher.training_ is not None
        assert matcher.training_.dev is not None
        assert matcher.training_.dev["accuracy"] <= 1 / 12
        assert "lacks labels of the dev data, whose rows count as wrong: 'parcel'" in caplog.text

    def test_dev_data_of_other_labels_is_refused(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        with pytest.raises(MaskMatchError, match="dev data"):
            matcher.fit(TEXTS, TRUTH, dev=(TEXTS, [0, 1, 2] * 4), **SHORT)
        with pytest.raises(MaskMatchError, match="dev is"):
            matcher.fit(TEXTS, TRUTH, dev=(TEXTS,), **SHORT)
        with pytest.raises(MaskMatchError, match="patience"):
            matcher.fit(TEXTS, TRUTH, patience=2, **SHORT)

    def test_dev_rows_are_checked_before_training(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        before = weights(matcher)
        with pytest.raises(MaskMatchError, match="In the dev data: There are 12 texts but 3 labels"):
            matcher.fit(TEXTS, TRUTH, dev=(TEXTS, TRUTH[:3]), **SHORT)
        with pytest.raises(MaskMatchError, match="In the dev data: Row 0"):
            matcher.fit(TEXTS, TRUTH, dev=(TEXTS[:1], [["refund", "card lost"]]), **SHORT)
        with pytest.raises(MaskMatchError, match="In the dev data: Text 1"):
            matcher.fit(TEXTS, TRUTH, dev=(["fine", None], TRUTH[:2]), **SHORT)
        after = weights(matcher)
        assert all(torch.equal(before[name], after[name]) for name in before)

    def test_numbers_of_dev_rows_may_be_written_otherwise(self, tiny: Tiny) -> None:
        numbers = [LABELS.index(label) for label in TRUTH]
        plain = MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, numbers, dev=(TEXTS, numbers), **SHORT)
        other = MaskMatcher.from_pretrained(tiny("bert")).fit(
            TEXTS, numbers, dev=(TEXTS, list(map(str, numbers))), **SHORT
        )
        assert plain.training_ is not None
        assert other.training_ is not None
        assert other.training_.dev == plain.training_.dev


class TestStopping:
    def test_callbacks_are_called_and_can_stop_a_run(self, tiny: Tiny) -> None:
        witness = Witness(stop_after=5)
        matcher = MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, TRUTH, callbacks=[witness], **SHORT)
        assert matcher.training_ is not None
        assert matcher.training_.steps == witness.steps == 5
        assert len(matcher.predict(TEXTS)) == 12

    @pytest.mark.parametrize("method", ["mask-matching", "fine-tuning"])
    def test_a_stopped_run_resumes_and_ends_like_an_uninterrupted_one(
        self, tiny: Tiny, tmp_path: Path, method: str
    ) -> None:
        def fresh() -> MaskMatcher:
            return MaskMatcher.from_pretrained(tiny("bert"), LABELS, method=method)

        whole = fresh().fit(TEXTS, TRUTH, checkpoints=tmp_path / "whole", **SHORT)
        half = fresh().fit(TEXTS, TRUTH, checkpoints=tmp_path / "half", callbacks=[Witness(6)], **SHORT)
        assert not same_weights(whole, half)
        witness = Witness()
        resumed = fresh().fit(TEXTS, TRUTH, checkpoints=tmp_path / "half", resume=True, callbacks=[witness], **SHORT)
        assert resumed.training_ is not None
        assert resumed.training_.steps == 12
        assert 0 < witness.steps < 12
        assert same_weights(whole, resumed)
        assert np.array_equal(whole.predict_proba(TEXTS), resumed.predict_proba(TEXTS))

    def test_checkpoints_do_not_change_the_result(self, tiny: Tiny, tmp_path: Path) -> None:
        plain = MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, TRUTH, **SHORT)
        kept = MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, TRUTH, checkpoints=tmp_path, **SHORT)
        assert same_weights(plain, kept)
        assert len(list(tmp_path.glob("checkpoint-*"))) == 2

    def test_there_has_to_be_a_checkpoint_to_resume_from(self, tiny: Tiny, tmp_path: Path) -> None:
        for folder in (tmp_path, tmp_path / "nowhere"):
            with pytest.raises(MaskMatchError, match=r"no checkpoint in .*" + folder.name):
                MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, TRUTH, checkpoints=folder, resume=True)

    def test_a_checkpoint_that_a_crash_cut_short_is_passed_over(self, tiny: Tiny, tmp_path: Path) -> None:
        first = MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, TRUTH, checkpoints=tmp_path, **SHORT)
        (tmp_path / "checkpoint-99").mkdir()
        again = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        again.fit(TEXTS, TRUTH, checkpoints=tmp_path, resume=True, **SHORT)
        ours, theirs = weights(first), weights(again)
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)

    def test_a_folder_of_checkpoints_belongs_to_one_run(self, tiny: Tiny, tmp_path: Path) -> None:
        MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, TRUTH, checkpoints=tmp_path, **SHORT)
        with pytest.raises(MaskMatchError, match="earlier run"):
            MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, TRUTH, checkpoints=tmp_path, **SHORT)
        with pytest.raises(MaskMatchError, match="another run"):
            MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(
                TEXTS[::-1], TRUTH, checkpoints=tmp_path, resume=True, **SHORT
            )

    def test_an_interrupted_training_leaves_no_dropout_behind(self, tiny: Tiny) -> None:
        class Interrupt(TrainerCallback):
            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                raise KeyboardInterrupt

        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        with pytest.raises(KeyboardInterrupt):
            matcher.fit(TEXTS, TRUTH, callbacks=[Interrupt()], **SHORT)
        assert not matcher.model.training
        np.testing.assert_array_equal(matcher.predict_proba(TEXTS), matcher.predict_proba(TEXTS))

    def test_a_checkpoint_of_another_classifier_is_refused(self, tiny: Tiny, tmp_path: Path) -> None:
        two = MaskMatcher.from_pretrained(tiny("bert"), method="fine-tuning")
        two.fit(TEXTS[:8], TRUTH[:8], checkpoints=tmp_path, **SHORT)
        three = MaskMatcher.from_pretrained(tiny("bert"), method="fine-tuning")
        with pytest.raises(MaskMatchError, match="checkpoint") as caught:
            three.fit(TEXTS, TRUTH, checkpoints=tmp_path, resume=True, **SHORT)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("several", [False, True])
    def test_an_interrupted_run_leaves_no_labels_of_before(self, tiny: Tiny, several: bool) -> None:
        class Interrupt(TrainerCallback):
            def on_step_end(self, args: Any, state: Any, control: Any, **options: Any) -> None:
                if state.global_step == 3:
                    raise KeyboardInterrupt

        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        matcher.predict(TEXTS)
        with pytest.raises(KeyboardInterrupt):
            matcher.fit(TEXTS, [[label] for label in TRUTH] if several else TRUTH, callbacks=[Interrupt()], **SHORT)
        fresh = new_matcher(matcher.encoder, matcher.config, matcher.labels)
        np.testing.assert_allclose(matcher.predict_proba(TEXTS), fresh.predict_proba(TEXTS), atol=1e-6)


def test_the_encoder_is_trained_in_place_and_stays_a_plain_encoder(tiny: Tiny, tmp_path: Path) -> None:
    """A saved classifier's encoder is one that any other program can load."""
    matcher = MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, TRUTH, **SHORT)
    folder = matcher.save_pretrained(tmp_path / "model")
    encoder = Encoder.load(folder, "model")
    saved = encoder.model.state_dict()
    assert all(torch.equal(saved[name], value) for name, value in matcher.encoder.model.state_dict().items())


def test_a_single_step_already_trains(tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    before = weights(matcher)
    matcher.fit(TEXTS, TRUTH, arguments={"max_steps": 1}, epochs=1, batch_size=len(TEXTS))
    after = weights(matcher)
    assert any(not torch.equal(before[name], after[name]) for name in before)
