"""Texts in every form that scikit-learn users have them, for both estimators."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from maskmatch import MaskMatchError
from maskmatch.sklearn import MaskMatchClassifier, MaskMatchVectorizer
from refusals import refusal
from toy_data import LABELS, TEXTS, TRUTH

Make = Callable[..., MaskMatchClassifier]
Tiny = Callable[..., Path]

FORMS: dict[str, Callable[[list[str]], Any]] = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "object array": lambda texts: np.array(texts, dtype=object),
    "column": lambda texts: np.array(texts).reshape(-1, 1),
    "list of rows": lambda texts: [[text] for text in texts],
    "series": pd.Series,
    "shuffled index": lambda texts: pd.Series(texts, index=range(len(texts), 0, -1)),
    "polars series": pl.Series,
    "frame": lambda texts: pd.DataFrame({"what they wrote": texts}),
    "frame with other columns": lambda texts: pd.DataFrame({"text": texts, "id": range(len(texts))}),
    "polars frame": lambda texts: pl.DataFrame({"complaint": texts}),
    "dicts": lambda texts: [{"text": text} for text in texts],
    "dict of columns": lambda texts: {"text": texts},
}


@pytest.fixture
def zero_shot(make: Make) -> MaskMatchClassifier:
    return make(labels=LABELS).fit(None)


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_texts(zero_shot: MaskMatchClassifier, form: str) -> None:
    expected = zero_shot.predict_proba(TEXTS)
    np.testing.assert_allclose(zero_shot.predict_proba(FORMS[form](TEXTS)), expected, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_training_on_forms_of_texts(quick: Make, form: str) -> None:
    given = FORMS[form](TEXTS)
    found = quick(epochs=1).fit(given, TRUTH).predict(given)
    assert found.shape == (12,)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([1, 2], "X has 1 at row 0, and MaskMatchClassifier reads texts"),
        (np.ones((2, 3)), "reads texts"),
        (sparse.eye_array(3).tocsr(), "X is a sparse matrix of numbers"),
        (pd.DataFrame({"a": [1.5, 2.5]}), "X has 1.5 at row 0"),
        ("one text", "X is a single text"),
        ({"text": "one text"}, "X is a single text"),
        (["a", None], "X has no text at row 1"),
        (["a", float("nan")], "X has no text at row 1"),
        (["a", " "], "blank"),
        ([["a", "b"]], "X has 2 columns"),
        (np.array([[["a"]]]), "X has 3 dimensions"),
        (7, "X is 7"),
        (None, "X is None"),
    ],
)
def test_what_is_no_text(zero_shot: MaskMatchClassifier, make: Make, texts: Any, message: str) -> None:
    assert message in refusal(zero_shot.predict, texts)
    assert message in refusal(make(labels=LABELS).fit, texts, ["refund", "card lost"])


def test_fields_of_a_task(quick: Make) -> None:
    frame = pd.DataFrame({"text": TEXTS, "text_b": TEXTS[::-1]})
    rows = frame.to_dict("records")
    classifier = quick(task="paraphrase").fit(frame, TRUTH)
    expected = classifier.predict_proba(rows)
    assert expected.shape == (12, 3)
    np.testing.assert_allclose(classifier.predict_proba(frame), expected, atol=1e-6)
    np.testing.assert_allclose(classifier.predict_proba(frame[["text", "text_b"]].to_numpy()), expected, atol=1e-6)


def test_columns_are_checked_where_there_are_any(quick: Make) -> None:
    frame = pd.DataFrame({"text": TEXTS})
    classifier = quick(epochs=1).fit(frame, TRUTH)
    assert classifier.n_features_in_ == 1
    assert classifier.feature_names_in_.tolist() == ["text"]
    classifier.predict(TEXTS)
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(frame.rename(columns={"text": "other"}))
    classifier.fit(TEXTS, TRUTH)
    assert not hasattr(classifier, "n_features_in_")


def test_no_texts(zero_shot: MaskMatchClassifier, quick: Make) -> None:
    assert zero_shot.predict([]).tolist() == []
    assert zero_shot.predict_proba([]).shape == (0, 3)
    with pytest.raises(MaskMatchError):
        quick().fit([], [])


def test_weights(quick: Make) -> None:
    for weights, message in (
        ([1.0], "has the shape (1,), but there are 12 texts"),
        ([-1.0] * 12, "no weights"),
        ([float("nan")] * 12, "no weights"),
        ([0.0] * 12, "zero for every text"),
        (["a"] * 12, "no weights"),
        ([1.0] * 4 + [0.0] * 8, "only 1 class"),
    ):
        assert message in refusal(quick().fit, TEXTS, TRUTH, weights)


def test_the_vectorizer_reads_the_same_forms(tiny: Tiny) -> None:
    vectorizer = MaskMatchVectorizer(tiny("bert")).fit(TEXTS)
    expected = vectorizer.transform(TEXTS)
    for form in FORMS.values():
        np.testing.assert_allclose(vectorizer.transform(form(TEXTS)), expected, atol=1e-6)
    assert "MaskMatchVectorizer reads texts" in refusal(vectorizer.transform, [1, 2])


def test_a_frame_whose_text_column_would_have_to_be_guessed(quick: Make) -> None:
    frame = pd.DataFrame({"subject": TEXTS, "body": TEXTS[::-1]})
    assert "X has 2 columns, and none is called 'text'" in refusal(quick(epochs=1).fit, frame, TRUTH)
    numbers = pd.DataFrame({"id": range(12), "amount": range(12)})
    assert "X has 2 columns" in refusal(quick(epochs=1).fit, numbers, TRUTH)


def test_a_failed_fit_leaves_the_classifier_as_it_was(quick: Make) -> None:
    classifier = quick(epochs=1).fit(pd.DataFrame({"complaint": TEXTS}), TRUTH)
    assert "inconsistent" in refusal(classifier.fit, TEXTS, TRUTH[:-1])
    assert classifier.feature_names_in_.tolist() == ["complaint"]
    classifier.fit(TEXTS, TRUTH)
    assert not hasattr(classifier, "feature_names_in_")


def test_scores_of_every_form_of_several_labels(quick: Make) -> None:
    matrix = np.array([[label == name for name in LABELS] for label in TRUTH], dtype=int)
    classifier = quick(epochs=1, multi_label=True, threshold=0.3).fit(TEXTS, matrix)
    own = classifier.predict(TEXTS)
    lists = [[classifier.classes_[place] for place in np.flatnonzero(row)] for row in own]
    assert classifier.score(TEXTS, own) == classifier.score(TEXTS, own.tolist()) == classifier.score(TEXTS, lists) == 1


def test_abstaining_counts_as_wrong(quick: Make) -> None:
    classifier = quick(epochs=1, abstain=1.0, calibrate=False).fit(TEXTS, TRUTH)
    assert set(classifier.predict(TEXTS).tolist()) == {None}
    assert classifier.score(TEXTS, TRUTH) == 0.0


def test_weights_that_are_all_the_same_change_nothing(quick: Make) -> None:
    texts, truth = [*TEXTS, *[f"refund {number}" for number in range(40)]], [*TRUTH, *["refund"] * 40]
    plain, ones, none = (
        quick(epochs=1, class_weight=weights).fit(texts, truth, sample_weight=rows).predict_proba(TEXTS)
        for weights, rows in ((None, None), (None, np.ones(52)), ({}, None))
    )
    np.testing.assert_array_equal(plain, ones)
    np.testing.assert_array_equal(plain, none)
    wrong = quick(epochs=1, class_weight={"refund": "x"})
    assert "class_weight has the weight 'x'" in refusal(wrong.fit, texts, truth)
