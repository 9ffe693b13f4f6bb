"""Saved classifiers: whole or not at all, exact, free of pickles, and honest about damage."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import maskmatch.saving
from maskmatch import MaskMatcher, MaskMatchError, SimilarityConfig, Task
from maskmatch.encoder import HUB_FILES
from tiny_models import FAMILIES
from toy_data import LABELS, TEXTS, TRUTH

Tiny = Callable[..., Path]

SHORT = {"learning_rate": 1e-2, "batch_size": 4, "epochs": 4}
OURS = {
    "README.md",
    "config.json",
    "head.safetensors",
    "labels.safetensors",
    "maskmatch.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
}


@pytest.fixture(scope="module")
def trained(tiny: Tiny) -> MaskMatcher:
    """A trained classifier; tests do not change it."""
    labels = {"refund": "money given back", "card lost": ["card gone", "card stolen"], "exchange rate": None}
    matcher = MaskMatcher.from_pretrained(tiny("bert"), labels, task="intent", label_prompt="{label}: {mask}")
    matcher.fit(TEXTS, TRUTH, dev=(TEXTS, TRUTH), **SHORT)
    matcher.evaluate(TEXTS, TRUTH)
    return matcher


@pytest.fixture
def saved(trained: MaskMatcher, tmp_path: Path) -> Path:
    return trained.save_pretrained(tmp_path / "model")


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def refusal(call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    with pytest.raises(MaskMatchError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def edit_json(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


class TestRoundTrip:
    def test_everything_comes_back(self, trained: MaskMatcher, saved: Path) -> None:
        loaded = MaskMatcher.from_pretrained(saved)
        assert loaded.config == trained.config
        assert loaded.labels == trained.labels
        assert loaded.training_ == trained.training_
        assert loaded.encoder.source == trained.encoder.source
        assert loaded.predict(TEXTS) == trained.predict(TEXTS)
        assert np.array_equal(loaded.predict_proba(TEXTS), trained.predict_proba(TEXTS))

    def test_a_second_save_writes_the_same_files(self, saved: Path, tmp_path: Path) -> None:
        again = MaskMatcher.from_pretrained(saved).save_pretrained(tmp_path / "again")
        files, same = snapshot(saved), snapshot(again)
        for content in (files, same):  # safetensors writes the entries of its metadata in any order
            content["labels.safetensors"] = bytes(sorted(content["labels.safetensors"]))
        assert files == same

    def test_label_vectors_are_not_computed_again(self, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any) -> None:
            raise AssertionError("labels were read again")

        monkeypatch.setattr("maskmatch.scorer.Scorer._encode_labels", fail)
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
        fresh = MaskMatcher(trained.encoder, trained.config, loaded.labels)
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
        fresh = MaskMatcher(trained.encoder, loaded.config, trained.labels)
        np.testing.assert_allclose(loaded.predict_proba(TEXTS), fresh.predict_proba(TEXTS), atol=1e-6)
        assert np.abs(loaded.predict_proba(TEXTS) - trained.predict_proba(TEXTS)).max() > 1e-3

    def test_another_max_length_reads_the_labels_anew(self, trained: MaskMatcher, saved: Path) -> None:
        loaded = MaskMatcher.from_pretrained(saved, max_length=8, label_prompt="{label}: {mask}")
        fresh = MaskMatcher(trained.encoder, loaded.config, trained.labels)
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
        assert "call fit" in refusal(loaded.predict, TEXTS)
        assert set(loaded.fit(TEXTS, TRUTH, **SHORT).predict(TEXTS)) <= set(LABELS)

    def test_labels_of_a_learned_matrix_cannot_be_replaced(self, tiny: Tiny, tmp_path: Path) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), method="fine-tuning").fit(TEXTS, TRUTH, **SHORT)
        matcher.save_pretrained(tmp_path / "model")
        assert "fine-tuning" in refusal(MaskMatcher.from_pretrained, tmp_path / "model", ["a", "b"])


class TestFiles:
    @pytest.mark.parametrize("method", ["mask-matching", "fine-tuning", "prompt-tuning"])
    def test_nothing_but_safetensors_json_and_the_card(self, tiny: Tiny, tmp_path: Path, method: str) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), method=method).fit(TEXTS, TRUTH, **SHORT)
        folder = matcher.save_pretrained(tmp_path / "model")
        names = {path.name for path in folder.rglob("*")}
        assert names <= OURS
        assert {"maskmatch.json", "labels.safetensors", "model.safetensors", "config.json"} <= names
        for path in folder.iterdir():  # pickles and the zips that torch puts them in begin so
            assert not path.read_bytes().startswith((b"\x80", b"PK")), path.name

    def test_the_encoder_is_in_plain_layout(self, saved: Path) -> None:
        model = transformers.AutoModel.from_pretrained(saved, add_pooling_layer=False)
        tokenizer = transformers.AutoTokenizer.from_pretrained(saved)
        with torch.no_grad():
            assert model(**tokenizer("refund", return_tensors="pt")).last_hidden_state.shape[2] == 16

    def test_versions_and_format_are_written_down(self, saved: Path) -> None:
        data = json.loads((saved / "maskmatch.json").read_text())
        assert data["format"] == 1
        assert {"maskmatch", "torch", "transformers", "python"} <= data["versions"].keys()
        assert set(data["files"]) == {path.name for path in saved.iterdir()}

    def test_the_folder_can_be_read_by_others(self, saved: Path) -> None:
        assert saved.stat().st_mode & 0o777 != 0o700


class TestModelCard:
    def test_it_tells_labels_prompts_training_and_figures(self, trained: MaskMatcher, saved: Path) -> None:
        card = (saved / "README.md").read_text(encoding="utf-8")
        assert trained.training_ is not None
        assert trained.report_ is not None
        for words in (
            "library_name: maskmatch",
            "| `refund` | refund | money given back |",
            "card gone; card stolen",
            "{text} This is about {mask}.",
            "{label}: {mask}",
            "12 texts with 3 labels",
            f"{trained.training_.steps} steps",
            "learning rate 0.01",
            f"accuracy {trained.training_.dev['accuracy']:.4f}",  # type: ignore[index]
            f"| accuracy | {round(trained.report_.accuracy, 4)} |",
        ):
            assert words in card, words

    def test_figures_of_another_state_are_not_told(self, tiny: Tiny, tmp_path: Path) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        edits: list[Callable[[], Any]] = [
            lambda: matcher.fit(TEXTS, TRUTH, **SHORT),
            lambda: matcher.add_labels(["parcel"]),
            lambda: matcher.rename_label("parcel", "box"),
            lambda: matcher.remove_labels(["box"]),
        ]
        for edit in edits:
            matcher.evaluate(TEXTS, TRUTH)
            assert "## Evaluation" in (matcher.save_pretrained(tmp_path / "m") / "README.md").read_text()
            edit()
            assert "## Evaluation" not in (matcher.save_pretrained(tmp_path / "m") / "README.md").read_text()

    def test_figures_survive_loading_and_saving(self, saved: Path, tmp_path: Path) -> None:
        again = MaskMatcher.from_pretrained(saved).save_pretrained(tmp_path / "again")
        assert (again / "README.md").read_text() == (saved / "README.md").read_text()

    def test_odd_labels_do_not_break_its_table(self, tiny: Tiny, tmp_path: Path) -> None:
        ids = ["a|b", "c\nd", "`e`", ("f", 1), *(f"label {number}" for number in range(60))]
        folder = MaskMatcher.from_pretrained(tiny("bert"), ids).save_pretrained(tmp_path / "model")
        card = (folder / "README.md").read_text(encoding="utf-8")
        for row in ("| `a\\|b` | a\\|b |", "| `c d` | c d |", "| `'e'` | 'e' |", "| `('f', 1)` |"):
            assert row in card
        assert "… and 14 more" in card
        assert "nothing" not in card
        assert "## Training\n\nNone" in card


class TestWholeOrNotAtAll:
    @pytest.mark.parametrize("error", [RuntimeError("boom"), OSError(28, "No space left on device")])
    def test_a_crash_while_saving_leaves_the_old_model(
        self, trained: MaskMatcher, saved: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
    ) -> None:
        before = snapshot(saved)

        def crash(*_: Any, **__: Any) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(maskmatch.saving, "save_file", crash)
            with pytest.raises((RuntimeError, MaskMatchError)):
                trained.save_pretrained(saved)
            with pytest.raises((RuntimeError, MaskMatchError)):
                trained.save_pretrained(saved.parent / "new")
        assert snapshot(saved) == before
        assert [path.name for path in saved.parent.iterdir()] == ["model"]
        assert MaskMatcher.from_pretrained(saved).predict(TEXTS) == trained.predict(TEXTS)

    def test_a_full_disk_is_told_in_a_sentence(
        self, trained: MaskMatcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from safetensors import SafetensorError

        def full(*_: Any, **__: Any) -> None:
            raise SafetensorError("I/O error: No space left on device (os error 28)")

        monkeypatch.setattr(maskmatch.saving, "save_file", full)
        assert "No space left" in refusal(trained.save_pretrained, tmp_path / "model")

    def test_a_crash_between_the_two_renames_is_mended(self, trained: MaskMatcher, saved: Path) -> None:
        for load in (MaskMatcher.from_pretrained, lambda folder: MaskMatcher.from_pretrained(str(folder))):
            saved.rename(saved.with_name(".model.previous"))
            assert load(saved).predict(TEXTS) == trained.predict(TEXTS)
            assert saved.is_dir()

    def test_a_crash_between_the_two_renames_is_mended_before_a_save(self, trained: MaskMatcher, saved: Path) -> None:
        (saved / "notes.txt").write_text("mine")
        saved.rename(saved.with_name(".model.previous"))
        trained.save_pretrained(saved)
        assert (saved / "notes.txt").read_text() == "mine"

    def test_the_users_own_files_survive_a_save(self, trained: MaskMatcher, saved: Path) -> None:
        (saved / "notes.txt").write_text("mine")
        (saved / "figures").mkdir()
        (saved / "figures" / "plot.svg").write_text("<svg/>")
        trained.save_pretrained(saved)
        assert (saved / "notes.txt").read_text() == "mine"
        assert (saved / "figures" / "plot.svg").read_text() == "<svg/>"
        assert MaskMatcher.from_pretrained(saved).predict(TEXTS) == trained.predict(TEXTS)

    def test_files_that_are_no_longer_needed_go(self, tiny: Tiny, saved: Path) -> None:
        assert (saved / "head.safetensors").exists()
        edit_json(saved / "maskmatch.json", lambda data: data["files"].append("model-00001-of-00002.safetensors"))
        (saved / "model-00001-of-00002.safetensors").write_bytes(b"an old shard")
        MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(saved)
        assert not (saved / "model-00001-of-00002.safetensors").exists()

    def test_a_foreign_folder_is_not_written_over(self, trained: MaskMatcher, tmp_path: Path) -> None:
        (tmp_path / "thesis.tex").write_text("precious")
        assert "no saved classifier" in refusal(trained.save_pretrained, tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
        assert "no saved classifier" in refusal(trained.save_pretrained, tmp_path / "thesis.tex")
        assert "thesis.tex" in refusal(trained.save_pretrained, tmp_path / "thesis.tex" / "model")
        assert (tmp_path / "thesis.tex").read_text() == "precious"

    def test_an_empty_folder_and_new_parents_are_fine(self, trained: MaskMatcher, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        trained.save_pretrained(tmp_path / "empty")
        trained.save_pretrained(str(tmp_path / "a" / "b" / "model"))
        for folder in (tmp_path / "empty", tmp_path / "a" / "b" / "model"):
            assert MaskMatcher.from_pretrained(folder).predict(TEXTS) == trained.predict(TEXTS)

    def test_the_home_folder_may_be_a_tilde(
        self, trained: MaskMatcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        trained.save_pretrained("~/model")
        assert (tmp_path / "model" / "maskmatch.json").exists()
        assert MaskMatcher.from_pretrained("~/model").labels == trained.labels

    def test_ids_that_cannot_be_saved_are_refused_before_anything_is_written(self, tiny: Tiny, tmp_path: Path) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), [frozenset({"a"}), "b"])
        assert "frozenset" in refusal(matcher.save_pretrained, tmp_path / "model")
        assert list(tmp_path.iterdir()) == []


class TestDamage:
    def test_a_newer_format(self, saved: Path) -> None:
        edit_json(saved / "maskmatch.json", lambda data: data.update(format=99, versions={"maskmatch": "9.0"}))
        message = refusal(MaskMatcher.from_pretrained, saved)
        for words in ("newer maskmatch", "9.0", "format 99", "pip install -U maskmatch"):
            assert words in message

    @pytest.mark.parametrize("name", sorted(OURS - {"README.md", "maskmatch.json"}))
    def test_a_missing_file(self, saved: Path, name: str) -> None:
        (saved / name).unlink()
        assert name in refusal(MaskMatcher.from_pretrained, saved)

    def test_the_card_may_be_missing(self, saved: Path) -> None:
        (saved / "README.md").unlink()
        assert MaskMatcher.from_pretrained(saved).labels is not None

    @pytest.mark.parametrize("name", ["model.safetensors", "labels.safetensors", "head.safetensors"])
    @pytest.mark.parametrize("keep", [0, 5, 0.5])
    def test_truncated_tensors(self, saved: Path, name: str, keep: float) -> None:
        content = (saved / name).read_bytes()
        (saved / name).write_bytes(content[: int(len(content) * keep) if keep < 1 else int(keep)])
        message = refusal(MaskMatcher.from_pretrained, saved)
        assert name in message or "encoder" in message

    @pytest.mark.parametrize("name", ["maskmatch.json", "config.json", "tokenizer.json"])
    @pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"format": 1}'])
    def test_broken_json(self, saved: Path, name: str, content: str) -> None:
        (saved / name).write_text(content)
        assert refusal(MaskMatcher.from_pretrained, saved)

    @pytest.mark.parametrize("key", ["config", "labels"])
    def test_missing_and_odd_entries(self, saved: Path, key: str) -> None:
        original = (saved / "maskmatch.json").read_text()
        for value in (None, 3, "x", [], {}, [{}], {"task": None}):
            edit_json(saved / "maskmatch.json", lambda data, value=value: data.update({key: value}))
            assert refusal(MaskMatcher.from_pretrained, saved)
            (saved / "maskmatch.json").write_text(original)
        edit_json(saved / "maskmatch.json", lambda data: data.pop(key))
        assert key in refusal(MaskMatcher.from_pretrained, saved)

    def test_tensors_of_something_else(self, saved: Path) -> None:
        for tensors in ({"other": torch.zeros(3, 1, 16)}, {"vectors": torch.zeros(3)}):
            save_file(tensors, saved / "labels.safetensors")
            assert "labels.safetensors" in refusal(MaskMatcher.from_pretrained, saved)

    @pytest.mark.parametrize("method", ["fine-tuning", "soft-prompt"])
    def test_a_matrix_that_does_not_fit_the_labels(self, tiny: Tiny, tmp_path: Path, method: str) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), method=method).fit(TEXTS, TRUTH, **SHORT)
        folder = matcher.save_pretrained(tmp_path / "model")
        for shape in ((2, 1, 16), (3, 1, 8)):
            save_file({"vectors": torch.zeros(shape)}, folder / "labels.safetensors")
            assert "labels.safetensors" in refusal(MaskMatcher.from_pretrained, folder)

    def test_a_head_that_does_not_fit(self, tiny: Tiny, tmp_path: Path) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), method="prompt-tuning").fit(TEXTS, TRUTH, **SHORT)
        folder = matcher.save_pretrained(tmp_path / "model")
        head = load_file(folder / "head.safetensors")
        save_file({**head, "transform.dense.weight": torch.zeros(4, 4)}, folder / "head.safetensors")
        assert "head.safetensors" in refusal(MaskMatcher.from_pretrained, folder)
        del head["transform.dense.weight"]
        save_file(head, folder / "head.safetensors")
        assert "head.safetensors" in refusal(MaskMatcher.from_pretrained, folder)


class TestReplacedParts:
    def test_replaced_weights_make_label_vectors_anew(self, trained: MaskMatcher, saved: Path) -> None:
        weights = load_file(saved / "model.safetensors")
        save_file({name: tensor * 1.3 for name, tensor in weights.items()}, saved / "model.safetensors")
        loaded = MaskMatcher.from_pretrained(saved)
        fresh = MaskMatcher(loaded.encoder, loaded.config, loaded.labels)
        np.testing.assert_allclose(loaded.predict_proba(TEXTS), fresh.predict_proba(TEXTS), atol=1e-6)
        assert np.abs(loaded.predict_proba(TEXTS) - trained.predict_proba(TEXTS)).max() > 1e-3

    def test_labels_edited_by_hand_are_read_anew(self, saved: Path) -> None:
        edit_json(saved / "maskmatch.json", lambda data: data["labels"][0].update(name="parcel"))
        loaded = MaskMatcher.from_pretrained(saved)
        fresh = MaskMatcher(loaded.encoder, loaded.config, loaded.labels)
        np.testing.assert_allclose(loaded.predict_proba(TEXTS), fresh.predict_proba(TEXTS), atol=1e-6)
        edit_json(saved / "maskmatch.json", lambda data: data["labels"].append({"id": "x", "name": "box"}))
        assert MaskMatcher.from_pretrained(saved).predict_proba(TEXTS).shape == (12, 4)


class TestHub:
    def test_push_makes_the_repository_and_uploads_the_folder(
        self, trained: MaskMatcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls: list[Any] = []

        class Api:
            def __init__(self, token: str | None = None) -> None:
                calls.append(("token", token))

            def create_repo(self, repo_id: str, **options: Any) -> None:
                calls.append(("create", repo_id, options))

            def upload_folder(self, *, repo_id: str, folder_path: Path, **_: Any) -> Any:
                calls.append(("upload", repo_id))
                shutil.copytree(folder_path, tmp_path / "uploaded")
                return SimpleNamespace(commit_url="https://hub.example/commit/1")

        monkeypatch.setattr(huggingface_hub, "HfApi", Api)
        assert trained.push_to_hub("me/toy", private=True, token="x") == "https://hub.example/commit/1"
        assert calls == [
            ("token", "x"),
            ("create", "me/toy", {"private": True, "exist_ok": True}),
            ("upload", "me/toy"),
        ]
        uploaded = tmp_path / "uploaded"
        assert {path.name for path in uploaded.iterdir()} == OURS
        assert MaskMatcher.from_pretrained(uploaded).predict(TEXTS) == trained.predict(TEXTS)

    def test_saved_classifiers_and_bare_encoders_load_from_the_hub(
        self, trained: MaskMatcher, saved: Path, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[tuple[str, Any]] = []

        def download(repo_id: str, *, allow_patterns: list[str], **_: Any) -> str:
            asked.append((repo_id, allow_patterns))
            return str({"me/toy": saved, "me/encoder": tiny("bert")}[repo_id])

        monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
        assert MaskMatcher.from_pretrained("me/toy").predict(TEXTS) == trained.predict(TEXTS)
        bare = MaskMatcher.from_pretrained("me/encoder", LABELS)
        assert bare.encoder.source == "me/encoder"
        assert set(bare.predict(TEXTS)) <= set(LABELS)
        assert [name for name, _ in asked] == ["me/toy", "me/encoder"]
        assert all(patterns == list(HUB_FILES) for _, patterns in asked)

    def test_neither_pickles_nor_code_are_asked_for(self) -> None:
        from fnmatch import fnmatch

        bad = (
            "pytorch_model.bin",
            "model.pt",
            "weights.pth",
            "data.pkl",
            "modeling_evil.py",
            "m.ckpt",
            "a.npz",
        )
        assert [name for name in bad if any(fnmatch(name, pattern) for pattern in HUB_FILES)] == []
        needed = OURS - {"README.md"}
        assert all(any(fnmatch(name, pattern) for pattern in HUB_FILES) for name in needed)

    def test_remote_code_is_never_trusted(self, tiny: Tiny, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[dict[str, Any]] = []
        for auto in (transformers.AutoModel, transformers.AutoTokenizer):
            original = auto.from_pretrained

            def spy(*arguments: Any, original: Any = original, **options: Any) -> Any:
                asked.append(options)
                return original(*arguments, **options)

            monkeypatch.setattr(auto, "from_pretrained", spy)
        MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        MaskMatcher.from_pretrained(saved)
        assert len(asked) == 4
        assert all(options["trust_remote_code"] is False for options in asked)

    def test_pickled_weights_are_refused(self, tiny: Tiny, tmp_path: Path) -> None:
        folder = shutil.copytree(tiny("bert"), tmp_path / "pickled")
        torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
        assert "pickled" in refusal(MaskMatcher.from_pretrained, folder, LABELS)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are another thing there")
def test_others_may_read_what_the_umask_lets_them(tiny: Tiny, tmp_path: Path) -> None:
    folder = MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "model")
    mask = os.umask(0)
    os.umask(mask)
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o666 & ~mask, path.name
