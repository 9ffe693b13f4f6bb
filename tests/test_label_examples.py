"""Examples of labels: texts that move a label's vector towards themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from maskmatch import Label, LabelSet, MaskMatcher, MaskMatchError
from maskmatch.label_examples import MOST_SHARE, SHRINK, moved_by_examples
from maskmatch.labels import ExampleText
from toy_data import A_LITTLE, LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EXAMPLES = [Label("refund", examples=tuple(TEXTS[:3])), "card lost", Label("exchange rate", phrases=("rate",))]


class TestMoved:
    def test_a_name_moves_towards_the_mean_of_its_examples_and_no_further(self) -> None:
        labels = LabelSet.of([Label("a", examples=("x", "y")), Label("b", phrases=("c",))])
        vectors = torch.tensor([[3.0, 0, 0], [0, 2, 0], [0, 0, 5], [1, 1, 1], [1, 0, 1]])[:, None]  # a x y b c
        moved = moved_by_examples(vectors, labels)[:, 0]
        share = MOST_SHARE * 2 / (2 + SHRINK)
        expected = torch.tensor([3 * (1 - share), 3 * share * 0.5**0.5, 3 * share * 0.5**0.5])
        torch.testing.assert_close(moved[0], expected)
        torch.testing.assert_close(moved[1:], vectors[3:, 0])

    def test_labels_read_their_texts_then_their_examples(self) -> None:
        label = Label("a", description="b", phrases=("c",), examples=("d", "d", "e  f"))
        assert label.texts == ("a: b", "c")
        assert label.parts == ("a: b", "c", ExampleText("d"), ExampleText("e  f"))
        assert repr(Label("a")) == "Label(id='a', name='a', description='', phrases=(), words=())"
        assert repr(label).endswith("words=(), examples=('d', 'e  f'))")
        with pytest.raises(MaskMatchError, match="blank example"):
            Label("a", examples=(" ",))


class TestClassifier:
    def test_examples_change_the_label_they_belong_to(self, matcher: MaskMatcher, tiny: Callable[[str], Path]) -> None:
        with_examples = MaskMatcher.from_pretrained(tiny("bert"), EXAMPLES)
        plain = MaskMatcher.from_pretrained(tiny("bert"), LabelSet.of(EXAMPLES).without_examples)
        ours, theirs = (each.prediction().scores(each._tokenize(TEXTS)) for each in (with_examples, plain))
        assert np.allclose(ours[:, 1:], theirs[:, 1:], atol=1e-5)
        assert not np.allclose(ours[:, 0], theirs[:, 0], atol=1e-3)

    def test_they_are_saved(self, tiny: Callable[[str], Path], tmp_path: Path) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), EXAMPLES)
        before = matcher.predict_proba(TEXTS)
        loaded = MaskMatcher.from_pretrained(matcher.save_pretrained(tmp_path / "m"))
        assert loaded.labels == matcher.labels
        assert np.allclose(loaded.predict_proba(TEXTS), before, atol=1e-6)
        other = MaskMatcher.from_pretrained(tmp_path / "m", prompt="{text} So {mask}.")
        fresh = MaskMatcher.from_pretrained(tiny("bert"), EXAMPLES, prompt="{text} So {mask}.")
        assert np.allclose(other.predict_proba(TEXTS), fresh.predict_proba(TEXTS), atol=1e-6)

    def test_training_does_without_them(self, tiny: Callable[[str], Path]) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), EXAMPLES).fit(TEXTS, TRUTH, **A_LITTLE)
        plain = MaskMatcher.from_pretrained(tiny("bert"), LabelSet.of(EXAMPLES).without_examples)
        assert np.allclose(matcher.predict_proba(TEXTS), plain.fit(TEXTS, TRUTH, **A_LITTLE).predict_proba(TEXTS))
        assert not any(label.examples for label in matcher.labels.labels)

    def test_refusals(self, tiny: Callable[[str], Path]) -> None:
        two = MaskMatcher.from_pretrained(tiny("bert"), EXAMPLES, prompt="{text} {mask} or {mask}")
        with pytest.raises(MaskMatchError, match="as many masks"):
            two.predict(TEXTS)
        mean = MaskMatcher.from_pretrained(tiny("bert"), EXAMPLES, method="semantic-matching")
        assert set(mean.predict(TEXTS)) <= set(LABELS)
