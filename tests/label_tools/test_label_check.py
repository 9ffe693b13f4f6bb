"""Checking labels: findings, suggestions and the report."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from maskmatch import Label, LabelSet, MaskMatcher, MaskMatchError, check_labels, expand_labels, informativeness
from maskmatch.label_tools.check.finders import find_unmatched_and_crowding
from maskmatch.label_tools.check.informativeness import TEMPERATURE
from maskmatch.label_tools.check.label_map import draw_map, explained_variance, project
from maskmatch.label_tools.check.label_texts import LabelTexts
from maskmatch.label_tools.expansion.encoded_labels import EncodedLabels
from planted import GOOD, KINDS
from toy_data import FAST, LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


CROWD = ("refund", "card lost", "exchange rate", "parcel", *(f"thing {number}" for number in range(16)))


@pytest.fixture(scope="module")
def default() -> MaskMatcher:
    """The embedded default encoder: a tiny random one does not know which names are meaningful."""
    return MaskMatcher.from_pretrained(labels=["refund", "card lost", "exchange rate"])


class TestInformativeness:
    def test_real_names_are_more_informative_than_numbers_and_letters(self, default: MaskMatcher) -> None:
        names = ["refund not received", "lost card", "exchange rate", "opening hours", "change of address"]
        texts = ["Where is my money?", "I cannot find my card.", "How many dollars for a pound?", "We have moved."]
        numbered = [f"label {number}" for number in range(1, 6)]
        dropped = ["rfnd nt rcvd", "lst crd", "xchng rt", "pnng hrs", "chng f ddrss"]
        for given_texts in (None, texts):
            full, none, half = (informativeness(default, each, given_texts) for each in (names, numbered, dropped))
            assert 0 <= none.score < half.score < full.score <= 1
            assert min(full.scores) > max(none.scores)

    def test_the_default_is_the_classifiers_labels(self, matcher: MaskMatcher) -> None:
        found = informativeness(matcher)
        assert len(found.scores) == len(LABELS)
        assert found.commitment is None
        assert informativeness(matcher, texts=TEXTS).commitment is not None
        assert set(found.to_dict()) >= {"score", "scores", "sense", "distinctness", "commitment"}

    def test_a_single_label_and_labels_with_the_same_vector(self, matcher: MaskMatcher) -> None:
        for labels in (["refund"], ["refund", "refund!"]):
            found = informativeness(matcher, labels, TEXTS)
            assert np.isfinite([found.score, *found.scores]).all()


class TestFindings:
    def kinds(self, matcher: MaskMatcher, labels: list[str], **more: object) -> set[tuple[str, tuple[object, ...]]]:
        return {(each.kind, each.labels) for each in check_labels(matcher, labels, **more).findings}

    def test_uninformative_and_close_names(self, default: MaskMatcher) -> None:
        labels = ["refund not received", "label 17", "card arrival date", "date of card arrival"]
        found = self.kinds(default, labels)
        assert ("generic", ("label 17",)) in found
        assert ("close", ("card arrival date", "date of card arrival")) in found
        assert ("uninformative", ("refund not received",)) not in found

    def test_a_rare_word_of_several_tokens_is_informative(self, default: MaskMatcher) -> None:
        found = self.kinds(default, ["refund", "reimbursement", "rfndrqst"])
        assert [labels for kind, labels in found if kind in ("uninformative", "abbreviation")] == [("rfndrqst",)]

    def test_examples_shift_labels_as_in_prediction(self, tiny: Callable[[str], Path]) -> None:
        labels = LabelSet((Label("refund", examples=tuple(TEXTS[:3])), Label("card lost")))
        matcher = MaskMatcher.from_pretrained(tiny("bert"), labels)
        encoded = EncodedLabels(matcher, labels)
        logits = encoded.encode_texts(TEXTS) @ encoded.shifted_vectors.T / TEMPERATURE
        probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(matcher.predict_proba(TEXTS), probabilities, atol=1e-4)
        cosines = (encoded.shifted_vectors * encoded.vectors).sum(axis=1)
        assert cosines[0] < cosines[1] < 1  # a label without examples gets the common part of the shift
        np.testing.assert_array_equal(check_labels(matcher).vectors, encoded.shifted_vectors)

    def test_names_that_are_nearest_to_no_text(self, default: MaskMatcher) -> None:
        texts = ["I lost my card.", "My card is gone.", "Where is my card?", "A card was stolen.", "The card is lost."]
        found = self.kinds(default, ["lost card", "gardening in spring"], texts=texts * 2)
        assert ("unmatched", ("gardening in spring",)) in found
        assert ("unmatched", ("lost card",)) not in found

    def test_unlabelled_texts_give_no_advice_that_was_not_tried(self, default: MaskMatcher) -> None:
        found = check_labels(default, ["lost card", "xrt"], texts=["My card is gone.", "The dollar rate today?"] * 10)
        assert found.advice == ()
        assert found.improved == found.labels
        assert any("no edit of a label can be tried" in note for note in found.notes)

    def test_advice_mends_texts_that_it_was_not_made_from(self, default: MaskMatcher) -> None:
        cards = ["My card is gone.", "I lost my card.", "The card was stolen.", "A stolen card, please block it."]
        rates = ["The dollar rate today?", "What is the rate for euros?", "A better rate for dollars?", "euro rate?"]
        parcels = ["Where is my parcel?", "The parcel never came.", "My parcel is late.", "Track my parcel, please."]
        labels = LabelSet((Label("lost card"), Label("rate", "topic 9"), Label("parcel", "kqz")))
        texts = [f"{start} {text}" for text in (*cards, *rates, *parcels) for start in ("Hello!", "So:", "Hi, well.")]
        truth = [id_ for id_ in labels for _ in range(12)]
        matcher = MaskMatcher.from_pretrained(labels=labels, verbose=False)
        found = check_labels(matcher, test=(texts, truth))
        assert found.advice
        assert found.improved is not None
        before = matcher.evaluate(texts, truth).accuracy
        after = MaskMatcher.from_pretrained(labels=found.improved, verbose=False).evaluate(texts, truth).accuracy
        assert after > before
        assert all(each.after >= each.before for each in found.advice)
        assert found.to_dict()["advice"][0]["kind"] in ("examples", "phrases", "name")
        assert "Tried on the texts" in str(found)
        assert "Tried on the texts" in found.to_html()

    def test_good_labels_get_no_advice(self, default: MaskMatcher) -> None:
        labels = ["cooking", "football"]
        texts = [
            "Boil the potatoes.",
            "Fry the onions slowly.",
            "A goal in the last minute!",
            "The striker was injured.",
        ]
        matcher = MaskMatcher.from_pretrained(labels=labels, verbose=False)
        found = check_labels(matcher, test=(texts * 3, ["cooking", "cooking", "football", "football"] * 3))
        assert found.advice == ()
        assert found.findings == ()

    def test_the_most_wrong_texts_come_first(self, matcher: MaskMatcher) -> None:
        predicted = matcher.predict(TEXTS)
        turned = [next(name for name in LABELS if name != guess) for guess in predicted]
        stakes = [each.at_stake for each in check_labels(matcher, test=(TEXTS, turned)).findings]
        assert stakes == sorted(stakes, key=lambda stake: -(stake or 0))
        assert all(stake is not None for stake in stakes)

    def test_descriptions_of_some_labels_only(self, default: MaskMatcher) -> None:
        some = {"refund": "money is paid back", "card lost": "", "exchange rate": ""}
        assert ("description", ("refund",)) in self.kinds(default, some)  # type: ignore[arg-type]
        every = dict.fromkeys(some, "a description of some words")
        assert not [kind for kind, _ in self.kinds(default, every) if kind == "description"]  # type: ignore[arg-type]

    def test_too_few_texts_give_a_note(self, default: MaskMatcher) -> None:
        texts = ["I want my money back.", "My card is gone.", "How many dollars for a pound?"]
        few, enough = (check_labels(default, texts=texts * count) for count in (1, 5))
        assert len(few.notes) == 2
        assert "give 15 or more" in few.notes[0]
        assert few.notes[0] in str(few)
        assert few.notes[0] in few.to_html()
        assert few.to_dict()["notes"] == list(few.notes)
        assert enough.notes == few.notes[1:]
        assert check_labels(default).notes == ("Without texts, names that are nearest to no text cannot be found.",)

    def test_mutual_information_is_normalised_by_the_number_of_texts(self, default: MaskMatcher) -> None:
        names = [*(f"label {number}" for number in range(40)), "lost card", "exchange rate", "opening hours"]
        texts = ["My card is gone.", "How many dollars for a pound?", "When do you open?"]
        assert informativeness(default, names, texts).score > 0.3  # three of 43 names could be log 3 / log 43 at most
        assert informativeness(default, names, texts[:1]).score == 0

    def test_very_many_labels_are_compared_in_blocks(
        self, matcher: MaskMatcher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        labels = [*LABELS, "refund it", "the card is lost", "rate"]
        whole = check_labels(matcher, labels)
        monkeypatch.setattr(sys.modules["maskmatch.label_tools.check.informativeness"], "BLOCK", 2)
        assert check_labels(matcher, labels).findings == whole.findings
        np.testing.assert_allclose(informativeness(matcher, labels).distinctness, whole.informativeness.distinctness)

    def test_confusions_of_labelled_texts(self, matcher: MaskMatcher) -> None:
        predicted = matcher.predict(TEXTS)
        turned = [next(name for name in LABELS if name != guess) for guess in predicted]
        found = check_labels(matcher, test=(TEXTS, turned))
        assert found.accuracy == 0
        confused = [each for each in found.findings if each.kind == "confused"]
        assert confused
        assert all(each.labels[0] != each.labels[1] for each in confused)

    def test_a_trained_classifier_that_is_right_has_no_confusions(self, tiny: Callable[[str], Path]) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, TRUTH, **FAST)
        found = check_labels(matcher, test=(TEXTS, TRUTH))
        assert found.accuracy == 1
        assert not [each for each in found.findings if each.kind == "confused"]

    @pytest.mark.parametrize(("labels", "share"), [(2, 0.9), (3, 0.9), (4, 0.85), (20, 0.3)])
    def test_crowding_names(self, default: MaskMatcher, labels: int, share: float) -> None:
        encoded = EncodedLabels(default, LabelSet.of(list(CROWD[:labels])))
        for drawn, crowded in ((share, [CROWD[0]]), (1 / labels, [])):
            count = round(200 * drawn)
            nearest = np.array([0] * count + [1 + position % (labels - 1) for position in range(200 - count)])
            found = [each for each in find_unmatched_and_crowding(encoded, nearest, None) if each.kind == "crowding"]
            assert [each.labels[0] for each in found] == crowded

    def test_a_label_may_be_nearest_to_as_many_texts_as_it_has(self, default: MaskMatcher) -> None:
        encoded = EncodedLabels(default, LabelSet.of(list(CROWD[:2])))
        nearest = np.array([0] * 18 + [1] * 2)
        texts = ["Where is my money?"] * 20
        known = LabelTexts.from_labels(texts, [CROWD[position] for position in nearest], encoded.labels)
        others = LabelTexts.from_labels(texts, [CROWD[position % 2] for position in range(20)], encoded.labels)
        assert not find_unmatched_and_crowding(encoded, nearest, known)
        assert [each.kind for each in find_unmatched_and_crowding(encoded, nearest, others)] == ["crowding"]

    def test_a_single_label_gives_a_note(self, default: MaskMatcher) -> None:
        found = check_labels(default, ["refund"], texts=["Where is my money?"] * 9)
        assert not found.findings
        assert any("only one label" in note for note in found.notes)

    def test_texts_with_no_confident_label_give_a_note(self, default: MaskMatcher) -> None:
        texts = [f"The train to {place} leaves at nine." for place in ("Rome", "Oslo", "Bern", "Lima", "Kyiv", "Riga")]
        for names, expected in ((["noun", "verb", "adverb"], True), (["Rome", "Oslo", "Bern"], False)):
            found = check_labels(default, names, texts=texts * 3)
            assert any("no confident label" in note for note in found.notes) == expected

    def test_unknown_labels_of_rows_give_a_note(self, matcher: MaskMatcher) -> None:
        found = check_labels(matcher, test=([*TEXTS, "a parcel"], [*TRUTH, "parcel"]))
        assert any("unknown to the model" in note and "parcel (1 row)" in note for note in found.notes)
        assert not any("unknown" in note for note in check_labels(matcher, test=(TEXTS, TRUTH)).notes)

    def test_untrained_pair_matching_gives_a_note_instead_of_findings(self, tiny: Callable[[str], Path]) -> None:
        pairs = [{"text": TEXTS[0], "text_b": "It is about money."}] * 12  # all of them come nearest to one label
        given = {"labels": ["same", "other"], "task": "nli"}
        apart, whole = (
            check_labels(MaskMatcher.from_pretrained(tiny("bert"), method=method, **given), texts=pairs)
            for method in (None, "mask-matching")
        )
        assert any("learns in training what the distance of two texts means" in note for note in apart.notes)
        assert not {"unmatched", "crowding"} & {each.kind for each in apart.findings}
        assert not any("distance of two texts" in note for note in whole.notes)
        assert {"unmatched", "crowding"} & {each.kind for each in whole.findings}

    def test_errors(self, matcher: MaskMatcher, tiny: Callable[[str], Path]) -> None:
        with pytest.raises(MaskMatchError, match="leave labels out"):
            check_labels(matcher, ["a", "b"], test=(TEXTS, TRUTH))
        with pytest.raises(MaskMatchError, match="no labels to check"):
            check_labels(MaskMatcher.from_pretrained(tiny("bert")))


class TestPlantedProblems:
    """Problems that are planted among good names of seven domains."""

    def test_at_least_four_of_five_are_found(self, default: MaskMatcher) -> None:
        missed = [
            f"{kind}: {each.name}"
            for kind, problems in KINDS.items()
            for each in problems
            if not any(
                each.name in finding.labels and (each.collides is None or each.collides in finding.labels)
                for finding in check_labels(default, [*GOOD[each.domain], each.name]).findings
            )
        ]
        total = sum(map(len, KINDS.values()))
        assert total >= 60
        assert len(missed) <= total // 5, missed

    def test_good_names_give_hardly_an_alarm(self, default: MaskMatcher) -> None:
        alarms = [each.message for names in GOOD.values() for each in check_labels(default, list(names)).findings]
        assert len(alarms) <= sum(map(len, GOOD.values())) // 30, alarms

    @pytest.mark.parametrize(
        "names",
        [("spam", "not spam"), ("type 1 diabetes", "type 2 diabetes"), ("flights to Paris", "flights from Paris")],
    )
    def test_opposites_are_not_the_same(self, default: MaskMatcher, names: tuple[str, str]) -> None:
        close = [each for each in check_labels(default, list(names)).findings if each.kind == "close"]
        assert all("cosine 0.9" in each.message or "cosine 1" in each.message for each in close)

    def test_a_style_that_all_names_share_is_none(self, default: MaskMatcher) -> None:
        names = ["Überweisung fehlgeschlagen", "Karte verloren und gesperrt", "Zinsen für das Sparbuch"]
        assert not [each for each in check_labels(default, names).findings if each.kind == "language"]


class TestPicture:
    @given(arrays(np.float32, st.tuples(st.integers(1, 8), st.integers(1, 6)), elements=st.floats(-9, 9, width=32)))
    def test_every_label_has_a_point_on_the_map(self, vectors: np.ndarray) -> None:
        points = project(vectors)
        assert points.shape == (len(vectors), 2)
        assert ((points >= -1e-9) & (points <= 1 + 1e-9)).all()
        assert 0 <= explained_variance(vectors) <= 1 + 1e-9

    def test_every_name_is_shown_and_escaped(self) -> None:
        names = ["<b>bold</b>", "plain", "other"]
        drawn = draw_map(names, np.array([[0.0, 0.0], [1.0, 1.0], [0.5, 0.2]]), [True, False, False], [(0, 1)])
        assert "<b>" not in drawn
        assert drawn.count("<circle") == 3
        assert "plain" in drawn

    def test_the_web_page_and_the_text(self, matcher: MaskMatcher, tmp_path: Path) -> None:
        found = check_labels(matcher, texts=TEXTS)
        page = found.save(tmp_path / "new" / "check.html").read_text(encoding="utf-8")
        assert page.startswith("<!DOCTYPE html>")
        assert "Map of labels" in page
        assert all(name in page for name in LABELS)
        assert str(found).startswith("3 labels, informativeness")
        data = found.to_dict()
        assert [each["label"] for each in data["labels"]] == LABELS
        assert len(data["findings"]) == len(found.findings)
        assert LabelSet.of(LABELS) == found.labels


@pytest.mark.parametrize("masks", ["mean", "concat", "late"])
def test_labels_of_several_masks(tiny: Callable[[str], Path], masks: str) -> None:
    matcher = MaskMatcher.from_pretrained(
        tiny("bert"), LABELS, prompt="{text} {mask*2}", label_prompt="{label} {mask*2}", masks=masks
    )
    found = check_labels(matcher, texts=TEXTS)
    assert found.vectors.shape == (len(LABELS), 16)
    assert expand_labels(matcher, texts=TEXTS).label_set.names == tuple(LABELS)


def test_labels_in_context_raise(tiny: Callable[[str], Path]) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, label_prompt="{text} {label} is {mask}.")
    with pytest.raises(MaskMatchError, match="contains a field of the text"):
        check_labels(matcher)
