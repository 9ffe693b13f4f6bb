"""What the classifier refuses, each in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskmatch import MaskMatcher
from refusals import refusal
from toy_data import A_LITTLE, LABELS, TEXTS, TRUTH

Tiny = Callable[..., Path]


class TestRefusals:
    def test_no_labels_yet(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"))
        for call in (matcher.predict, matcher.predict_proba, matcher.top_k):
            assert "no labels yet" in refusal(call, TEXTS)
        assert "no labels yet" in refusal(matcher.evaluate, TEXTS, TRUTH)
        assert "no labels yet" in refusal(matcher.rename_label, "a", "b")
        assert "no labels yet" in refusal(matcher.save_pretrained, "nowhere")

    @pytest.mark.parametrize(
        ("labels", "words"),
        [
            ([], "no labels"),
            (["a", "a"], "'a' appears twice"),
            (["a", " "], "blank"),
            (["a", None], "missing"),
            ("refund", "'refund'"),
            (["card_lost", "card lost"], "share the name"),
        ],
    )
    def test_labels_that_cannot_be(self, tiny: Tiny, labels: Any, words: str) -> None:
        assert words in refusal(MaskMatcher.from_pretrained, tiny("bert"), labels)

    @pytest.mark.parametrize(
        ("option", "value", "words"),
        [
            ("task", "topics", "task 'topics'"),
            ("method", "magic", "method 'magic'"),
            ("similarity", "euclid", "similarity is 'euclid'"),
            ("prompt", "no mask {text}", "mask"),
            ("label_prompt", "{mask}", "label"),
            ("max_length", 10_000, "10000"),
            ("max_length", 0, "max_length is 0"),
            ("max_length", "5", "max_length is '5'"),
            ("prompt", 5, "not 5"),
            ("label_prompt", ["{label} {mask}", 5], "not 5"),
            ("device", "abacus", "device 'abacus'"),
            ("device", "cuda:99", "device 'cuda:99'"),
        ],
    )
    def test_options_that_cannot_be(self, tiny: Tiny, option: str, value: Any, words: str) -> None:
        assert words in refusal(MaskMatcher.from_pretrained, tiny("bert"), LABELS, **{option: value})

    def test_models_that_are_not_there(self, tmp_path: Path) -> None:
        assert "nowhere" in refusal(MaskMatcher.from_pretrained, tmp_path / "nowhere")
        (tmp_path / "empty").mkdir()
        assert "config.json" in refusal(MaskMatcher.from_pretrained, tmp_path / "empty")
        assert "no-such/model" in refusal(MaskMatcher.from_pretrained, "no-such/model")

    @pytest.mark.parametrize("texts", ["a bare string", {"text": "one"}, None, 3])
    def test_texts_that_are_no_list(self, matcher: MaskMatcher, texts: Any) -> None:
        for call in (matcher.predict, matcher.predict_proba, matcher.top_k):
            assert "list" in refusal(call, texts)
        assert "list" in refusal(matcher.fit, texts, TRUTH)

    @pytest.mark.parametrize("texts", [[], (), np.array([]), iter(())])
    def test_no_texts(self, matcher: MaskMatcher, texts: Any) -> None:
        assert matcher.predict(texts) == []
        assert matcher.predict_proba([]).shape == (0, len(LABELS))
        assert matcher.top_k([], 2) == []
        assert "no texts" in refusal(matcher.fit, [], [])
        assert "no texts" in refusal(matcher.evaluate, [], [])

    @pytest.mark.parametrize("text", ["", " \n", {"text": "\t"}])
    def test_a_blank_text(self, matcher: MaskMatcher, text: Any) -> None:
        for call in (matcher.predict, matcher.predict_proba, matcher.top_k):
            assert "Text 1: the text is blank" in refusal(call, ["fine", text])
        assert "Text 1: the text is blank" in refusal(matcher.fit, ["fine", text], LABELS[:2])

    @pytest.mark.parametrize("text", [None, 3, b"bytes", ["a"], float("nan")])
    def test_a_text_that_is_none(self, matcher: MaskMatcher, text: Any) -> None:
        message = refusal(matcher.predict, ["fine", text])
        assert "Text 1" in message
        assert type(text).__name__ in message or repr(text) in message

    @pytest.mark.parametrize("value", [0, -1, 1.5, "3", None, True])
    def test_bad_k_and_batch_size(self, matcher: MaskMatcher, value: Any) -> None:
        assert f"k is {value!r}" in refusal(matcher.top_k, TEXTS, value)
        for call in (matcher.predict, matcher.predict_proba):
            assert f"batch_size is {value!r}" in refusal(call, TEXTS, batch_size=value)

    def test_labels_that_do_not_fit_the_texts(self, matcher: MaskMatcher) -> None:
        for call in (matcher.fit, matcher.evaluate):
            assert "12 texts but 11 labels" in refusal(call, TEXTS, TRUTH[:-1])
            assert "labels are missing" in refusal(call, TEXTS)
            assert "'ab'" in refusal(call, ["one", "two"], "ab")
            assert "Labels come as a list" in refusal(call, TEXTS, 3)
            assert "Row 1" in refusal(call, TEXTS[:2], ["refund", None])
        assert "several" in refusal(matcher.evaluate, TEXTS[:2], [["refund"], ["card lost", "refund"]])

    def test_training_rows_that_cannot_teach(self, tiny: Tiny, matcher: MaskMatcher) -> None:
        fresh = MaskMatcher.from_pretrained(tiny("bert"))
        assert "fewer than two labels, only 'refund'" in refusal(fresh.fit, TEXTS, ["refund"] * len(TEXTS))
        unknown = refusal(matcher.fit, TEXTS, [*TRUTH[:-1], "parcel"])
        assert "'parcel' (1 rows)" in unknown
        assert "add them to its labels" in unknown

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"epoch": 3}, "no setting 'epoch'"),
            ({"epochs": 0}, "epochs is 0"),
            ({"epochs": float("nan")}, "epochs is nan"),
            ({"learning_rate": -1.0}, "learning_rate is -1.0"),
            ({"batch_size": 0}, "batch_size is 0"),
            ({"batch_size": 2.5}, "batch_size is 2.5"),
            ({"batch_size": "8"}, "batch_size is '8'"),
            ({"seed": -1}, "seed is -1"),
            ({"patience": 0}, "patience is 0"),
            ({"weight_decay": -0.1}, "weight_decay is -0.1"),
            ({"resume": True}, "folder of the checkpoints"),
            ({"arguments": {"no_such_argument": 1}}, "no_such_argument"),
            ({"arguments": {"lr_scheduler_type": "zigzag"}}, "zigzag"),
        ],
    )
    def test_fit_options_that_cannot_be(self, matcher: MaskMatcher, options: dict[str, Any], words: str) -> None:
        assert words in refusal(matcher.fit, TEXTS, TRUTH, **options)
        assert matcher.training_ is None

    def test_a_refused_fit_leaves_the_classifier_as_it_was(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"))
        refusal(matcher.fit, ["one", None], ["x", "y"])
        refusal(matcher.fit, ["one", "two"], [["x"], ["x"]])
        refusal(matcher.fit, ["one", "two"], ["x", "y"], dev=(["one"], []))
        refusal(matcher.fit, ["one", "two"], [["x"], ["x", "y"]], arguments={"no_such_argument": 1})
        assert matcher.labels is None
        assert not matcher.config.multi_label
        matcher.fit(TEXTS, TRUTH, **A_LITTLE)
        assert list(matcher.labels or ()) == sorted(LABELS)

    @pytest.mark.parametrize("method", ["fine-tuning", "soft-prompt"])
    def test_a_learned_matrix_predicts_nothing_before_training(self, tiny: Tiny, method: str) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method=method)
        message = refusal(matcher.predict, TEXTS)
        assert method in message
        assert "trained first" in message
