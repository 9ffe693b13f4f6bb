"""Labels of a classifier: as they are given, as they come back, as they are edited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from maskmatch import Label, LabelSet, MaskMatcher, MaskMatchError
from maskmatch.model.label_sources import PromptLabels
from refusals import refusal
from toy_data import A_LITTLE, LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from maskmatch.model.label_reader import LabelReader

Tiny = Callable[..., Path]


class TestLabels:
    @pytest.mark.parametrize(
        ("labels", "ids", "names"),
        [
            (["refund", "card lost"], ["refund", "card lost"], ("refund", "card lost")),
            (["card_lost", "org:founded_by"], ["card_lost", "org:founded_by"], None),
            ([3, 1], [3, 1], ("3", "1")),
            ({3: "refund", 1: "card lost"}, [3, 1], ("refund", "card lost")),
            (np.array([3, 1]), [3, 1], ("3", "1")),
            ([("a", 1), ("b", 2)], [("a", 1), ("b", 2)], None),
            (
                {"refund": "money back", "card lost": "no card"},
                ["refund", "card lost"],
                ("refund", "card lost"),
            ),
            ({"refund": ["money back"], "card": ["lost", "gone"]}, ["refund", "card"], ("refund", "card")),
            (LabelSet.of([Label(7, "refund"), Label(8, "card")]), [7, 8], ("refund", "card")),
        ],
    )
    def test_predictions_are_labels_as_the_user_gave_them(
        self, tiny: Tiny, labels: Any, ids: list[Any], names: tuple[str, ...] | None
    ) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), labels)
        assert matcher.labels is not None
        assert list(matcher.labels) == ids
        assert names is None or matcher.labels.names == names
        found = matcher.predict(TEXTS)
        assert set(found) <= set(ids)
        assert {type(id_) for id_ in found} <= {type(id_) for id_ in ids}
        best = matcher.predict_proba(TEXTS).argmax(axis=1)
        assert found == [ids[place] for place in best]

    def test_columns_follow_the_labels_not_the_alphabet(self, tiny: Tiny) -> None:
        forward = MaskMatcher.from_pretrained(tiny("bert"), LABELS).predict_proba(TEXTS)
        backward = MaskMatcher.from_pretrained(tiny("bert"), LABELS[::-1]).predict_proba(TEXTS)
        np.testing.assert_allclose(forward, backward[:, ::-1], atol=1e-6)
        assert np.abs(forward - backward).max() > 1e-3

    def test_descriptions_and_phrases_are_read(self, tiny: Tiny) -> None:
        bare = MaskMatcher.from_pretrained(tiny("bert"), LABELS).predict_proba(TEXTS)
        for more in ("money that is given back", ["money back", "pending parcel"]):
            labels = {**dict.fromkeys(LABELS), "refund": more}
            changed = MaskMatcher.from_pretrained(tiny("bert"), labels).predict_proba(TEXTS)
            assert np.abs(changed - bare).max() > 1e-3

    def test_labels_left_out_come_from_the_training_rows(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"))
        assert matcher.labels is None
        matcher.fit(TEXTS, TRUTH, **A_LITTLE)
        assert matcher.labels is not None
        assert list(matcher.labels) == sorted(LABELS)

    @pytest.mark.parametrize("kind", [int, np.int64, str])
    def test_labels_of_training_rows_come_back_in_their_kind(self, tiny: Tiny, kind: Any) -> None:
        rows = [kind(LABELS.index(label)) for label in TRUTH]
        matcher = MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, rows, **A_LITTLE)
        assert list(matcher.labels or ()) == ([0, 1, 2] if kind is not str else ["0", "1", "2"])
        assert all(type(id_) is (str if kind is str else int) for id_ in matcher.predict(TEXTS))

    def test_a_fit_with_fewer_labels_than_the_classifier_has_keeps_them_all(self, matcher: MaskMatcher) -> None:
        matcher.fit(TEXTS[:8], TRUTH[:8], **A_LITTLE)
        assert list(matcher.labels or ()) == LABELS


class Encodings:
    """Counts the label texts that an encoder reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []
        original = PromptLabels.read

        def counting(source: PromptLabels, texts: Sequence[str], reader: LabelReader) -> torch.Tensor:
            self.texts += texts
            return original(source, texts, reader)

        monkeypatch.setattr(PromptLabels, "read", counting)

    def take(self) -> list[str]:
        taken, self.texts = self.texts, []
        return taken


