"""scikit-learn's own checks of estimators, with texts in the place of its matrices of numbers.

The checks draw matrices of numbers. The estimators here read each row as a text with a word per number, so that every
check runs and tests what it is about.
"""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks
from sklearn.utils.validation import check_is_fitted, validate_data

from maskmatch.sklearn import MaskMatchClassifier, MaskMatchVectorizer
from maskmatch.testing.tiny_encoders import write_tiny_encoder
from toy_data import TEXTS

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS = sorted({word.strip("?.,!;").lower() for text in TEXTS for word in text.split()})
LEARNS = {"epochs": 12, "learning_rate": 2e-2, "batch_size": 64, "calibrate": False}

EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": "a weight of 2 is one step with twice the loss, not two rows of "
    "shuffled batches",
}
"""Checks that cannot apply, with the reason."""


def as_texts(matrix: Any) -> list[str]:
    places = np.clip(np.round(np.asarray(matrix, dtype=np.float64) * 3) + 12 + 7 * np.arange(matrix.shape[1]), 0, 99)
    return [" ".join(WORDS[int(place) % len(WORDS)] for place in row) for row in places]


class Columns:
    """Takes matrices, of which it knows the number and names of columns."""

    def texts(self, X: Any, *, reset: bool) -> list[str]:
        return as_texts(validate_data(self, X, reset=reset))

    def keeping_columns(self, call: Any, *arguments: Any) -> Any:
        columns = {name: vars(self).pop(name) for name in ("n_features_in_", "feature_names_in_") if name in vars(self)}
        try:
            return call(*arguments)
        finally:
            vars(self).update(columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array, tags.input_tags.one_d_array = True, False
        return tags


class ClassifierOfRows(Columns, MaskMatchClassifier):
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:  # type: ignore[override]
        texts = self.texts(X, reset=True)
        return self.keeping_columns(super().fit, texts, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        texts = self.texts(X, reset=not hasattr(self, "matcher_"))
        return self.keeping_columns(super().partial_fit, texts, y, classes, sample_weight)

    def predict(self, X: Any) -> Any:
        check_is_fitted(self)
        return self.keeping_columns(super().predict, self.texts(X, reset=False))

    def predict_proba(self, X: Any) -> Any:
        check_is_fitted(self)
        return self.keeping_columns(super().predict_proba, self.texts(X, reset=False))


class VectorizerOfRows(Columns, MaskMatchVectorizer):
    def fit(self, X: Any, y: Any = None) -> Any:
        texts = self.texts(X, reset=True)
        return self.keeping_columns(super().fit, texts)

    def transform(self, X: Any) -> Any:
        check_is_fitted(self)
        return self.keeping_columns(super().transform, self.texts(X, reset=False))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return write_tiny_encoder("bert", tmp_path_factory.mktemp("checks"))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)  # labels are numbers, and rows are longer than the tiny encoder reads
    yield
    logging.disable(logging.NOTSET)


# The labels of the checks are mere numbers, so the method is one that reads no names.
@parametrize_with_checks(
    [ClassifierOfRows(method="fine-tuning", **LEARNS), VectorizerOfRows()],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
@pytest.mark.filterwarnings("ignore")
def test_checks_of_scikit_learn(estimator: Any, check: Any, folder: Any) -> None:
    check(estimator.set_params(model=folder))


@pytest.mark.parametrize("kind", [MaskMatchClassifier, MaskMatchVectorizer])
def test_the_estimators_themselves_say_that_they_read_no_matrices(kind: Any, folder: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(kind(folder))
    assert [each["status"] for each in results] == ["passed"]
