"""The classifier that users meet: probabilities, evaluation, devices."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from maskmatch import MaskMatcher, SimilarityConfig
from maskmatch.model import readout
from maskmatch.model.similarity import Similarity
from toy_data import A_LITTLE, LABELS, TEXTS, TRUTH

Tiny = Callable[..., Path]

LONG_AND_SHORT = [
    "refund",
    "Where is my refund? I sent the parcel back two weeks ago and it is still pending.",
    "?",
    "card lost",
    "x " * 300,
    "It is about the exchange rate; this is a question of money.",
    "money",
]


class TestProbabilities:
    def test_rows_sum_to_one_and_columns_are_labels(self, matcher: MaskMatcher) -> None:
        probabilities = matcher.predict_proba(LONG_AND_SHORT)
        assert probabilities.shape == (len(LONG_AND_SHORT), len(LABELS))
        assert np.issubdtype(probabilities.dtype, np.floating)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-5)
        assert (probabilities >= 0).all()

    @pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
    @pytest.mark.parametrize("batch_size", [1, 3, 1000])
    def test_results_hang_neither_on_the_batch_size_nor_on_the_neighbours(
        self, tiny: Tiny, family: str, batch_size: int
    ) -> None:
        matcher = MaskMatcher.from_pretrained(tiny(family), LABELS)
        together = matcher.predict_proba(LONG_AND_SHORT)
        np.testing.assert_allclose(matcher.predict_proba(LONG_AND_SHORT, batch_size=batch_size), together, atol=1e-5)
        alone = np.concatenate([matcher.predict_proba([text]) for text in LONG_AND_SHORT])
        np.testing.assert_allclose(alone, together, atol=1e-5)
        best_two = np.sort(together, axis=1)[:, -2:]
        clear = best_two[:, 1] - best_two[:, 0] > 1e-4  # a random encoder may score two labels alike
        assert clear.any()
        assert (alone.argmax(axis=1) == together.argmax(axis=1))[clear].all()

    def test_results_come_in_the_order_of_the_texts(self, matcher: MaskMatcher) -> None:
        order = np.random.default_rng(0).permutation(len(LONG_AND_SHORT))
        shuffled = matcher.predict_proba([LONG_AND_SHORT[place] for place in order])
        np.testing.assert_allclose(shuffled, matcher.predict_proba(LONG_AND_SHORT)[order], atol=1e-5)

    def test_top_k_is_sorted_and_agrees_with_predict_proba(self, matcher: MaskMatcher) -> None:
        probabilities = matcher.predict_proba(TEXTS)
        for pairs, row in zip(matcher.top_k(TEXTS, 2), probabilities, strict=True):
            assert [label for label, _ in pairs] == [LABELS[place] for place in np.argsort(-row)[:2]]
            np.testing.assert_allclose([value for _, value in pairs], np.sort(row)[::-1][:2], atol=1e-6)

    def test_top_k_beyond_the_labels_gives_them_all(self, matcher: MaskMatcher) -> None:
        for pairs in matcher.top_k(TEXTS[:2], 99):
            assert sorted(str(label) for label, _ in pairs) == sorted(LABELS)
            assert sum(value for _, value in pairs) == pytest.approx(1.0, abs=1e-5)

    def test_the_score_is_the_similarity_of_the_two_states_at_the_mask(self, tiny: Tiny) -> None:
        """The definition of the method, computed by hand with transformers alone."""
        from transformers import AutoModel, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(tiny("bert"))
        model = AutoModel.from_pretrained(tiny("bert")).eval()

        def state(text: str) -> torch.Tensor:
            batch = tokenizer(text, return_tensors="pt")
            place = (batch["input_ids"][0] == tokenizer.mask_token_id).nonzero().item()
            with torch.no_grad():
                return model(**batch).last_hidden_state[0, int(place)]

        inputs = torch.stack([state(f"{text} It is about [MASK].") for text in TEXTS])
        labels = torch.stack([state(f"{label} is [MASK].") for label in LABELS])
        expected = {
            "dot": (inputs @ labels.T).softmax(1),
            "cosine": (torch.nn.functional.cosine_similarity(inputs[:, None], labels[None], dim=-1) / 0.05).softmax(1),
        }
        for similarity, probabilities in expected.items():
            matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, similarity=similarity)  # type: ignore[arg-type]
            np.testing.assert_allclose(matcher.predict_proba(TEXTS), probabilities, atol=1e-5)

    def test_prompts_and_temperature_are_those_asked_for(self, tiny: Tiny) -> None:
        plain = MaskMatcher.from_pretrained(tiny("bert"), LABELS).predict_proba(TEXTS)
        for options in (
            {"prompt": "{text} {mask}"},
            {"label_prompt": "{mask} means {label}"},
            {"task": "sentiment"},
            {"similarity": SimilarityConfig(temperature=1.0)},
        ):
            other = MaskMatcher.from_pretrained(tiny("bert"), LABELS, **options)  # type: ignore[arg-type]
            assert np.abs(other.predict_proba(TEXTS) - plain).max() > 1e-3, options

    def test_long_texts_are_shortened_counted_and_told(
        self, matcher: MaskMatcher, caplog: pytest.LogCaptureFixture
    ) -> None:
        matcher.predict(["refund", "money " * 500])
        assert matcher.cut_ == 1
        assert "1 of 2 texts" in caplog.text
        matcher.predict(["refund"])
        assert matcher.cut_ == 0

    def test_nothing_is_printed(self, matcher: MaskMatcher, capfd: pytest.CaptureFixture[str]) -> None:
        matcher.fit(TEXTS, TRUTH, dev=(TEXTS, TRUTH), **A_LITTLE)
        matcher.predict(TEXTS)
        matcher.evaluate(TEXTS, TRUTH)
        assert capfd.readouterr().out == ""


class TestEvaluate:
    def test_the_report_counts_what_predict_says(self, matcher: MaskMatcher) -> None:
        report = matcher.evaluate(TEXTS, TRUTH)
        right = sum(found == true for found, true in zip(matcher.predict(TEXTS), TRUTH, strict=True))
        assert report.rows == len(TEXTS)
        assert report.accuracy == pytest.approx(right / len(TEXTS))
        assert [score.label for score in report.per_label] == LABELS
        assert sum(confusion.count for confusion in report.confusions) == len(TEXTS) - right
        assert report.to_dict()["accuracy"] == report.accuracy
        assert "refund" in str(report)
        assert matcher.report_ is report

    def test_a_label_that_the_classifier_does_not_have_counts_as_wrong(self, matcher: MaskMatcher) -> None:
        report = matcher.evaluate(TEXTS, ["parcel"] * len(TEXTS))
        assert report.accuracy == 0
        assert [(each.label, each.rows) for each in report.unseen] == [("parcel", len(TEXTS))]

    def test_the_report_names_the_classifier_and_the_data(self, matcher: MaskMatcher, tmp_path: Path) -> None:
        report = matcher.evaluate(TEXTS, TRUTH, data="toy set")
        assert report.model == f"{matcher.encoder.source} (mask-matching)"
        assert report.data == "toy set"
        folder = matcher.save_pretrained(tmp_path / "model")
        for known in (matcher, MaskMatcher.from_pretrained(folder)):
            assert known.evaluate(TEXTS, TRUTH).model == f"{folder} (mask-matching)"

    def test_shortened_texts_are_reported(self, matcher: MaskMatcher) -> None:
        assert matcher.evaluate(["money " * 300, "card"], LABELS[:2]).cut == 1

    def test_numpy_labels_match_plain_ones(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), {0: "refund", 1: "card lost", 2: "exchange rate"})
        plain = [LABELS.index(label) for label in TRUTH]
        assert matcher.evaluate(TEXTS, np.array(plain)).accuracy == matcher.evaluate(TEXTS, plain).accuracy
        assert not matcher.evaluate(TEXTS, np.array(plain)).unseen


class TestDevice:
    def test_all_that_computes_is_where_it_was_asked_for(self, tiny: Tiny, tmp_path: Path) -> None:
        """The device "meta" stands for a GPU: it computes nothing, but tensors on it cannot meet others."""
        for method in ("mask-matching", "fine-tuning"):
            matcher = MaskMatcher.from_pretrained(tiny("bert"), method=method)
            matcher.fit(TEXTS, TRUTH, **A_LITTLE).save_pretrained(tmp_path / method)
            loaded = MaskMatcher.from_pretrained(tmp_path / method, device="meta")
            model = loaded.model
            assert {tensor.device.type for tensor in model.state_dict().values()} == {"meta"}
            assert isinstance(model.similarity, Similarity)


def test_no_thread_reads_while_another_tries_out_the_shortcuts(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying them out changes the encoder for a moment."""
    started = threading.Event()

    class Slow(readout.PooledReader):
        def __init__(self, encoder: Any, last_layer: Any) -> None:
            usual, encoder.config._attn_implementation = encoder.config._attn_implementation, "maskmatch_packed"
            started.set()
            time.sleep(0.2)
            encoder.config._attn_implementation = usual
            super().__init__(encoder, last_layer)

    monkeypatch.setattr(readout, "PooledReader", Slow)
    expected = MaskMatcher.from_pretrained(tiny("bert"), LABELS).predict_proba(["where is my card"])
    started.clear()
    fresh = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(fresh.predict_proba, ["where is my card"])
        assert started.wait(10)
        second = pool.submit(fresh.predict_proba, ["where is my card"])
        np.testing.assert_allclose([first.result(), second.result()], [expected, expected], atol=1e-5)


def test_a_fresh_classifier_answers_several_threads_at_once(tiny: Tiny) -> None:
    texts = [f"where is my {word}" for word in ("card", "refund", "rate", "parcel", "money", "account")]
    alone = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    expected = [alone.predict_proba([text])[0] for text in texts]
    for _ in range(3):
        fresh = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        with ThreadPoolExecutor(6) as pool:
            found = [rows[0] for rows in pool.map(fresh.predict_proba, [[text] for text in texts])]
        np.testing.assert_allclose(found, expected, atol=1e-5)
        np.testing.assert_allclose(fresh.predict_proba(texts[:1])[0], expected[0], atol=1e-5)
