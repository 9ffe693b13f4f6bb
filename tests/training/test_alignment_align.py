"""Whole alignments of tiny encoders: training, saving, loading, resuming, errors."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from alignment_tools import BANK, BRIEF, PAIRS, Tiny, equal_weights, vectors_of
from maskmatch import Alignment, AlignmentConfig, MaskMatcher, MaskMatchError, align
from maskmatch.data import LabelledTexts
from maskmatch.model.adapter import Adapter
from maskmatch.model.anchors import Anchors, anchor_loss
from maskmatch.model.encoder import Encoder
from maskmatch.testing.tiny_encoders import FAMILIES
from maskmatch.training.alignment.batches import AlignmentData
from matcher_tools import new_matcher
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from pathlib import Path

SHORT = {**BRIEF, "steps": 10, "draws": 2, "texts_a_draw": 4, "names_a_draw": 3}


def error_of(*arguments: Any, **options: Any) -> str:
    with pytest.raises(MaskMatchError) as caught:
        align(*arguments, **{**BRIEF, **options})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def same_adapter(one: Adapter, other: Adapter) -> bool:
    return one.matrices.keys() == other.matrices.keys() and all(
        torch.equal(part, other.matrices[name][side])
        for name, pair in one.matrices.items()
        for side, part in enumerate(pair)
    )


class TestLearning:
    @pytest.mark.parametrize("family", ["bert", "mpnet"])
    def test_mask_states_approach_the_mean_pooled_vectors(self, tiny: Tiny, family: str) -> None:
        bare = Encoder.load(tiny(family), family)
        aligned = align(
            TEXTS, model=tiny(family), steps=30, draws=1, texts_a_draw=8, names_a_draw=4, rank=4, learning_rate=1e-2
        )
        assert aligned.training.steps == 30
        targets = vectors_of(bare, TEXTS, "semantic-matching", "{text}")
        for template in ("{text} It is about {mask}.", "{mask}: {text}"):
            before = (vectors_of(bare, TEXTS, "mask-matching", template) * targets).sum(dim=1).mean()
            after = (vectors_of(aligned.encoder, TEXTS, "mask-matching", template) * targets).sum(dim=1).mean()
            assert after > before + 0.1

    def test_label_sets_improve_zero_shot_accuracy(
        self, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = shutil.copytree(tiny("bert"), tmp_path / "bert")
        config = json.loads((folder / "config.json").read_text())
        without_dropout = {**config, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        (folder / "config.json").write_text(json.dumps(without_dropout))
        monkeypatch.setattr("maskmatch.training.alignment.batches.input_prompts", lambda task: (task.prompt,))
        monkeypatch.setattr("maskmatch.training.alignment.batches.LABEL_PROMPTS", ("{label} is {mask}.",))
        texts, truth = TEXTS[:8], TRUTH[:8]
        sets = [LabelledTexts.of_rows("toy", "topic", texts, truth)]
        learning = {"steps": 1, "matching_steps": 80, "draws": 1, "texts_a_draw": 8, "rank": 8, "learning_rate": 1e-2}
        align([], model=folder, label_sets=sets, anchor=0.0, **learning).save(tmp_path / "aligned")
        before, after = (
            MaskMatcher.from_pretrained(model, LABELS[:2]).evaluate(texts, truth).accuracy
            for model in (folder, tmp_path / "aligned")
        )
        assert before < 0.9 <= after  # zero-shot

    def test_the_result_depends_on_the_seed_only(self, tiny: Tiny) -> None:
        first, again, other = (align(TEXTS, model=tiny("bert"), **SHORT, seed=seed) for seed in (1, 1, 2))
        assert same_adapter(first.adapter, again.adapter)
        assert equal_weights(first.encoder, again.encoder)
        assert not same_adapter(first.adapter, other.adapter)

    def test_settings_as_config_or_as_keywords(self, tiny: Tiny) -> None:
        one = align(TEXTS, model=tiny("bert"), config=AlignmentConfig(**BRIEF), seed=1)
        other = align(TEXTS, model=tiny("bert"), **BRIEF, seed=1)
        assert one.config == other.config
        assert same_adapter(one.adapter, other.adapter)

    def test_the_encoder_on_disk_does_not_change(self, tiny: Tiny) -> None:
        weights = (tiny("bert") / "model.safetensors").read_bytes()
        aligned = align(TEXTS, model=tiny("bert"), **BRIEF)
        assert (tiny("bert") / "model.safetensors").read_bytes() == weights
        assert not equal_weights(aligned.encoder, Encoder.load(tiny("bert"), "bert"))
        assert not aligned.encoder.model.training

    def test_divergence_raises(self, tiny: Tiny) -> None:
        assert "choose a learning rate below 1e+20" in error_of(TEXTS, model=tiny("bert"), steps=3, learning_rate=1e20)


class TestFolders:
    @pytest.mark.parametrize("family", FAMILIES)
    def test_a_loaded_adapter_gives_the_aligned_encoder(self, tiny: Tiny, tmp_path: Path, family: str) -> None:
        bare = Encoder.load(tiny(family), family)
        aligned = align(TEXTS, LABELS, model=tiny(family), label_sets=[BANK, PAIRS], **BRIEF)
        assert aligned.training.steps == 2
        aligned.save(tmp_path / "aligned")
        loaded = MaskMatcher.from_pretrained(tmp_path / "aligned", LABELS)
        assert equal_weights(loaded.encoder, aligned.encoder)
        assert not equal_weights(loaded.encoder, bare)
        assert loaded.encoder.source == str(tmp_path / "aligned")
        expected = new_matcher(aligned.encoder, loaded.config).add_labels(LABELS).predict_proba(TEXTS)
        assert loaded.predict_proba(TEXTS).tolist() == expected.tolist()

    def test_the_files_of_a_saved_adapter(self, aligned: Alignment, tmp_path: Path) -> None:
        aligned.save(str(tmp_path / "a" / "b"))
        files = {path.name: path for path in (tmp_path / "a" / "b").iterdir()}
        assert set(files) == {"README.md", "adapter_config.json", "adapter_model.safetensors"}
        assert "- texts of a toy" in files["README.md"].read_text()
        modes = {path.stat().st_mode & 0o777 for path in files.values()}
        (tmp_path / "usual").touch()
        assert modes == {(tmp_path / "usual").stat().st_mode & 0o777}

    def test_an_encoder_by_a_relative_path_loads_from_another_folder(
        self, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shutil.copytree(tiny("bert"), tmp_path / "mine")
        monkeypatch.chdir(tmp_path)
        align(TEXTS, model="mine", **BRIEF).save("aligned")
        monkeypatch.chdir(tmp_path.parent)
        assert MaskMatcher.from_pretrained(tmp_path / "aligned").encoder.dimension == 16

    def test_a_saved_adapter_holds_no_path_of_this_machine(self, tiny: Tiny, tmp_path: Path) -> None:
        encoder = shutil.copytree(tiny("bert"), tmp_path / "home" / "encoders" / "mine")
        folder = tmp_path / "home" / "adapters" / "aligned"
        aligned = align(TEXTS, model=encoder, **BRIEF)
        aligned.save(folder)
        for file in folder.iterdir():
            assert str(tmp_path).encode() not in file.read_bytes(), file.name
        assert json.loads((folder / "adapter_config.json").read_text())["base_model_name_or_path"] == (
            "../../encoders/mine"
        )
        card = (folder / "README.md").read_text()
        assert f"`mine` (digest of its matrices: `{aligned.adapter.base_digest[:16]}`)" in card
        assert "base_model" not in card
        shutil.move(tmp_path / "home", tmp_path / "moved")
        loaded = MaskMatcher.from_pretrained(tmp_path / "moved" / "adapters" / "aligned")
        assert equal_weights(loaded.encoder, aligned.encoder)

    def test_a_far_encoder_is_found_beside_the_adapter_or_by_the_environment(
        self, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        encoder = shutil.copytree(tiny("bert"), tmp_path / "encoders" / "mine")
        aligned = align(TEXTS, model=encoder, **BRIEF)
        folder = tmp_path / "adapters" / "aligned"
        # The two folders have a parent in common here, so treat it as the root of the file system.
        monkeypatch.setattr("maskmatch.model.adapter.os.path.commonpath", lambda _: "/")
        aligned.save(folder)
        assert json.loads((folder / "adapter_config.json").read_text())["base_model_name_or_path"] == "../mine"
        beside = tmp_path / "adapters" / "mine"
        assert f"link the encoder to {beside}, or set MASKMATCH_ENCODERS={encoder.parent}" in caplog.text
        with pytest.raises(MaskMatchError, match=f"There is no folder {beside}; put the encoder mine .* there"):
            MaskMatcher.from_pretrained(folder)
        monkeypatch.setenv("MASKMATCH_ENCODERS", f"{tmp_path / 'nowhere'}:{encoder.parent}")
        assert equal_weights(MaskMatcher.from_pretrained(folder).encoder, aligned.encoder)
        monkeypatch.delenv("MASKMATCH_ENCODERS")
        beside.symlink_to(encoder)
        assert equal_weights(MaskMatcher.from_pretrained(folder).encoder, aligned.encoder)

    def test_an_adapter_over_an_adapter(self, aligned: Alignment, tmp_path: Path) -> None:
        aligned.save(tmp_path / "lower")
        upper = align(TEXTS, model=tmp_path / "lower", **BRIEF, seed=1)
        upper.save(tmp_path / "upper")
        loaded = Encoder.load(tmp_path / "upper", "upper")
        assert equal_weights(loaded, upper.encoder)
        assert not equal_weights(loaded, Encoder.load(tmp_path / "lower", "lower"))

    def test_training_starts_from_an_aligned_encoder(self, aligned: Alignment, tmp_path: Path) -> None:
        aligned.save(tmp_path / "aligned")
        matcher = MaskMatcher.from_pretrained(tmp_path / "aligned").fit(TEXTS, ["a", "b"] * 6, epochs=1)
        matcher.save_pretrained(tmp_path / "trained")
        shutil.rmtree(tmp_path / "aligned")  # a saved classifier contains its encoder
        assert MaskMatcher.from_pretrained(tmp_path / "trained").predict(TEXTS) == matcher.predict(TEXTS)


@pytest.fixture(scope="module")
def aligned(tiny: Tiny) -> Alignment:
    """An alignment of the tiny BERT; tests must not change it."""
    return align(TEXTS, model=tiny("bert"), sources=["texts of a toy"], **BRIEF)


class TestOutputFolders:
    def save_error(self, aligned: Alignment, folder: Path) -> str:
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        with pytest.raises(MaskMatchError) as caught:
            aligned.save(folder)
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
        return str(caught.value)

    def test_a_folder_with_other_files_is_not_overwritten(self, aligned: Alignment, tmp_path: Path) -> None:
        (tmp_path / "README.md").write_text("my project")
        assert "is not an adapter; choose another folder" in self.save_error(aligned, tmp_path)

    def test_a_classifier_and_an_encoder_are_not_overwritten(
        self, aligned: Alignment, tiny: Tiny, tmp_path: Path
    ) -> None:
        folder = MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "classifier")
        assert "is not an adapter" in self.save_error(aligned, folder)
        assert "is not an adapter" in self.save_error(aligned, tiny("bert"))

    def test_an_earlier_adapter_is_replaced_and_other_files_stay(
        self, aligned: Alignment, tiny: Tiny, tmp_path: Path
    ) -> None:
        folder = tmp_path / "aligned"
        folder.mkdir()  # an empty folder is accepted
        aligned.save(folder)
        (folder / "notes.txt").write_text("mine")
        other = align(TEXTS, model=tiny("bert"), **BRIEF, seed=5)
        other.save(folder)
        assert (folder / "notes.txt").read_text() == "mine"
        assert same_adapter(Adapter.load(folder), other.adapter)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["aligned"]

    def test_an_adapter_does_not_replace_its_own_base(self, aligned: Alignment, tmp_path: Path) -> None:
        aligned.save(tmp_path / "one")
        second = align(TEXTS, model=tmp_path / "one", **BRIEF)
        assert "is part of the encoder to align" in self.save_error(second, tmp_path / "one")
        second.save(tmp_path / "two")
        assert "is part of the encoder to align" in self.save_error(
            align(TEXTS, model=tmp_path / "two", **BRIEF), tmp_path / "one"
        )

    def test_a_full_disk_leaves_no_files(
        self, aligned: Alignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: Any, **__: Any) -> None:
            raise SafetensorError("No space left on device")

        monkeypatch.setattr("maskmatch.model.adapter.save_file", full)
        with pytest.raises(MaskMatchError, match="could not be written: No space left on device"):
            aligned.save(tmp_path / "aligned")
        assert list(tmp_path.iterdir()) == []


class Killed(BaseException):
    """Simulates a killed process."""


class TestResuming:
    def interrupted(self, monkeypatch: pytest.MonkeyPatch, at: int, *arguments: Any, **options: Any) -> None:
        """Run an alignment that is killed at a draw."""
        batch = AlignmentData.batch

        def until(self: AlignmentData, rows: list[int]) -> dict[str, Any]:
            if rows[0] >= at:
                raise Killed
            return batch(self, rows)

        with monkeypatch.context() as patch:
            patch.setattr(AlignmentData, "batch", until)
            with pytest.raises(Killed):
                align(*arguments, **options)

    def test_a_resumed_run_equals_an_uninterrupted_one(
        self, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        options = {**SHORT, "model": tiny("bert"), "label_sets": [BANK, PAIRS], "matching_steps": 5}
        through = align(TEXTS, **options)
        folder = tmp_path / "checkpoints"
        for at in (9, 25):  # during distillation, and during matching
            shutil.rmtree(folder, ignore_errors=True)
            self.interrupted(monkeypatch, at, TEXTS, **options, checkpoints=folder)
            assert list(folder.glob("checkpoint-*"))
            resumed = align(TEXTS, **options, checkpoints=folder, resume=True)
            assert same_adapter(resumed.adapter, through.adapter)
            assert resumed.adapter.base_digest == through.adapter.base_digest
            assert equal_weights(resumed.encoder, through.encoder)

    def test_a_resumed_run_skips_finished_draws(
        self, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        options = {**SHORT, "model": tiny("bert"), "checkpoints": tmp_path}
        self.interrupted(monkeypatch, 12, TEXTS, **options)
        last = max(int(path.name.rpartition("-")[2]) for path in tmp_path.glob("checkpoint-*"))
        assert last >= 5
        losses: list[torch.Tensor] = []

        def counted(vectors: torch.Tensor, anchors: Anchors) -> torch.Tensor:
            losses.append(anchor_loss(vectors, anchors))
            return losses[-1]

        monkeypatch.setattr("maskmatch.model.matching.anchor_loss", counted)
        assert align(TEXTS, **options, resume=True).training.steps == 10
        assert len(losses) == (10 - last) * 2

    def test_checkpoints_of_another_run_raise(
        self, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        options = {**SHORT, "model": tiny("bert"), "checkpoints": tmp_path / "c"}
        self.interrupted(monkeypatch, 12, TEXTS, **options)
        assert "holds the checkpoints of an earlier run" in error_of(TEXTS, **options)
        resumed = {**options, "resume": True}
        assert "belong to another run" in error_of(TEXTS[1:], **resumed)
        assert "belong to another run" in error_of(TEXTS, **resumed, seed=3)
        other = shutil.copytree(tiny("bert"), tmp_path / "other")  # of the same size, with other weights
        tensors = load_file(other / "model.safetensors")
        weights = {name: tensor + 0.01 for name, tensor in tensors.items()}
        save_file(weights, other / "model.safetensors", metadata={"format": "pt"})
        assert "belong to another run" in error_of(TEXTS, **{**resumed, "model": other})
        assert "There is no checkpoint in" in error_of(TEXTS, **{**resumed, "checkpoints": tmp_path / "nowhere"})


class TestErrors:
    @pytest.mark.parametrize("texts", [["one"], ["one", "one"], ["", "  "], ["one", "\n"], []])
    def test_fewer_than_two_texts(self, tiny: Tiny, texts: list[str]) -> None:
        assert error_of(texts, model=tiny("bert")) == "There are fewer than two different texts to learn from."

    def test_texts_that_are_not_a_list_of_strings(self, tiny: Tiny) -> None:
        assert "Texts come as a list" in error_of("one text", model=tiny("bert"))
        assert "Texts come as a list" in error_of(None, model=tiny("bert"))
        assert "Text 1 is of type int" in error_of(["one", 2], model=tiny("bert"))
        assert "Text 1 is of type NoneType" in error_of(["one", None, "three"], model=tiny("bert"))
        assert "half of a character" in error_of(["one", "tw\ud800"], model=tiny("bert"))

    def test_labels(self, tiny: Tiny) -> None:
        assert "no labels" in error_of(TEXTS, [], model=tiny("bert"))
        assert "blank" in error_of(TEXTS, ["refund", " "], model=tiny("bert"))

    def test_a_trained_classifier_cannot_be_aligned(self, tiny: Tiny, tmp_path: Path) -> None:
        folder = MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "classifier")
        assert error_of(TEXTS, model=folder) == (
            f"{folder} is a trained classifier; align an encoder, and train it afterwards."
        )

    def test_a_missing_model(self, tmp_path: Path) -> None:
        assert error_of(TEXTS, model=tmp_path / "nowhere") == f"There is no folder {tmp_path / 'nowhere'}."

    def test_an_unknown_task(self, tiny: Tiny) -> None:
        sets = [LabelledTexts("weather", "forecast", BANK.names, BANK.texts)]
        message = error_of(TEXTS, label_sets=sets, model=tiny("bert"))
        assert message.startswith("The label set weather cannot be used: There is no task 'forecast'; choose one of ")

    def test_texts_without_the_fields_of_their_task(self, tiny: Tiny) -> None:
        strings = LabelledTexts("strings", "nli", BANK.names, BANK.texts)
        assert "strings cannot be used: Text 0: its field 'text_b' is missing" in error_of(
            TEXTS, label_sets=[strings], model=tiny("bert")
        )
        odd = LabelledTexts("odd", "paraphrase", (("a",), ("b",)), (PAIRS.texts[0], ({"text": 3, "text_b": "x"},)))
        assert "odd cannot be used: Text 2: its field 'text' is of type int" in error_of(
            TEXTS, label_sets=[odd], model=tiny("bert")
        )

    def test_settings(self, tiny: Tiny) -> None:
        assert "steps is 0" in error_of(TEXTS, model=tiny("bert"), steps=0)
        assert "no setting 'epochs'" in error_of(TEXTS, model=tiny("bert"), epochs=3)
        assert "checkpoints" in error_of(TEXTS, model=tiny("bert"), resume=True)

    def test_a_rank_that_is_too_large_raises_before_the_work(self, tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys.modules["maskmatch.training.alignment.align"], "train", None)
        message = f"rank is 17, but the smallest matrix of {tiny('bert')} allows a rank of at most 16."
        assert error_of(TEXTS, model=tiny("bert"), rank=17) == message

    def test_a_damaged_adapter(self, aligned: Alignment, tmp_path: Path) -> None:
        aligned.save(tmp_path / "aligned")
        file = tmp_path / "aligned" / "adapter_config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "r": 3}))
        assert "is damaged" in error_of(TEXTS, model=tmp_path / "aligned")
