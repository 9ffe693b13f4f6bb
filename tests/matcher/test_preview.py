"""Previews of label edits: they agree with the edit itself, and change nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskmatch import Label, MaskMatcher
from refusals import refusal
from toy_data import A_LITTLE, LABELS, TEXTS, TRUTH

Tiny = Callable[..., Path]
EDITS: dict[str, dict[str, Any]] = {
    "add": {"add": {"parcel": "something in the mail"}},
    "rename": {"rename": {"refund": "money back"}},
    "remove": {"remove": ["exchange rate"]},
    "all": {"add": ["exchange rate"], "rename": {"card lost": "card gone"}, "remove": ["exchange rate"]},
    "labels": {"labels": ["refund", "card lost", "train"]},
}


def make(tiny: Tiny, **options: Any) -> MaskMatcher:
    return MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False, **options)


def edited(matcher: MaskMatcher, edit: dict[str, Any]) -> MaskMatcher:
    """The same edit, made."""
    if "labels" in edit:
        matcher.bank.replace(edit["labels"])
        return matcher
    if "remove" in edit:
        matcher.remove_labels(edit["remove"])
    for old, new in edit.get("rename", {}).items():
        matcher.rename_label(old, new)
    return matcher.add_labels(edit["add"]) if "add" in edit else matcher


@pytest.mark.parametrize("kind", EDITS)
@pytest.mark.parametrize("trained", [False, True])
def test_a_preview_is_what_the_edit_does(tiny: Tiny, kind: str, trained: bool) -> None:
    edit = EDITS[kind]
    matcher = make(tiny)
    if trained:
        matcher.fit(TEXTS, TRUTH, **A_LITTLE)
    before, states = matcher.predict(TEXTS), matcher.predict_proba(TEXTS)
    found = matcher.preview(TEXTS, TRUTH, **edit)
    assert list(matcher.labels or ()) == LABELS, "nothing is changed"
    np.testing.assert_array_equal(matcher.predict_proba(TEXTS), states)
    after = edited(matcher, edit).predict(TEXTS)
    renamed = edit.get("rename", {})
    old = [renamed.get(label, label) for label in before]
    assert found.changed == sum(one != other for one, other in zip(old, after, strict=True))
    assert {each.label: each.after for each in found.labels if each.after} == {
        label: after.count(label) for label in set(after)
    }
    assert found.accuracy is not None
    true = [renamed.get(label, label) for label in TRUTH]
    assert found.accuracy.after == pytest.approx(
        np.mean([one == other for one, other in zip(true, after, strict=True)]), abs=1e-4
    )


def test_an_adapted_classifier(tiny: Tiny) -> None:
    texts = [f"{text} {number}" for number in range(20) for text in TEXTS]
    matcher = make(tiny).adapt(texts, force=True)
    found = matcher.preview(TEXTS, add=["parcel"])
    assert sum(each.after for each in found.labels if each.label == "parcel") == matcher.add_labels(["parcel"]).predict(
        TEXTS
    ).count("parcel")


def test_labels_that_are_read_with_each_text(tiny: Tiny) -> None:
    matcher = make(tiny, label_prompt="{text} Is it {label}? {mask}.")
    found = matcher.preview(TEXTS, rename={"refund": "money back"})
    matcher.rename_label("refund", "money back")
    assert {each.label: each.after for each in found.labels if each.after} == {
        label: matcher.predict(TEXTS).count(label) for label in set(matcher.predict(TEXTS))
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "nothing to preview"),
        ({"add": ["x"], "labels": ["y", "z"]}, "not both"),
        ({"remove": "refund"}, "give a list"),
        ({"remove": ["nothing"]}, "nothing"),
        ({"rename": {"nothing": "else"}}, "nothing"),
        ({"add": ["refund"]}, "refund"),
    ],
)
def test_what_cannot_be_previewed(tiny: Tiny, options: dict[str, Any], said: str) -> None:
    assert said in refusal(make(tiny).preview, TEXTS, **options)


@pytest.mark.parametrize("method", ["fine-tuning", "soft-prompt"])
def test_learned_label_vectors_stay(tiny: Tiny, method: str) -> None:
    matcher = make(tiny, method=method).fit(TEXTS, TRUTH, **A_LITTLE)
    expected = matcher.predict_proba(TEXTS)
    assert "cannot be previewed" in refusal(matcher.preview, TEXTS, remove=["refund"])
    np.testing.assert_array_equal(matcher.predict_proba(TEXTS), expected)


def test_labels_that_change_places(tiny: Tiny) -> None:
    matcher = make(tiny)
    before = matcher.predict(TEXTS)
    found = matcher.preview(TEXTS, TRUTH, rename={"refund": "card lost", "card lost": "refund"})
    assert dict(found.renamed) == {"refund": "card lost", "card lost": "refund"}
    swapped = {"refund": "card lost", "card lost": "refund"}
    after = MaskMatcher.from_pretrained(tiny("bert"), ["card lost", "refund", "exchange rate"], verbose=False)
    expected = after.predict(TEXTS)
    assert found.changed == sum(swapped.get(one, one) != other for one, other in zip(before, expected, strict=True))
    assert "no label 'tmp'" in refusal(matcher.preview, TEXTS, rename={"refund": "tmp", "tmp": "final"})


def test_a_name_that_is_used_again_is_another_label(tiny: Tiny) -> None:
    matcher = make(tiny)
    before = matcher.predict(TEXTS)
    found = matcher.preview(TEXTS, remove=["card lost"], rename={"refund": "card lost"})
    counts = {each.label: each.before for each in found.labels}
    assert counts["card lost"] == before.count("refund")
    assert counts["card lost (removed)"] == before.count("card lost")


def test_ids_that_are_numbers(tiny: Tiny, tmp_path: Path) -> None:
    """A file of labels, and true labels in a file, are strings."""
    labels = dict(enumerate(LABELS))
    matcher = MaskMatcher.from_pretrained(tiny("bert"), labels, verbose=False)
    truth = [str(LABELS.index(label)) for label in TRUTH]
    listed = [Label(str(number), name) for number, name in labels.items()]
    found = matcher.preview(TEXTS, truth, labels=listed)
    assert found.changed == 0
    assert found.accuracy is not None
    assert found.accuracy.before == pytest.approx(matcher.evaluate(TEXTS, truth).accuracy, abs=1e-4)


def test_several_labels_per_text(tiny: Tiny) -> None:
    assert "one label per text" in refusal(make(tiny, multi_label=True).preview, TEXTS, add=["parcel"])
