"""Classifiers that may answer none of these."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from maskmatch import ExportedMatcher, MaskMatcher, export
from refusals import refusal
from toy_data import LABELS, TEXTS, TRUTH

Tiny = Callable[..., Path]


def make(tiny: Tiny, **options: Any) -> MaskMatcher:
    return MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False, **options)


def test_texts_below_the_probability_get_no_label(tiny: Tiny) -> None:
    matcher = make(tiny)
    best = [pairs[0] for pairs in matcher.top_k(TEXTS, 1)]
    middle = sorted(probability for _, probability in best)[len(best) // 2]
    expected = [label if probability >= middle else None for label, probability in best]
    assert None in expected
    assert matcher.predict(TEXTS, abstain=middle) == expected
    named = matcher.predict(TEXTS, abstain=middle, none_label="other")
    assert named == ["other" if label is None else label for label in expected]
    assert None not in matcher.predict(TEXTS)
    assert matcher.predict(TEXTS, abstain=1.0) == [None] * len(TEXTS)
    assert matcher.predict([], abstain=0.5) == []


def test_the_setting_is_saved_and_exported(tiny: Tiny, tmp_path: Path) -> None:
    matcher = make(tiny, abstain=1.0)
    folder = matcher.save_pretrained(tmp_path / "model")
    export(matcher, tmp_path / "export")
    for other in (MaskMatcher.from_pretrained(folder), ExportedMatcher.from_pretrained(tmp_path / "export")):
        assert other.config.abstain == 1.0
        assert other.predict(TEXTS) == [None] * len(TEXTS)
        assert None not in other.predict(TEXTS, abstain=0.0)
        report = other.evaluate(TEXTS, TRUTH)
        assert report.abstain == 1.0
        assert report.accuracy == make(tiny).evaluate(TEXTS, TRUTH).accuracy
    assert MaskMatcher.from_pretrained(folder, abstain=0.0).config.abstain == 0.0


def test_a_probability_is_chosen_on_dev_texts(tiny: Tiny) -> None:
    matcher = make(tiny)
    texts = TEXTS * 20
    truth = matcher.predict(texts)  # all right
    found = matcher.choose_abstention(texts, truth, right=0.9)
    assert (found.coverage, found.accuracy, found.rows) == (1.0, 1.0, len(texts))
    assert None not in matcher.predict(TEXTS, abstain=found.threshold)
    assert "It answers from a probability of" in str(found)
    assert "no threshold is right in 90%" in refusal(matcher.choose_abstention, texts, ["else"] * len(texts), right=0.9)


@pytest.mark.parametrize("abstain", [-0.1, 1.1, "often", float("nan")])
def test_what_is_no_probability(tiny: Tiny, abstain: Any) -> None:
    assert "abstain" in refusal(make(tiny).predict, TEXTS, abstain=abstain)
    assert "abstain" in refusal(make, tiny, abstain=abstain)


def test_several_labels_per_text(tiny: Tiny) -> None:
    matcher = make(tiny, multi_label=True)
    assert "one label per text" in refusal(matcher.predict, TEXTS, abstain=0.5)
    assert "one label per text" in refusal(matcher.choose_abstention, TEXTS, TRUTH)
    assert "one label per text" in refusal(make, tiny, multi_label=True, abstain=0.5)
