"""partial_fit: new rows, labels that come later, rows that must not be forgotten."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from maskmatch.integrations.sklearn_memory import ROWS_PER_LABEL, Memory
from maskmatch.sklearn import MaskMatchClassifier
from refusals import refusal
from toy_data import LABELS, TEXTS, TRUTH

Make = Callable[..., MaskMatchClassifier]


def test_labels_that_come_later(make: Make) -> None:
    classifier = make().partial_fit(TEXTS[:8], TRUTH[:8])
    assert classifier.classes_.tolist() == ["card lost", "refund"]
    classifier.partial_fit(TEXTS[8:], TRUTH[8:])  # a batch of a single label, which is new
    assert classifier.classes_.tolist() == sorted(LABELS)
    assert classifier.predict_proba(TEXTS).shape == (12, 3)
    assert classifier.predict(TEXTS).tolist() == TRUTH  # earlier rows are not forgotten


def test_rows_of_one_label_after_the_other(make: Make) -> None:
    classifier = make()
    for label in LABELS:
        rows = [row for row, each in enumerate(TRUTH) if each == label]
        classifier.partial_fit([TEXTS[row] for row in rows], [label] * len(rows), classes=LABELS)
        assert classifier.classes_.tolist() == sorted(LABELS)
        assert classifier.predict(TEXTS).shape == (12,)
    assert classifier.score(TEXTS, TRUTH) == 1.0


def test_after_fit(make: Make) -> None:
    classifier = make().fit(TEXTS[:8], TRUTH[:8])
    assert classifier.partial_fit(TEXTS[8:], TRUTH[8:]) is classifier
    assert classifier.score(TEXTS, TRUTH) == 1.0
    classifier.fit(TEXTS[:8], TRUTH[:8])  # starts again
    assert classifier.classes_.tolist() == ["card lost", "refund"]


def test_a_single_class(make: Make) -> None:
    assert "only 1 class so far, 'refund'" in refusal(make().partial_fit, TEXTS[:4], TRUTH[:4])


def test_names_of_numbers(make: Make) -> None:
    numbers = [LABELS.index(label) for label in TRUTH]
    classifier = make(label_names=LABELS).partial_fit(TEXTS[:8], numbers[:8]).partial_fit(TEXTS[8:], numbers[8:])
    assert classifier.matcher_.labels.names_by_id == dict(enumerate(LABELS))
    assert classifier.score(TEXTS, numbers) == 1.0


def test_a_method_that_learns_a_vector_per_label_needs_all_classes(make: Make) -> None:
    classifier = make(method="fine-tuning").partial_fit(TEXTS[:8], TRUTH[:8])
    before = classifier.predict_proba(TEXTS)
    assert "a label cannot be added" in refusal(classifier.partial_fit, TEXTS[8:], TRUTH[8:])
    np.testing.assert_array_equal(classifier.predict_proba(TEXTS), before)
    classifier = make(method="fine-tuning").partial_fit(TEXTS[:8], TRUTH[:8], classes=LABELS)
    assert classifier.partial_fit(TEXTS[8:], TRUTH[8:]).score(TEXTS, TRUTH) == 1.0


def test_several_labels_per_text(quick: Make) -> None:
    several: Any = [[label] for label in TRUTH]
    assert "one label per text" in refusal(quick().partial_fit, TEXTS, several)


def test_wrong_rows_change_nothing(make: Make) -> None:
    classifier = make().partial_fit(TEXTS, TRUTH)
    before = classifier.predict_proba(TEXTS)
    assert "inconsistent" in refusal(classifier.partial_fit, TEXTS, [*TRUTH[:-1]])
    assert "reads texts" in refusal(classifier.partial_fit, [1, 2], ["new", "newer"])
    assert "blank" in refusal(classifier.partial_fit, ["a", " "], ["new", "newer"])
    assert classifier.classes_.tolist() == sorted(LABELS) == sorted(classifier.matcher_.labels)
    np.testing.assert_array_equal(classifier.predict_proba(TEXTS), before)


def test_it_goes_on_after_a_pickle(make: Make) -> None:
    classifier = pickle.loads(pickle.dumps(make().partial_fit(TEXTS[:8], TRUTH[:8])))
    assert classifier.partial_fit(TEXTS[8:], TRUTH[8:]).score(TEXTS, TRUTH) == 1.0


def test_the_memory_is_bounded_and_fair() -> None:
    memory = Memory()
    for start in range(0, 1000, 100):
        numbers = list(range(start, start + 100))
        memory.add(numbers, ["a"] * 100, None)
    memory.add(["x"], ["b"], [2.0])
    texts, labels, weights = memory.with_others(["new"], ["c"], None)
    assert (texts[0], labels[0], labels.count("a"), labels[-1]) == ("new", "c", ROWS_PER_LABEL, "b")
    assert weights is not None
    assert (weights[0], weights[-1]) == (1.0, 2.0)
    assert 250 < np.mean(texts[1:-1]) < 750
