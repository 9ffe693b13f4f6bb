"""A saved classifier comes back as it was, or as it is asked to be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from maskmatch import MaskMatcher, SimilarityConfig, Task
from maskmatch.testing.tiny_encoders import FAMILIES
from matcher_tools import new_matcher
from refusals import refusal
from saving_tools import SHORT, Tiny, edit_json, snapshot
from toy_data import LABELS, TEXTS, TRUTH


class TestRoundTrip:
    def test_everything_comes_back(self, trained: MaskMatcher, saved: Path) -> None:
        loaded = MaskMatcher.from_pretrained(saved)
        assert loaded.config == trained.config
        assert loaded.labels == trained.labels
        assert loaded.training_ == trained.training_
        assert loaded.encoder.source == Path(trained.encoder.source).name  # no folder of this machine
        assert loaded.predict(TEXTS) == trained.predict(TEXTS)
        assert np.array_equal(loaded.predict_proba(TEXTS), trained.predict_proba(TEXTS))

    def test_a_second_save_writes_the_same_files(self, saved: Path, tmp_path: Path) -> None:
        again = MaskMatcher.from_pretrained(saved).save_pretrained(tmp_path / "again")
        files, same = snapshot(saved), snapshot(again)
        for content in (files, same):  # safetensors writes the entries of its metadata in any order
            content["labels.safetensors"] = bytes(sorted(content["labels.safetensors"]))
            data = json.loads(content["maskmatch.json"])
            del data["sha256"]["labels.safetensors"], data["sha256"]["maskmatch.json"]
            content["maskmatch.json"] = json.dumps(data).encode()
        assert files == same

    def test_label_vectors_are_not_computed_again(self, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any) -> None:
            raise AssertionError("labels were read again")

        monkeypatch.setattr("maskmatch.model.label_sources.PromptLabels.read", fail)
        assert len(MaskMatcher.from_pretrained(saved).predict(TEXTS)) == len(TEXTS)

    @pytest.mark.parametrize(
        "ids", [["refund", "card_lost"], [0, 1], [True, False], [1.5, 2.5], [("a", 1), ("b", ("c", 2))]]
    )
    def test_label_ids_keep_their_kind(self, tiny: Tiny, tmp_path: Path, ids: list[Any]) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), ids)
        loaded = MaskMatcher.from_pretrained(matcher.save_pretrained(tmp_path / "model"))
        assert list(loaded.labels or ()) == ids
        assert [type(id_) for id_ in loaded.labels or ()] == [type(id_) for id_ in ids]

    def test_a_task_of_ones_own_and_its_settings(self, tiny: Tiny, tmp_path: Path) -> None:
        task = Task("ticket", "tickets", ("subject", "body"), "{subject}: {body} {mask}", "{mask} {label}")
        similarity = SimilarityConfig("dot", 2.0, learn_temperature=True, phrases="max")
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, task=task, similarity=similarity, max_length=32)
        loaded = MaskMatcher.from_pretrained(matcher.save_pretrained(tmp_path / "model"))
        assert loaded.config == matcher.config

    @pytest.mark.parametrize("family", [family for family in FAMILIES if family != "bert"])
    def test_every_family_of_encoders(self, tiny: Tiny, tmp_path: Path, family: str) -> None:
        matcher = MaskMatcher.from_pretrained(tiny(family), LABELS)
        loaded = MaskMatcher.from_pretrained(matcher.save_pretrained(tmp_path / "model"))
        np.testing.assert_allclose(loaded.predict_proba(TEXTS), matcher.predict_proba(TEXTS), atol=1e-6)


class TestLoadingWithChanges:
    def test_other_labels_take_the_place_of_the_saved_ones(self, trained: MaskMatcher, saved: Path) -> None:
        loaded = MaskMatcher.from_pretrained(saved, ["money", "parcel"])
        assert set(loaded.predict(TEXTS)) <= {"money", "parcel"}
        fresh = new_matcher(trained.encoder, trained.config, loaded.labels)
        np.testing.assert_allclose(loaded.predict_proba(TEXTS), fresh.predict_proba(TEXTS), atol=1e-6)

    def test_naming_the_saved_task_and_method_changes_nothing(self, trained: MaskMatcher, saved: Path) -> None:
        loaded = MaskMatcher.from_pretrained(saved, task="intent", method="mask-matching")
        assert loaded.config == trained.config

    def test_another_task_brings_its_prompts(self, saved: Path) -> None:
        loaded = MaskMatcher.from_pretrained(saved, task="sentiment")
        assert loaded.config.prompt.template == "{text} It was {mask}."
        assert loaded.config.label_prompt.template == "{label} is {mask}."

    def test_another_label_prompt_reads_the_labels_anew(self, trained: MaskMatcher, saved: Path) -> None:
        loaded = MaskMatcher.from_pretrained(saved, label_prompt="{mask} means {label}")
        fresh = new_matcher(trained.encoder, loaded.config, trained.labels)
        np.testing.assert_allclose(loaded.predict_proba(TEXTS), fresh.predict_proba(TEXTS), atol=1e-6)
        assert np.abs(loaded.predict_proba(TEXTS) - trained.predict_proba(TEXTS)).max() > 1e-3

    def test_another_max_length_reads_the_labels_anew(self, trained: MaskMatcher, saved: Path) -> None:
        loaded = MaskMatcher.from_pretrained(saved, max_length=8, label_prompt="{label}: {mask}")
        fresh = new_matcher(trained.encoder, loaded.config, trained.labels)
        fresh.bank.learn(centroids=trained.bank.centroids, calibration=trained.bank.calibration)
        np.testing.assert_allclose(loaded.predict_proba(["refund"]), fresh.predict_proba(["refund"]), atol=1e-6)

    @pytest.mark.parametrize("method", ["fine-tuning", "prompt-tuning"])
    def test_another_similarity_keeps_what_was_learned(self, tiny: Tiny, tmp_path: Path, method: str) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method=method, similarity="dot")
        matcher.fit(TEXTS, TRUTH, **SHORT).save_pretrained(tmp_path / "model")
        half = SimilarityConfig("dot", temperature=2.0)
        loaded = MaskMatcher.from_pretrained(tmp_path / "model", similarity=half)
        expected = np.sqrt(matcher.predict_proba(TEXTS))
        expected /= expected.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(loaded.predict_proba(TEXTS), expected, atol=1e-5)

    def test_a_matrix_method_on_a_classifier_trained_otherwise_has_to_be_trained(self, saved: Path) -> None:
        loaded = MaskMatcher.from_pretrained(saved, method="fine-tuning")
        assert "trained first" in refusal(loaded.predict, TEXTS)
        assert set(loaded.fit(TEXTS, TRUTH, **SHORT).predict(TEXTS)) <= set(LABELS)

    def test_labels_of_a_learned_matrix_cannot_be_replaced(self, tiny: Tiny, tmp_path: Path) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), method="fine-tuning").fit(TEXTS, TRUTH, **SHORT)
        matcher.save_pretrained(tmp_path / "model")
        assert "fine-tuning" in refusal(MaskMatcher.from_pretrained, tmp_path / "model", ["a", "b"])


class TestReplacedParts:
    def test_replaced_weights_make_label_vectors_anew(self, trained: MaskMatcher, saved: Path) -> None:
        weights = load_file(saved / "model.safetensors")
        save_file({name: tensor * 1.3 for name, tensor in weights.items()}, saved / "model.safetensors")
        assert "model.safetensors is damaged, or was changed" in refusal(MaskMatcher.from_pretrained, saved)
        loaded = MaskMatcher.from_pretrained(saved, verify=False)
        fresh = new_matcher(loaded.encoder, loaded.config, loaded.labels)
        np.testing.assert_allclose(loaded.predict_proba(TEXTS), fresh.predict_proba(TEXTS), atol=1e-6)
        assert np.abs(loaded.predict_proba(TEXTS) - trained.predict_proba(TEXTS)).max() > 1e-3

    def test_labels_edited_by_hand_are_read_anew(self, saved: Path) -> None:
        edit_json(saved / "maskmatch.json", lambda data: data["labels"][0].update(name="parcel"))
        loaded = MaskMatcher.from_pretrained(saved)
        fresh = new_matcher(loaded.encoder, loaded.config, loaded.labels)
        fresh.bank.learn(centroids=loaded.bank.centroids)  # the label is the same under its new name
        np.testing.assert_allclose(loaded.predict_proba(TEXTS), fresh.predict_proba(TEXTS), atol=1e-6)
        edit_json(saved / "maskmatch.json", lambda data: data["labels"].append({"id": "x", "name": "box"}))
        assert MaskMatcher.from_pretrained(saved).predict_proba(TEXTS).shape == (12, 4)
