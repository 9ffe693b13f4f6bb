"""ModelBank: one owner of labels, one version number, nothing stale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch import LabelSet, MaskMatcher, MaskMatchError
from maskmatch.config.matcher import MatcherConfig
from maskmatch.labels.centroids import Centroids
from maskmatch.model.model_bank import ModelBank
from maskmatch.prediction.runtimes.torch import torch_pipeline
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from maskmatch.model.encoder import Encoder


@pytest.fixture
def bank(encoder: Callable[[str], Encoder]) -> ModelBank:
    return ModelBank.of(encoder("bert"), MatcherConfig.make(max_length=48), labels=LabelSet.of(LABELS))


def centroids(bank: ModelBank, *ids: str) -> Centroids:
    vectors = np.random.default_rng(0).normal(size=(len(ids), *bank.vectors().shape[1:])).astype(np.float32)
    return Centroids.of(list(ids), vectors, np.arange(len(ids)), [0.5] * len(ids))


EDITS: dict[str, Callable[[ModelBank], Any]] = {
    "add": lambda bank: bank.add(["parcel"]),
    "rename": lambda bank: bank.rename("refund", "money back"),
    "remove": lambda bank: bank.remove(["refund"]),
    "replace": lambda bank: bank.replace(["parcel", "card lost"]),
    "centroids": lambda bank: bank.learn(centroids=centroids(bank, "refund")),
}


@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_makes_what_is_derived_stale(bank: ModelBank, edit: str) -> None:
    version, pipeline = bank.version, torch_pipeline(bank)
    assert bank.version == version
    assert torch_pipeline(bank) is pipeline, "nothing has changed"
    EDITS[edit](bank)
    assert bank.version != version
    assert torch_pipeline(bank) is not pipeline
    assert len(torch_pipeline(bank).labels) == len(bank.known_labels) == len(bank.layout)


def test_a_change_of_weights_makes_what_is_derived_stale(bank: ModelBank) -> None:
    version = bank.version
    bank.model.train()
    bank.model.eval()  # an optimizer may have run in between
    assert bank.version != version


@settings(max_examples=30, deadline=None)
@given(edits=st.lists(st.sampled_from(["add", "rename", "remove"]), max_size=6), seed=st.integers(0, 99))
def test_after_any_edits_vectors_are_those_of_a_new_bank(
    encoder: Callable[[str], Encoder], edits: list[str], seed: int
) -> None:
    config, random = MatcherConfig.make(max_length=48), np.random.default_rng(seed)
    bank = ModelBank.of(encoder("bert"), config, labels=LabelSet.of(LABELS))
    for number, edit in enumerate(edits):
        own = list(bank.known_labels)
        label = own[random.integers(len(own))]
        if edit == "add":
            bank.add([f"label {number}"])
        elif edit == "rename":
            bank.rename(label, f"other {number}")
        elif len(own) > 1:
            bank.remove([label])
    fresh = ModelBank.of(encoder("bert"), config, labels=LabelSet.of(list(bank.known_labels)))
    np.testing.assert_allclose(bank.vectors(), fresh.vectors(), atol=1e-5, rtol=1e-5)


def test_edits_at_once_or_not_at_all(bank: ModelBank) -> None:
    before, version = list(bank.known_labels), bank.version
    for wrong in ({"remove": ["unknown"]}, {"rename": {"unknown": "x"}}, {"add": ["card lost"]}):
        edits: dict[str, Any] = {"add": ["parcel"], "rename": {"refund": "money back"}, "remove": ["exchange rate"]}
        with pytest.raises(MaskMatchError):
            bank.edit(**{**edits, **wrong})
        assert (list(bank.known_labels), bank.version) == (before, version)
    seen: list[list[Any]] = []
    real = bank._set  # noqa: SLF001
    bank.__dict__["_set"] = lambda *parts: (real(*parts), seen.append(list(bank.known_labels)))[0]
    ids = bank.edit(add=["parcel"], rename={"refund": "card lost", "card lost": "refund"}, remove=["exchange rate"])
    assert ids == {"refund": "card lost", "card lost": "refund"}
    assert len(seen) == 1, "no other thread sees half of it"
    assert set(seen[0]) == {"refund", "card lost", "parcel"}


def test_a_copy_leaves_the_cache_of_its_original_alone(bank: ModelBank, monkeypatch: pytest.MonkeyPatch) -> None:
    bank.vectors()
    copy = bank.copy()
    copy.remove(["refund"])
    copy.vectors()
    monkeypatch.setattr(ModelBank, "reading", lambda self: pytest.fail("nothing is missing"))
    bank.remove(["card lost"])
    assert len(bank.vectors()) == len(LABELS) - 1


class TestCentroids:
    def test_they_follow_a_renamed_label_and_leave_with_a_removed_one(self, bank: ModelBank) -> None:
        bank.learn(centroids=centroids(bank, "refund", "card lost"))
        bank.rename("refund", "money back")
        assert bank.centroids.ids == ("money back", "card lost")
        bank.remove(["card lost"])
        assert bank.centroids.ids == ("money back",)

    def test_a_replaced_label_keeps_them_if_id_and_name_are_the_same(self, bank: ModelBank) -> None:
        bank.learn(centroids=centroids(bank, "refund", "card lost"))
        bank.replace({"refund": "money back", "other": None})
        assert bank.centroids.ids == ("refund",)


def test_a_copy_is_edited_by_itself(bank: ModelBank) -> None:
    before, copy = bank.vectors().copy(), bank.copy()
    copy.remove(["refund"])
    copy.add(["parcel"])
    assert list(bank.known_labels) == LABELS
    assert np.array_equal(bank.vectors(), before)


def test_state_goes_from_one_bank_to_another(bank: ModelBank, encoder: Callable[[str], Encoder]) -> None:
    bank.learn(centroids=centroids(bank, "refund"))
    tensors, metadata = bank.state_dict()
    other = ModelBank.of(encoder("bert"), bank.config, labels=bank.labels)
    assert other.load_state_dict(tensors, metadata, same_weights=True)
    np.testing.assert_allclose(other.vectors(), bank.vectors(), atol=1e-6)
    stale = ModelBank.of(encoder("bert"), bank.config, labels=bank.labels)
    assert not stale.load_state_dict(tensors, metadata, same_weights=False)
    assert not len(stale.centroids)


def test_learned_labels_cannot_be_edited_without_training(tiny: Callable[[str], Path]) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), method="fine-tuning").fit(TEXTS, TRUTH, epochs=1)
    for edit in (matcher.bank.add, matcher.bank.replace):
        with pytest.raises(MaskMatchError, match="learns a vector per label"):
            edit(["parcel"])
    before = matcher.bank.vectors()
    with pytest.raises(MaskMatchError, match="no label 'unknown'"):
        matcher.edit_labels(remove=[LABELS[1]], rename={"unknown": "x"})
    assert matcher.bank.vectors().shape == before.shape
    matcher.edit_labels(remove=[LABELS[0]])
    kept = [sorted(LABELS).index(label) for label in matcher.labels or ()]
    np.testing.assert_allclose(matcher.bank.vectors(), before[kept])
