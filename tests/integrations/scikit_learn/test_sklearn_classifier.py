"""MaskMatchClassifier: parameters, fit, predict, labels in several forms, saved classifiers, zero-shot."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.utils import get_tags

from maskmatch import MaskMatcher
from maskmatch.config.matcher import classifier_options
from maskmatch.config.settings import declared
from maskmatch.config.training import TrainingConfig
from maskmatch.sklearn import MaskMatchClassifier
from refusals import refusal
from toy_data import FAST, LABELS, TEXTS, TRUTH

Make = Callable[..., MaskMatchClassifier]
Tiny = Callable[..., Path]

NUMBERS = [LABELS.index(label) for label in TRUTH]
NAMES = dict(enumerate(LABELS))


def test_it_learns_and_gives_classes_in_sorted_order(make: Make) -> None:
    classifier = make()
    assert classifier.fit(TEXTS, TRUTH) is classifier
    assert classifier.classes_.tolist() == sorted(LABELS)
    assert classifier.predict(TEXTS).tolist() == TRUTH
    probabilities = classifier.predict_proba(TEXTS)
    assert probabilities.shape == (len(TEXTS), 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert classifier.classes_[probabilities.argmax(axis=1)].tolist() == TRUTH
    assert classifier.score(TEXTS, TRUTH) == 1.0


def test_it_gives_the_answers_of_the_matcher(make: Make, tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), sorted(LABELS), task="intent").fit(TEXTS, TRUTH, **FAST)
    classifier = make(task="intent").fit(TEXTS, TRUTH)
    np.testing.assert_allclose(classifier.predict_proba(TEXTS), matcher.predict_proba(TEXTS), atol=1e-6)


# -- parameters ----------------------------------------------------------------------------------------------


def test_every_declared_setting_is_a_parameter() -> None:
    parameters = MaskMatchClassifier().get_params()
    names = {each.name for each in (*classifier_options(), *declared(TrainingConfig))}
    assert names - {"seed"} <= set(parameters)
    assert parameters["random_state"] == TrainingConfig().seed
    assert parameters["batch_size"] == TrainingConfig().batch_size


def test_parameters_are_stored_and_cloned(make: Make) -> None:
    classifier = make(prompt="{text} {mask}", temperature=0.1, class_weight={"refund": 2.0})
    assert classifier.get_params()["temperature"] == 0.1
    assert clone(classifier).get_params() == classifier.get_params()
    assert classifier.set_params(epochs=3, method="soft-prompt").get_params()["epochs"] == 3
    assert "temperature=0.1" in repr(classifier)
    assert "head_rate" not in repr(classifier)


@pytest.mark.parametrize(
    ("given", "hint"), [({"epohcs": 3}, "Did you mean 'epochs'?"), ({"seed": 3}, "scikit-learn calls it random_state")]
)
def test_an_unknown_parameter(given: dict[str, Any], hint: str) -> None:
    with pytest.raises(TypeError, match=hint.replace("?", r"\?")):
        MaskMatchClassifier(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "mask-maching"}, "Did you mean 'mask-matching'?"),
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"epochs": 0}, "epochs is 0"),
        ({"random_state": "x"}, "random_state is 'x'"),
        ({"class_weight": "even"}, "class_weight is 'even'"),
        ({"class_weight": {"refnd": 2}}, "'refnd', which is no class"),
        ({"labels": LABELS, "label_names": NAMES}, "both given"),
    ],
)
def test_wrong_values_are_named_in_fit(make: Make, given: dict[str, Any], message: str) -> None:
    assert message in refusal(make(**given).fit, TEXTS, TRUTH)


def test_settings_reach_the_classifier_and_training(quick: Make) -> None:
    classifier = quick(temperature=0.2, max_length=20, hold=0.5, random_state=np.int64(7)).fit(TEXTS, TRUTH)
    matcher = classifier.matcher_
    assert (matcher.config.similarity.temperature, matcher.config.max_length) == (0.2, 20)
    assert (matcher.training_.config["hold"], matcher.training_.config["seed"]) == (0.5, 7)


def test_a_random_state(quick: Make) -> None:
    def seed(state: Any) -> int:
        matcher = quick(random_state=state, epochs=1).fit(TEXTS, TRUTH).matcher_
        return int(matcher.training_.config["seed"])

    assert seed(np.random.RandomState(3)) == seed(np.random.RandomState(3)) != seed(np.random.RandomState(4))
    assert seed(None) >= 0


def test_dev_rows(make: Make) -> None:
    classifier = make(epochs=6, patience=1).fit(TEXTS, TRUTH, dev=(TEXTS, TRUTH))
    assert classifier.matcher_.training_.dev is not None


# -- labels --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label_names", [NAMES, LABELS, np.array(LABELS)])
def test_numbers_with_names(make: Make, label_names: Any) -> None:
    classifier = make(label_names=label_names).fit(TEXTS, np.array(NUMBERS))
    assert classifier.classes_.tolist() == [0, 1, 2]
    assert classifier.classes_.dtype.kind == "i"
    assert classifier.predict(TEXTS).tolist() == NUMBERS
    assert classifier.matcher_.labels.names == tuple(LABELS)


def test_numbers_without_names_are_a_warning(quick: Make, caplog: pytest.LogCaptureFixture) -> None:
    quick().fit(TEXTS, NUMBERS)
    assert "labels in y are numbers" in caplog.text
    caplog.clear()
    quick(method="fine-tuning").fit(TEXTS, NUMBERS)  # which reads no names
    assert not caplog.text


def test_codes_with_names(quick: Make) -> None:
    codes = [label[:2] for label in TRUTH]
    names = {label[:2]: label for label in LABELS}
    classifier = quick(label_names=names).fit(TEXTS, codes)
    assert set(classifier.matcher_.labels.names) == set(LABELS)
    assert set(classifier.predict(TEXTS)) <= set(codes)
    del names["re"]
    assert "no name for the label 're'" in refusal(quick(label_names=names).fit, TEXTS, codes)


def test_labels_that_have_no_texts(quick: Make) -> None:
    classifier = quick(labels={"zebra": "an animal", **dict.fromkeys(LABELS)}).fit(TEXTS, TRUTH)
    assert classifier.classes_.tolist() == [*sorted(LABELS), "zebra"]
    probabilities = classifier.predict_proba(TEXTS)
    assert probabilities.shape[1] == 4
    np.testing.assert_allclose(probabilities[:, 3], classifier.matcher_.predict_proba(TEXTS)[:, 0], atol=1e-6)


def test_labels_of_y_must_be_known(make: Make) -> None:
    assert "not among the labels given: 'refund'" in refusal(make(labels=LABELS[1:]).fit, TEXTS, TRUTH)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([*TRUTH[:-1], None], "row 11 is None"),
        ([*NUMBERS[:-1], float("nan")], "row 11 is nan"),
        (pd.Series([*TRUTH[:-1], pd.NA]), "row 11"),
        (["refund"] * 12, "only 1 class, 'refund'"),
        (TRUTH[:-1], "X has 12 texts and y has 11 labels"),
        (np.linspace(0, 1, 12), "continuous"),
        (np.array([1.0] * 11 + [np.inf]), "row 11 is inf"),
        ([*TRUTH[:-1], 3], "mix texts and numbers"),
        ("refund", "y should be a 1d array"),
        ([], "0 labels"),
        (None, "requires y to be passed"),
    ],
)
def test_wrong_y(make: Make, y: Any, message: str) -> None:
    assert message in refusal(make().fit, TEXTS, y)


def test_a_column_of_labels_is_read_with_a_warning(quick: Make) -> None:
    with pytest.warns(DataConversionWarning, match="column-vector"):
        quick().fit(TEXTS, np.array(TRUTH).reshape(-1, 1))


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pd.Categorical, pl.Series, tuple])
def test_forms_of_y(quick: Make, kind: Any) -> None:
    assert quick().fit(TEXTS, kind(TRUTH)).classes_.tolist() == sorted(LABELS)


# -- several labels per text ---------------------------------------------------------------------------------

SEVERAL = [[label] if place % 2 else [label, "urgent"] for place, label in enumerate(TRUTH)]


def test_several_labels_as_lists(make: Make) -> None:
    classifier = make().fit(TEXTS, SEVERAL)
    found = classifier.predict(TEXTS)
    assert classifier.classes_.tolist() == sorted([*LABELS, "urgent"])
    assert found.shape == classifier.predict_proba(TEXTS).shape == (12, 4)
    assert set(np.unique(found)) <= {0, 1}
    truth = np.array([[label in row for label in classifier.classes_] for row in SEVERAL], dtype=int)
    assert classifier.score(TEXTS, SEVERAL) == classifier.score(TEXTS, truth) == (found == truth).all(axis=1).mean()


def test_several_labels_as_a_matrix(quick: Make) -> None:
    columns = ["urgent", *LABELS]
    matrix = np.array([[label in row for label in columns] for row in SEVERAL], dtype=int)
    frame = pd.DataFrame(matrix, columns=columns)
    named, listed = quick().fit(TEXTS, frame), quick(labels=columns).fit(TEXTS, matrix)
    numbered = quick(label_names=columns).fit(TEXTS, matrix)
    for classifier in (named, listed, numbered):
        assert classifier.predict(TEXTS).shape == matrix.shape
        np.testing.assert_allclose(classifier.predict_proba(TEXTS), named.predict_proba(TEXTS))
    assert named.classes_.tolist() == listed.classes_.tolist() == columns  # those of the matrix
    assert numbered.classes_.tolist() == [0, 1, 2, 3]
    assert "other values than 0 and 1" in refusal(quick().fit, TEXTS, frame * 2)
    assert "4 columns and there are 3" in refusal(quick(labels=LABELS).fit, TEXTS, matrix)


# -- without training, and saved classifiers -----------------------------------------------------------------


def test_without_y_names_alone_classify(make: Make, tiny: Tiny) -> None:
    classifier = make(labels=LABELS).fit(TEXTS)
    matcher = MaskMatcher.from_pretrained(tiny("bert"), sorted(LABELS))
    assert classifier.matcher_.training_ is None
    assert classifier.predict(TEXTS).tolist() == matcher.predict(TEXTS)
    np.testing.assert_allclose(classifier.predict_proba(TEXTS), matcher.predict_proba(TEXTS), atol=1e-6)
    assert make(label_names=NAMES).fit(None).classes_.tolist() == [0, 1, 2]
    assert "must be trained first" in refusal(make(labels=LABELS, method="fine-tuning").fit, TEXTS)


def test_a_saved_classifier(make: Make, tmp_path: Path) -> None:
    first = make().fit(TEXTS, TRUTH)
    folder = first.matcher_.save_pretrained(tmp_path / "model")
    again = MaskMatchClassifier(folder).fit(None)  # as it was saved
    np.testing.assert_allclose(again.predict_proba(TEXTS), first.predict_proba(TEXTS), atol=1e-6)
    further = MaskMatchClassifier(folder, epochs=1, calibrate=False).fit(TEXTS[:8], TRUTH[:8])
    assert further.classes_.tolist() == sorted(LABELS)  # also the one without new texts


def test_not_fitted(make: Make) -> None:
    for call in (make().predict, make().predict_proba):
        with pytest.raises(NotFittedError, match="This MaskMatchClassifier is not fitted yet; call fit"):
            call(TEXTS)
    with pytest.raises(NotFittedError):
        make().score(TEXTS, TRUTH)


def test_a_failed_fit_leaves_the_classifier_as_it_was(make: Make) -> None:
    classifier = make().fit(TEXTS, TRUTH)
    before = classifier.predict_proba(TEXTS)
    refusal(classifier.fit, TEXTS, TRUTH[:-1])
    np.testing.assert_array_equal(classifier.predict_proba(TEXTS), before)


def test_abstaining_answers_none(make: Make) -> None:
    found = make(abstain=1.0, labels=LABELS).fit(TEXTS).predict(TEXTS)
    assert found.dtype == object
    assert None in found


def test_tags(make: Make) -> None:
    tags = get_tags(make())
    assert is_classifier(make())
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required
    assert not get_tags(make(labels=LABELS)).target_tags.required


def test_it_is_silent(
    make: Make, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    with caplog.at_level(logging.WARNING):
        make().fit(TEXTS, TRUTH).predict(TEXTS)
    assert capfd.readouterr() == ("", "")
    assert not caplog.text
    assert not recwarn.list
