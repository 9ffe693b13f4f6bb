"""Label diff: which predictions change, what is counted, and what the report says."""

from __future__ import annotations

import json

import pytest

from maskmatch.errors import MaskMatchError
from maskmatch.evaluation.label_diff import LabelDiff, diff_predictions

TEXTS = ["money back", "where is my card", "card gone", "rate of the euro", "hello <b>you</b>"]
BEFORE = [("refund", 0.8), ("card", 0.6), ("card", 0.7), ("rate", 0.9), ("rate", 0.3)]
AFTER = [("refund", 0.9), ("card lost", 0.7), ("card", 0.6), ("rate", 0.9), ("greeting", 0.8)]


def diff(**options: object) -> LabelDiff:
    known = {
        "old_labels": ["refund", "card", "rate"],
        "new_labels": ["refund", "card", "rate", "card lost", "greeting"],
    }
    return diff_predictions(TEXTS, BEFORE, AFTER, **{**known, **options})  # type: ignore[arg-type]


def test_what_changes() -> None:
    found = diff()
    assert (found.rows, found.changed) == (5, 2)
    assert [(move.before, move.after, move.count) for move in found.moves] == [
        ("card", "card lost", 1),
        ("rate", "greeting", 1),
    ]
    assert found.moves[0].examples[0].text == "where is my card"
    assert found.moves[0].mended is None
    assert found.accuracy is None
    assert found.confidence == (0.66, 0.78)
    assert found.shift == pytest.approx(0.0667, abs=1e-4)
    counts = {each.label: (each.before, each.after, each.won, each.lost) for each in found.labels}
    assert counts["card"] == (2, 1, 0, 1)
    assert counts["greeting"] == (0, 1, 1, 0)
    assert {each.label for each in found.labels if each.is_new} == {"card lost", "greeting"}


def test_accuracy_is_compared_on_the_same_texts() -> None:
    found = diff(truth=["refund", "card lost", "card", "card", "rate"])
    assert found.accuracy is not None
    assert (found.accuracy.before, found.accuracy.after) == (0.6, 0.6)
    assert (found.accuracy.mended, found.accuracy.broken, found.accuracy.p) == (1, 1, 1.0)
    assert [(move.mended, move.broken) for move in found.moves] == [(1, 0), (0, 1)]
    assert "accuracy 60.0% → 60.0% (+0.0 points): 1 mended, 1 broken" in str(found)


def test_the_test_is_the_exact_one_of_mcnemar() -> None:
    texts = [f"text {number}" for number in range(20)]
    before, after = [("a", 0.5)] * 20, [("b", 0.5)] * 20
    truth = ["b"] * 15 + ["a"] * 5
    found = diff_predictions(texts, before, after, old_labels=["a", "b"], new_labels=["a", "b"], truth=truth)
    assert found.accuracy is not None
    assert found.accuracy.p == pytest.approx(0.04139, abs=1e-5)  # two-sided binomial test of 15 in 20
    assert "a clear difference" in str(found)


def test_a_renamed_label_is_the_same_label() -> None:
    after = [("money back", 0.9), *BEFORE[1:]]
    found = diff_predictions(
        TEXTS,
        BEFORE,
        after,
        old_labels=["refund", "card", "rate"],
        new_labels=["money back", "card", "rate"],
        truth=["refund", "card", "card", "rate", "rate"],  # by its old name
        ids={"refund": "money back", "card": "card", "rate": "rate"},
    )
    assert found.changed == 0
    assert found.accuracy is not None
    assert found.accuracy.after == 1.0
    assert found.renamed == (("refund", "money back"),)
    assert "No text gets another label" in found.to_html()


def test_a_removed_label_loses_its_texts() -> None:
    after = [("card", 0.4), *BEFORE[1:]]
    found = diff_predictions(
        TEXTS, BEFORE, after, old_labels=["refund", "card", "rate"], new_labels=["card", "rate"], truth=["refund"] * 5
    )
    assert next(each for each in found.labels if each.label == "refund").is_removed
    assert found.accuracy is not None
    assert (found.accuracy.broken, found.accuracy.mended) == (1, 0)
    assert "1 → 0      refund (removed)" in str(found)


def test_text_json_and_page() -> None:
    found = diff(truth=["refund", "card lost", "card", "card", "rate"])
    assert "2 of 5 texts get another label (40.0%)." in str(found)
    assert "card → card lost (1 mended, 0 broken)" in str(found)
    data = json.loads(json.dumps(found.to_dict()))
    assert data["moves"][0]["examples"][0]["row"] == 1
    assert data["accuracy"]["rows"] == 5
    page = found.to_html()
    assert "&lt;b&gt;you" in page
    assert "<b>you" not in page
    assert "<script" not in page


def test_what_does_not_fit() -> None:
    with pytest.raises(MaskMatchError, match="no texts"):
        diff_predictions([], [], [], old_labels=["a"], new_labels=["a"])
    with pytest.raises(MaskMatchError, match="5 texts and 1 true labels"):
        diff(truth=["refund"])
