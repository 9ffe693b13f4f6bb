"""Batches by tokens: none too large, every row once an epoch, the same after a stop."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_training import Witness, same_weights

from maskmatch import MaskMatcher, MaskMatchError
from maskmatch.training.batches import EpochOrder, TokenBatches, batch_count, needs_token_batches
from toy_data import LABELS, TEXTS, TRUTH

Tiny = Callable[..., Path]

LONG = [*TEXTS[:-1], " ".join(["money"] * 30)]
FEW_TOKENS = {"learning_rate": 1e-2, "batch_size": 6, "epochs": 3, "max_tokens": 60}

lengths = st.lists(st.integers(1, 60), min_size=1, max_size=60).map(lambda found: np.array(found, dtype=np.int64))


@given(tokens=lengths, batch_size=st.integers(1, 16), max_tokens=st.integers(1, 300), seed=st.integers(0, 5))
def test_every_row_comes_once_in_batches_that_are_small_enough(
    tokens: np.ndarray, batch_size: int, max_tokens: int, seed: int
) -> None:
    batches = TokenBatches(EpochOrder(len(tokens), seed), tokens, batch_size, max_tokens)
    found = list(batches)
    assert len(found) == len(batches)
    assert sorted(row for batch in found for row in batch) == list(range(len(tokens)))
    for batch in found:
        assert 1 <= len(batch) <= batch_size
        assert tokens[batch].sum() <= max_tokens or len(batch) == 1


@given(tokens=lengths, batch_size=st.integers(1, 16), max_tokens=st.integers(1, 300))
def test_batches_are_of_about_the_same_size(tokens: np.ndarray, batch_size: int, max_tokens: int) -> None:
    tokens = np.minimum(tokens, max(1, max_tokens // 2))  # none that is a batch of its own
    batches = list(TokenBatches(EpochOrder(len(tokens), 0), tokens, batch_size, max_tokens))
    whole = [batch for batch in batches if len(batch) == max(map(len, batches))]
    sums = [int(tokens[batch].sum()) for batch in whole]
    assert max(sums) - min(sums) <= tokens.max() - tokens.min()


def test_there_are_no_more_batches_than_it_takes() -> None:
    assert batch_count(np.full(64, 10), batch_size=32, max_tokens=320) == 2
    assert batch_count(np.full(64, 10), batch_size=32, max_tokens=319) == 3
    assert batch_count(np.array([500, 60, 5, 5, 60]), batch_size=32, max_tokens=100) == 4
    assert batch_count(np.array([500, 5, 5]), batch_size=32, max_tokens=100) == 2  # the long one by itself
    assert not needs_token_batches(np.full(64, 10), batch_size=32, max_tokens=320)
    assert needs_token_batches(np.full(64, 10), batch_size=32, max_tokens=319)


def test_epochs_differ_and_can_be_repeated() -> None:
    tokens = np.arange(1, 41)

    def epoch(seed: int, number: int) -> list[list[int]]:
        batches = TokenBatches(EpochOrder(len(tokens), seed), tokens, 8, 100)
        batches.sampler.set_epoch(number)
        return list(batches)

    assert epoch(0, 1) == epoch(0, 1)
    assert epoch(0, 0) != epoch(0, 1)
    assert epoch(0, 0) != epoch(1, 0)


class TestTraining:
    def test_long_texts_take_more_steps_and_short_ones_as_many_as_ever(self, tiny: Tiny) -> None:
        def steps(texts: list[str], max_tokens: int) -> int:
            matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
            matcher.fit(texts, TRUTH, **{**FEW_TOKENS, "max_tokens": max_tokens})
            assert matcher.training_ is not None
            return matcher.training_.steps

        assert steps(TEXTS, 8_192) == steps(LONG, 8_192) == 6
        assert steps(LONG, 60) > 6

    def test_a_budget_that_is_never_reached_changes_nothing(self, tiny: Tiny) -> None:
        one, other = (
            MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, TRUTH, **{**FEW_TOKENS, "max_tokens": most})
            for most in (5_000, 50_000)
        )
        assert same_weights(one, other)

    def test_no_step_reads_more_tokens_than_it_may(self, tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
        from maskmatch.training.data import TrainingData

        read: list[tuple[int, ...]] = []
        usual = TrainingData.batch

        def batch(self: TrainingData, rows: list[int]) -> dict[str, object]:
            read.append(tuple(rows))
            assert self.tokens[rows].sum() <= 60
            return usual(self, rows)

        monkeypatch.setattr(TrainingData, "batch", batch)
        MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(LONG, TRUTH, **FEW_TOKENS)
        an_epoch = len(read) // 3
        for epoch in range(3):
            rows = [row for batch in read[epoch * an_epoch : (epoch + 1) * an_epoch] for row in batch]
            assert sorted(rows) == list(range(len(LONG)))
        assert read[:an_epoch] != read[an_epoch : 2 * an_epoch]

    def test_a_stopped_run_resumes_and_ends_like_an_uninterrupted_one(self, tiny: Tiny, tmp_path: Path) -> None:
        def fresh() -> MaskMatcher:
            return MaskMatcher.from_pretrained(tiny("bert"), LABELS)

        whole = fresh().fit(LONG, TRUTH, checkpoints=tmp_path / "whole", **FEW_TOKENS)
        assert whole.training_ is not None
        an_epoch = whole.training_.steps // 3
        stop = an_epoch + an_epoch // 2 + 1
        assert an_epoch < stop < 2 * an_epoch  # within an epoch that is not the first
        half = fresh().fit(LONG, TRUTH, checkpoints=tmp_path / "half", callbacks=[Witness(stop)], **FEW_TOKENS)
        assert not same_weights(whole, half)
        resumed = fresh().fit(LONG, TRUTH, checkpoints=tmp_path / "half", resume=True, **FEW_TOKENS)
        assert same_weights(whole, resumed)

    def test_it_goes_with_steps_of_several_batches_dev_data_and_a_part_of_an_epoch(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        options = {**FEW_TOKENS, "epochs": 1.5, "arguments": {"gradient_accumulation_steps": 2}}
        matcher.fit(LONG, TRUTH, dev=(TEXTS, TRUTH), **options)
        assert matcher.training_ is not None
        batches = batch_count(matcher.bank.tokenize(LONG).tokens, 6, 60)
        assert matcher.training_.steps == math.ceil(1.5 * math.ceil(batches / 2))
        assert matcher.training_.dev is not None
        assert matcher.training_.config["max_tokens"] == 60

    def test_a_much_smaller_step_is_told(self, tiny: Tiny, caplog: pytest.LogCaptureFixture) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        matcher.fit(LONG, TRUTH, **{**FEW_TOKENS, "max_tokens": 30})
        assert "The texts are long: a step takes" in caplog.text

    def test_all_readings_of_a_text_count(self, tiny: Tiny) -> None:
        plain = MaskMatcher.from_pretrained(tiny("bert"), LABELS, prompt="{text} {mask}")
        pool = MaskMatcher.from_pretrained(tiny("bert"), LABELS, prompt=["{text} {mask}", "{mask} {text}"])
        seen = MaskMatcher.from_pretrained(
            tiny("bert"), LABELS, prompt="{text} {mask}", label_prompt="{text} {label} {mask}"
        )
        once = plain.bank.tokenize(TEXTS).tokens
        assert (pool.bank.tokenize(TEXTS).tokens == 2 * once).all()
        assert (seen.bank.tokenize(TEXTS).tokens > (1 + len(LABELS)) * once).all()

    @pytest.mark.parametrize("wrong", [0, -1, 2.5, "many"])
    def test_a_budget_that_is_no_number_is_refused(self, tiny: Tiny, wrong: object) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        with pytest.raises(MaskMatchError, match="max_tokens"):
            matcher.fit(TEXTS, TRUTH, max_tokens=wrong)
