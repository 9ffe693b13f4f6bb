"""Expanding labels: the sources, the filter, and the editable files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskmatch import Expansion, Label, LabelSet, MaskMatcher, MaskMatchError, expand_labels
from maskmatch.label_tools.expansion.encoded_labels import EncodedLabels, leads, mean_centred
from maskmatch.label_tools.expansion.result import ScoredPhrase
from maskmatch.label_tools.expansion.training_words import training_words, typicality
from maskmatch.labels.files import load_labels
from maskmatch.testing.tiny_encoders import write_tiny_mlm
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class TestSources:
    def test_texts_become_examples_of_their_nearest_label(self, matcher: MaskMatcher) -> None:
        found = expand_labels(matcher, texts=TEXTS, examples=2)
        encoded = EncodedLabels(matcher, LabelSet.of(LABELS))
        lead = leads(mean_centred(encoded.encode_texts(TEXTS)) @ mean_centred(encoded.vectors).T)
        for position, name in enumerate(LABELS):
            assert len(found[name]) <= 2
            for each in found[name]:
                assert (each.kind, each.source) == ("example", "texts")
                assert lead[TEXTS.index(each.text)].argmax() == position
        examples = [each.text for name in LABELS for each in found[name]]
        assert len(set(examples)) == len(examples) > 0

    def test_typical_words_of_training_texts(self, matcher: MaskMatcher) -> None:
        found = expand_labels(matcher, train=(TEXTS, TRUTH), phrases=3)
        assert "lost" in {each.text for each in found["card lost"]}
        assert "exchange" in {each.text for each in found["exchange rate"]}
        assert all(each.source == "training-words" for name in LABELS for each in found[name])

    def test_existing_phrases_are_not_found_again(self, matcher: MaskMatcher) -> None:
        once = expand_labels(matcher, train=(TEXTS, TRUTH), texts=TEXTS)
        assert any(once[name] for name in LABELS)
        again = expand_labels(matcher, once.label_set, train=(TEXTS, TRUTH), texts=TEXTS)
        for name in LABELS:
            assert not {each.text for each in once[name]} & {each.text for each in again[name]}

    def test_a_second_expansion_finds_the_next_best(self, matcher: MaskMatcher) -> None:
        both = expand_labels(matcher, texts=TEXTS, examples=2, drop_shared=False)
        once = expand_labels(matcher, texts=TEXTS, examples=1, drop_shared=False)
        again = expand_labels(matcher, once.label_set, texts=TEXTS, examples=1, drop_shared=False)
        seconds = {name: [each.text for each in both[name]][1:] for name in LABELS}
        assert any(seconds.values())
        assert {name: [each.text for each in again[name]] for name in LABELS} == seconds

    def test_vocabulary_words(self, matcher: MaskMatcher, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("maskmatch.label_tools.expansion.vocabulary.LEAST_COSINE", -1.0)
        found = expand_labels(matcher, sources=["vocabulary"], phrases=3, drop_shared=False)
        words = [each.text for name in LABELS for each in found[name]]
        assert len(words) == 9
        assert set(words) <= set(matcher.encoder.tokenizer.get_vocab())
        assert not set(words) & set(LABELS)
        for name in LABELS:
            scores = [each.score for each in found[name]]
            assert scores == sorted(scores, reverse=True)

    @pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
    def test_a_masked_language_model_head_preselects_vocabulary_words(
        self, family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("maskmatch.label_tools.expansion.vocabulary.LEAST_COSINE", -1.0)
        matcher = MaskMatcher.from_pretrained(write_tiny_mlm(family, tmp_path / family), LABELS)
        found = expand_labels(matcher, sources=["vocabulary"], drop_shared=False)
        assert all(each.text.isalpha() for name in LABELS for each in found[name])
        assert any(found[name] for name in LABELS)

    def test_words_from_the_user(self, matcher: MaskMatcher) -> None:
        listed = expand_labels(matcher, words=["parcel", "station", "money", "parcel"])
        assert sorted(each.text for name in LABELS for each in listed[name]) == ["money", "parcel", "station"]
        from_function = expand_labels(
            matcher, words=lambda name: [f"my {name}", name, "  my   thing "], drop_shared=False
        )
        assert [each.text for each in from_function["refund"]] == ["my refund", "my thing"]

    def test_phrases_that_are_nearer_to_another_label_are_dropped(self, matcher: MaskMatcher) -> None:
        found = expand_labels(matcher, words=lambda name: ["card lost", "exchange rate", "refund"])
        assert all(each.lead > 0 for name in LABELS for each in found[name])
        dropped = {each.text for own in found.dropped for each in own}
        assert dropped == set(LABELS)
        assert all(each.lead <= 0 for own in found.dropped for each in own)

    def test_errors(self, matcher: MaskMatcher, tiny: object) -> None:
        with pytest.raises(MaskMatchError, match="no source 'dictionary'"):
            expand_labels(matcher, sources=["dictionary"])  # type: ignore[list-item]
        with pytest.raises(MaskMatchError, match="phrases is -1; it has to be an integer of at least 0"):
            expand_labels(matcher, phrases=-1)
        with pytest.raises(MaskMatchError, match="needs train"):
            expand_labels(matcher, sources=["training-words"])
        with pytest.raises(MaskMatchError, match="list of words"):
            expand_labels(matcher, words=lambda name: "one, two")
        with pytest.raises(MaskMatchError, match="no label 'parcel'"):
            expand_labels(matcher, train=(TEXTS, ["parcel"] * len(TEXTS)))
        matrix = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method="fine-tuning")  # type: ignore[operator]
        with pytest.raises(MaskMatchError, match="fine-tuning"):
            expand_labels(matrix)


class TestTypicality:
    def test_counts_are_shrunk_towards_the_prior(self) -> None:
        labels = LabelSet.of(["a", "b"])
        texts = ["alpha word"] * 20 + ["beta word"] * 20 + ["rare alpha word"] + ["rare beta word"]
        found = training_words(labels, texts, ["a"] * 20 + ["b"] * 20 + ["a", "b"], 9)
        assert [[each.text for each in own] for own in found] == [["alpha"], ["beta"]]

    def test_few_words_have_no_false_positives(self) -> None:
        texts = ["alpha beta", "alpha beta", "alpha gamma", "alpha gamma"]
        found = training_words(LabelSet.of(["a", "b"]), texts, ["a", "a", "b", "b"], 9)
        assert not any(each.text == "alpha" for own in found for each in own)

    def test_many_words_have_few_false_positives(self) -> None:
        random = np.random.default_rng(0)
        words = [f"{first}{second}" for first in ("bak", "lom", "sur", "tev") for second in "aeioubcdfghk"]
        texts = [" ".join(random.choice(words, 12, replace=False)) for _ in range(400)]
        found = training_words(
            LabelSet.of([str(number) for number in range(8)]), texts, [str(n % 8) for n in range(400)], 9
        )
        assert sum(map(len, found)) <= 2 * 8

    @given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=8))
    def test_z_scores_are_finite_and_opposite_for_two_labels(self, counts: list[tuple[int, int]]) -> None:
        first, second = np.array([pair for pair in counts if any(pair)] or [(1, 1)], dtype=np.float64).T
        found = [typicality(own, first + second, 50, 100) for own in (first, second)]
        assert np.isfinite(found).all()
        assert np.allclose(found[0], -found[1])


class TestFiles:
    def expansion(self) -> Expansion:
        labels = LabelSet.of(
            [Label(3, "refund", "money back", ("reimbursement",), ("back",)), Label("card|lost", "card, lost"), "rate"]
        )
        found = (
            (ScoredPhrase("money | returned", "phrase", 0.5, 0.1, "vocabulary"),),
            (
                ScoredPhrase('It\'s "gone",\nall of it', "example", 0.25, -0.05, "texts"),
                ScoredPhrase("gone", "phrase", 0.4, 0.2, "words"),
            ),
            (),
        )
        return Expansion(labels, found)

    @pytest.mark.parametrize("name", ["labels.csv", "labels.tsv", "labels.jsonl"])
    def test_saved_expansions_are_label_files_and_load_again(self, tmp_path: Path, name: str) -> None:
        expansion = self.expansion()
        path = expansion.save(tmp_path / "new" / name)
        loaded = Expansion.load(path)
        assert [label.name for label in loaded.labels.labels] == ["refund", "card, lost", "rate"]
        assert loaded.found == expansion.found
        labels = load_labels(path)
        assert [label.parts for label in labels.labels] == [label.parts for label in expansion.label_set.labels]
        assert labels.labels[0].phrases == ("reimbursement", "money | returned")
        assert labels.labels[0].words == ("back",)
        assert labels.labels[0].id in (3, "3")

    def test_rows_can_be_removed_and_added(self, tmp_path: Path) -> None:
        path = self.expansion().save(tmp_path / "labels.csv")
        lines = path.read_text().replace("3,,,,money | returned,,0.5000,0.1000,vocabulary\n", "")
        path.write_text(lines + "rate,,,,speed\n".replace("speed", "speed,,,,"))
        edited = load_labels(path)
        assert edited.label("3").phrases == ("reimbursement",)
        assert edited.label("rate").phrases == ("speed",)
        assert Expansion.load(path)["rate"][0].source == "by hand"

    def test_errors(self, tmp_path: Path) -> None:
        with pytest.raises(MaskMatchError, match=r"\.csv, \.tsv or \.jsonl"):
            self.expansion().save(tmp_path / "labels.txt")
        with pytest.raises(MaskMatchError, match="tuple"):
            Expansion(LabelSet.of([("a", 1)]), ((),)).save(tmp_path / "labels.csv")
        path = tmp_path / "labels.csv"
        path.write_text("label,phrase,colour\na,b,c\n")
        with pytest.raises(MaskMatchError, match="colour"):
            load_labels(path)
        path.write_text("label,phrase\n,b\n")
        with pytest.raises(MaskMatchError, match="label is required"):
            load_labels(path)
        path.write_text("label,name,phrase\na,one,x\na,two,y\n")
        with pytest.raises(MaskMatchError, match="more than one name"):
            load_labels(path)

    def test_text_and_json(self) -> None:
        shown = str(self.expansion())
        assert "refund" in shown
        assert "money | returned" in shown
        assert "rate: nothing found" in shown
        assert self.expansion().to_dict()["labels"][0]["found"][0]["score"] == 0.5


def test_phrases_of_other_label_files_stay_with_the_label(tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text('{"refund": ["money back", "repayment"], "card lost": []}')
    (tmp_path / "labels.csv").write_text("label,phrases\nrefund,money back|repayment\ncard lost,\n")
    for name in ("labels.json", "labels.csv"):
        loaded = Expansion.load(tmp_path / name)
        assert loaded.label_set.label("refund").phrases == ("money back", "repayment"), name


def test_texts_of_several_fields_cannot_be_examples(tiny: Callable[[str], Path]) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), ["yes", "no"], task="nli")
    with pytest.raises(MaskMatchError, match="one field"):
        expand_labels(matcher, texts=[{"text": "It rains.", "text_b": "It is wet."}])
