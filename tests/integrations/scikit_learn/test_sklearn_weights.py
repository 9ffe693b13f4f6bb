"""sample_weight and class_weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

from maskmatch.sklearn import MaskMatchClassifier
from refusals import refusal
from toy_data import LABELS, TEXTS, TRUTH

Make = Callable[..., MaskMatchClassifier]

CONTRADICTING = (["the same text"] * 8, ["refund", "card lost"] * 4)


def probability(classifier: MaskMatchClassifier, label: str) -> float:
    column = classifier.classes_.tolist().index(label)
    return float(classifier.predict_proba(CONTRADICTING[0][:1])[0, column])


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_weighted_texts_count_more(make: Make, kind: Any) -> None:
    texts, labels = CONTRADICTING
    weights = kind([9.0 if label == "refund" else 1.0 for label in labels])
    classifier = make(example_share=0.0).fit(texts, labels, sample_weight=weights)
    assert probability(classifier, "refund") == pytest.approx(0.9, abs=0.07)


def test_class_weight_as_a_dict_is_a_weight_per_text(make: Make) -> None:
    texts, labels = CONTRADICTING
    by_class = make(class_weight={"refund": 9.0}).fit(texts, labels)
    by_text = make().fit(texts, labels, sample_weight=[9.0 if label == "refund" else 1.0 for label in labels])
    np.testing.assert_allclose(by_class.predict_proba(TEXTS), by_text.predict_proba(TEXTS), atol=1e-5)


def test_balanced_classes(make: Make) -> None:
    texts, labels = ["the same text"] * 10, ["refund"] * 8 + ["card lost"] * 2
    balanced = make(class_weight="balanced", example_share=0.0).fit(texts, labels)
    assert probability(balanced, "refund") == pytest.approx(0.5, abs=0.1)


def test_texts_without_weight_are_left_out(quick: Make) -> None:
    weights = [1.0] * 8 + [0.0] * 4
    classifier = quick().fit(TEXTS, TRUTH, sample_weight=weights)
    fewer = quick(labels=sorted(LABELS)).fit(TEXTS[:8], TRUTH[:8])
    assert classifier.classes_.tolist() == sorted(LABELS)  # a label without weight is still one
    assert classifier.matcher_.training_.texts == 8
    np.testing.assert_allclose(classifier.predict_proba(TEXTS), fewer.predict_proba(TEXTS), atol=1e-5)


def test_weights_in_a_search(quick: Make) -> None:
    search = GridSearchCV(quick(epochs=1), {"class_weight": [None, "balanced"]}, cv=2, error_score="raise")
    search.fit(TEXTS, TRUTH, sample_weight=np.ones(12))
    assert search.predict(TEXTS).shape == (12,)


def test_weights_of_partial_fit(make: Make) -> None:
    classifier = make().partial_fit(TEXTS[:8], TRUTH[:8], sample_weight=[2.0] * 8)
    classifier.partial_fit(TEXTS[8:], TRUTH[8:])
    assert classifier.score(TEXTS, TRUTH) == 1.0


def test_several_labels_per_text_take_no_class_weight(quick: Make) -> None:
    several = [[label] for label in TRUTH]
    assert "one label per text" in refusal(quick(class_weight={"refund": 2.0}).fit, TEXTS, several)
    assert "one label per text" in refusal(quick(class_weight="balanced").fit, TEXTS, several)
    quick().fit(TEXTS, several, sample_weight=[2.0] * 12)
