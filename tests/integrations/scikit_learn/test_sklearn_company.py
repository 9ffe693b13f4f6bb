"""The estimators in pipelines, searches, cross-validation, calibration and other processes."""

from __future__ import annotations

import io
import logging
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from maskmatch import MaskMatcher
from maskmatch.model.encoder import Encoder
from maskmatch.sklearn import MaskMatchClassifier, MaskMatchVectorizer
from toy_data import LABELS, TEXTS, TRUTH

Make = Callable[..., MaskMatchClassifier]
Tiny = Callable[..., Path]


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The encoders that are loaded."""
    loaded: list[str] = []
    load = Encoder.load.__func__  # type: ignore[attr-defined]

    def counted(cls: Any, folder: Path, source: str) -> Encoder:
        loaded.append(source)
        return load(cls, folder, source)  # type: ignore[no-any-return]

    monkeypatch.setattr(Encoder, "load", classmethod(counted))
    return loaded


def test_a_grid_search_loads_the_encoder_once(quick: Make, loads: list[str]) -> None:
    grid = {"method": ["mask-matching", "fine-tuning"], "learning_rate": [1e-3, 1e-2], "prompt": ["{text} {mask}"]}
    search = GridSearchCV(quick(epochs=1), grid, cv=2, error_score="raise").fit(TEXTS, TRUTH)
    assert len(loads) == 1
    assert set(search.best_params_) == set(grid)
    assert search.predict(TEXTS).shape == (12,)


def test_each_fit_starts_from_the_pristine_encoder(make: Make, tiny: Tiny) -> None:
    first = make().fit(TEXTS, TRUTH)
    before = first.predict_proba(TEXTS)
    other = make(random_state=5, method="soft-prompt").fit(TEXTS[::-1], TRUTH[::-1])
    again = make().fit(TEXTS, TRUTH)
    np.testing.assert_array_equal(again.predict_proba(TEXTS), before)
    np.testing.assert_array_equal(first.predict_proba(TEXTS), before)  # nobody trained its weights
    assert other.matcher_.encoder.model is not first.matcher_.encoder.model
    fresh = MaskMatcher.from_pretrained(tiny("bert"), sorted(LABELS)).predict_proba(TEXTS)
    zero_shot = make(labels=sorted(LABELS)).fit(None)
    np.testing.assert_allclose(zero_shot.predict_proba(TEXTS), fresh, atol=1e-6)


def test_cross_validation(make: Make) -> None:
    assert cross_val_score(make(), TEXTS, TRUTH, cv=2).shape == (2,)
    assert cross_val_score(make(epochs=1), TEXTS, TRUTH, cv=2, scoring="neg_log_loss").shape == (2,)
    probabilities = cross_val_predict(make(epochs=1), np.array(TEXTS), TRUTH, cv=2, method="predict_proba")
    assert probabilities.shape == (12, 3)


def test_warnings_are_not_repeated_for_every_fold(quick: Make, caplog: pytest.LogCaptureFixture) -> None:
    long = [text + " money" * (60 + place) for place, text in enumerate(TEXTS)]
    with caplog.at_level(logging.WARNING):
        cross_val_score(quick(epochs=1, max_length=30), long, TRUTH, cv=3)
    assert caplog.text.count("truncated") == 2  # once for training, once for predicting


def test_warnings_about_other_texts_are_shown(quick: Make, caplog: pytest.LogCaptureFixture) -> None:
    classifier = quick(epochs=1, max_length=29).fit(TEXTS, TRUTH)
    long = ["money " * 60] * 4
    with caplog.at_level(logging.WARNING):
        for texts in (long[:2], long[:2], long):
            classifier.predict(texts)
    assert caplog.text.count("truncated") == 2


def test_a_pipeline(make: Make) -> None:
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = make_pipeline(lower, make()).fit(TEXTS, TRUTH)
    assert pipeline.score(TEXTS, TRUTH) == 1.0
    assert pipeline.set_params(maskmatchclassifier__epochs=2)[-1].epochs == 2


def test_a_text_column_among_others(tiny: Tiny) -> None:
    frame = pd.DataFrame({"complaint": TEXTS, "amount": range(12), "other": TEXTS[::-1]})
    columns = ColumnTransformer(
        [
            ("series", MaskMatchVectorizer(tiny("bert")), "complaint"),
            ("frame", MaskMatchVectorizer(tiny("bert")), ["other"]),
            ("numbers", "passthrough", ["amount"]),
        ]
    )
    found = columns.set_output(transform="pandas").fit_transform(frame)
    assert found.shape == (12, 33)
    assert found.columns[0] == "series__mask0_0"
    model = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(frame, TRUTH)
    assert model.score(frame, TRUTH) == 1.0


def test_calibration(make: Make) -> None:
    calibrated = CalibratedClassifierCV(make(epochs=2), cv=2).fit(TEXTS, TRUTH)
    np.testing.assert_allclose(calibrated.predict_proba(TEXTS).sum(axis=1), 1.0)
    frozen = CalibratedClassifierCV(FrozenEstimator(make().fit(TEXTS, TRUTH))).fit(TEXTS * 2, TRUTH * 2)
    assert frozen.score(TEXTS, TRUTH) == 1.0


def test_two_processes(quick: Make) -> None:
    scores = cross_val_score(quick(), TEXTS, TRUTH, cv=2, n_jobs=2)
    np.testing.assert_array_equal(scores, cross_val_score(quick(), TEXTS, TRUTH, cv=2))
    fitted = joblib.Parallel(n_jobs=2)(joblib.delayed(quick(epochs=1).fit)(TEXTS, TRUTH) for _ in range(2))
    np.testing.assert_array_equal(fitted[0].predict_proba(TEXTS), fitted[1].predict_proba(TEXTS))


def test_threads(quick: Make, loads: list[str]) -> None:
    with joblib.parallel_backend("threading", n_jobs=2):
        calibrated = CalibratedClassifierCV(quick(epochs=1), cv=2).fit(TEXTS, TRUTH)
    assert calibrated.predict(TEXTS).shape == (12,)
    assert len(loads) == 1


@pytest.mark.parametrize("trained", [True, False])
def test_a_pickle_holds_a_saved_classifier_and_no_modules(make: Make, trained: bool) -> None:
    classifier = make(labels=LABELS).fit(TEXTS, TRUTH if trained else None)
    data = pickle.dumps(classifier)
    assert b"torch" not in data.partition(b"PK")[0]
    file = io.BytesIO()
    joblib.dump(classifier, file)
    file.seek(0)
    for twin in (pickle.loads(data), joblib.load(file)):
        np.testing.assert_allclose(twin.predict_proba(TEXTS), classifier.predict_proba(TEXTS), atol=1e-6)
        assert repr(twin) == repr(classifier)


# -- the vectorizer ------------------------------------------------------------------------------------------


def test_the_vectorizer_gives_mask_states(tiny: Tiny) -> None:
    vectorizer = MaskMatchVectorizer(tiny("bert"), prompt="{text} {mask} {mask}")
    found = vectorizer.fit_transform(TEXTS)
    matcher = MaskMatcher.from_pretrained(tiny("bert"), prompt="{text} {mask} {mask}")
    np.testing.assert_allclose(found, matcher.text_states(TEXTS).reshape(12, -1), atol=1e-6)
    names = vectorizer.get_feature_names_out()
    assert (found.dtype, len(names), names[0], names[-1]) == (np.float32, 32, "mask0_0", "mask1_15")


def test_the_vectorizer_in_company(tiny: Tiny) -> None:
    model = make_pipeline(MaskMatchVectorizer(tiny("bert")), LogisticRegression(max_iter=1000))
    assert model.fit(TEXTS, TRUTH).score(TEXTS, TRUTH) > 0.5  # of random states
    union = FeatureUnion(
        [
            ("mask", MaskMatchVectorizer(tiny("bert"))),
            ("mean", MaskMatchVectorizer(tiny("bert"), method="mean-matching")),
        ]
    )
    assert union.fit_transform(TEXTS).shape == (12, 32)
    grid = {"maskmatchvectorizer__prompt": ["{text} {mask}", "{mask}: {text}"]}
    assert GridSearchCV(model, grid, cv=2, error_score="raise").fit(TEXTS, TRUTH).best_score_ >= 0


def test_the_vectorizer_keeps_the_index_of_a_frame(tiny: Tiny) -> None:
    vectorizer = MaskMatchVectorizer(tiny("bert")).set_output(transform="pandas")
    found = vectorizer.fit_transform(pd.Series(TEXTS, index=range(100, 112)))
    assert found.index.tolist() == list(range(100, 112))


@pytest.mark.parametrize("method", ["mask-matching", "fine-tuning", "prompt-tuning", "semantic-matching"])
def test_a_pickled_vectorizer(tiny: Tiny, method: str) -> None:
    vectorizer = MaskMatchVectorizer(tiny("bert"), method=method).fit(TEXTS)
    twin = pickle.loads(pickle.dumps(vectorizer))
    np.testing.assert_allclose(twin.transform(TEXTS), vectorizer.transform(TEXTS), atol=1e-6)


def test_the_states_of_a_trained_classifier(make: Make, tmp_path: Path) -> None:
    classifier = make().fit(TEXTS, TRUTH)
    folder = classifier.matcher_.save_pretrained(tmp_path / "model")
    found = MaskMatchVectorizer(folder).fit_transform(TEXTS)
    np.testing.assert_allclose(found, classifier.matcher_.text_states(TEXTS).reshape(12, -1), atol=1e-5)