class TestEditingLabels:
    @pytest.fixture
    def encodings(self, monkeypatch: pytest.MonkeyPatch) -> Encodings:
        return Encodings(monkeypatch)

    def fresh(self, tiny: Tiny, labels: Any) -> Any:
        return MaskMatcher.from_pretrained(tiny("bert"), labels).predict_proba(TEXTS)

    def test_labels_are_read_once(self, matcher: MaskMatcher, encodings: Encodings) -> None:
        matcher.predict(TEXTS)
        assert encodings.take() == LABELS
        matcher.predict(TEXTS)
        matcher.predict_proba(TEXTS[:1])
        matcher.top_k(TEXTS, 2)
        matcher.evaluate(TEXTS, TRUTH)
        assert encodings.take() == []

    def test_only_what_changes_is_read_anew(self, tiny: Tiny, matcher: MaskMatcher, encodings: Encodings) -> None:
        matcher.predict(TEXTS)
        encodings.take()

        matcher.add_labels({"chargeback": "money taken back"})
        np.testing.assert_allclose(
            matcher.predict_proba(TEXTS),
            self.fresh(tiny, {**dict.fromkeys(LABELS), "chargeback": "money taken back"}),
            atol=1e-5,
        )
        assert encodings.take()[0] == "chargeback: money taken back"

        matcher.rename_label("refund", "parcel")
        encodings.take()
        renamed = matcher.predict_proba(TEXTS)
        assert encodings.take() == ["parcel"]
        assert list(matcher.labels or ()) == ["parcel", "card lost", "exchange rate", "chargeback"]

        matcher.remove_labels(["card lost", "chargeback"])
        kept = matcher.predict_proba(TEXTS)
        assert encodings.take() == []
        assert list(matcher.labels or ()) == ["parcel", "exchange rate"]
        ratio = renamed[:, [0, 2]] / renamed[:, [0, 2]].sum(axis=1, keepdims=True)
        np.testing.assert_allclose(kept, ratio, atol=1e-5)
        np.testing.assert_allclose(kept, self.fresh(tiny, ["parcel", "exchange rate"]), atol=1e-5)

    def test_only_the_new_label_is_read_when_one_is_added(self, matcher: MaskMatcher, encodings: Encodings) -> None:
        matcher.predict(TEXTS)
        encodings.take()
        matcher.add_labels(["chargeback", "parcel"])
        matcher.predict(TEXTS)
        assert encodings.take() == ["chargeback", "parcel"]

    def test_an_added_label_can_be_predicted_at_once(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), ["refund"])
        assert set(matcher.predict(TEXTS)) == {"refund"}
        matcher.add_labels(LABELS[1:])
        assert matcher.predict_proba(TEXTS).shape == (len(TEXTS), 3)
        np.testing.assert_allclose(matcher.predict_proba(TEXTS), self.fresh(tiny, LABELS), atol=1e-5)

    def test_labels_can_be_added_to_none(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert")).add_labels(LABELS)
        np.testing.assert_allclose(matcher.predict_proba(TEXTS), self.fresh(tiny, LABELS), atol=1e-6)

    def test_training_makes_label_vectors_anew(self, matcher: MaskMatcher, encodings: Encodings) -> None:
        before = matcher.predict_proba(TEXTS)
        encodings.take()
        matcher.fit(TEXTS, TRUTH, epochs=3, learning_rate=1e-2, example_share=0)
        assert np.abs(matcher.predict_proba(TEXTS) - before).max() > 1e-2
        assert encodings.take() == LABELS
        with torch.no_grad():  # against vectors that were certainly computed with the weights as they are
            fresh = matcher.bank.read(LABELS)
        np.testing.assert_allclose(matcher.bank.vectors(), fresh, atol=1e-6)

    def test_a_change_of_weights_by_hand_is_noticed(self, matcher: MaskMatcher, encodings: Encodings) -> None:
        matcher.predict(TEXTS)
        encodings.take()
        with torch.no_grad():
            next(matcher.encoder.model.parameters()).mul_(1.5)
        matcher.predict(TEXTS)
        assert encodings.take() == LABELS

    def test_editing_refuses_what_makes_no_sense(self, matcher: MaskMatcher) -> None:
        assert "already a label 'refund'" in refusal(matcher.add_labels, ["refund"])
        assert "'parcel'" in refusal(matcher.rename_label, "parcel", "x")
        assert "card lost" in refusal(matcher.rename_label, "refund", "card lost")
        assert "'parcel'" in refusal(matcher.remove_labels, ["parcel"])
        assert "Every label" in refusal(matcher.remove_labels, LABELS)
        assert list(matcher.labels or ()) == LABELS

    @pytest.mark.parametrize("method", ["fine-tuning", "soft-prompt"])
    def test_a_learned_matrix_can_lose_labels_but_gain_none(self, tiny: Tiny, method: str) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), method=method)
        matcher.fit(TEXTS, TRUTH, epochs=3, learning_rate=1e-2)
        before = matcher.predict_proba(TEXTS)  # card lost, exchange rate, refund
        assert method in refusal(matcher.add_labels, ["parcel"])
        matcher.remove_labels(["exchange rate"])
        assert list(matcher.labels or ()) == ["card lost", "refund"]
        kept = before[:, [0, 2]]
        np.testing.assert_allclose(matcher.predict_proba(TEXTS), kept / kept.sum(axis=1, keepdims=True), atol=1e-5)
        matcher.rename_label("refund", "money back")
        assert set(matcher.predict(TEXTS)) <= {"card lost", "money back"}
        matcher.fit(TEXTS[:2], ["card lost", "money back"], **A_LITTLE)


def test_edits_of_learned_rows_are_made_together_or_not_at_all(tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method="fine-tuning", verbose=False)
    matcher.fit(TEXTS, TRUTH, **A_LITTLE)
    with pytest.raises(MaskMatchError):
        matcher.edit_labels(change=[Label("refund", name="card lost")])
    assert [label.name for label in matcher.bank.known_labels.labels] == LABELS
    matcher.edit_labels(change=[Label("refund", name="money back")])
    assert [label.name for label in matcher.bank.known_labels.labels] == ["money back", *LABELS[1:]]
