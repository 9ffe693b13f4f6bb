"""Alignment from beginning to end, on tiny encoders."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from alignment_tools import BANK, BRIEF, PAIRS, Tiny, equal_weights, vectors_of
from maskmatch import Alignment, AlignmentConfig, MaskMatcher, MaskMatchError, align
from maskmatch.adapter import Adapter
from maskmatch.alignment.batches import AlignmentData
from maskmatch.anchors import Anchors, anchor_loss
from maskmatch.data import LabelledTexts
from maskmatch.encoder import Encoder
from tiny_models import FAMILIES
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from pathlib import Path

SHORT = {**BRIEF, "steps": 10, "draws": 2, "texts_a_draw": 4, "names_a_draw": 3}


def refusal(*arguments: Any, **options: Any) -> str:
    with pytest.raises(MaskMatchError) as caught:
        align(*arguments, **{**BRIEF, **options})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def same_adapter(one: Adapter, other: Adapter) -> bool:
    return one.matrices.keys() == other.matrices.keys() and all(
        torch.equal(part, other.matrices[name][place])
        for name, pair in one.matrices.items()
        for place, part in enumerate(pair)
    )


class TestLearning:
    @pytest.mark.parametrize("family", ["bert", "mpnet"])
    def test_mask_states_come_near_to_the_mean_pooled_vectors(self, tiny: Tiny, family: str) -> None:
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

    def test_label_sets_teach_which_name_fits(
        self, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = shutil.copytree(tiny("bert"), tmp_path / "bert")
        config = json.loads((folder / "config.json").read_text())
        still = {**config, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        (folder / "config.json").write_text(json.dumps(still))
        monkeypatch.setattr("maskmatch.alignment.batches._prompts", lambda task: (task.prompt,))
        monkeypatch.setattr("maskmatch.alignment.batches.LABEL_PROMPTS", ("{label} is {mask}.",))
        texts, truth = TEXTS[:8], TRUTH[:8]
        sets = [LabelledTexts.of_rows("toy", "topic", texts, truth)]
        learning = {"steps": 1, "matching_steps": 80, "draws": 1, "texts_a_draw": 8, "rank": 8, "learning_rate": 1e-2}
        align([], model=folder, label_sets=sets, anchor=0.0, **learning).save(tmp_path / "aligned")
        before, after = (
            MaskMatcher.from_pretrained(model, LABELS[:2]).evaluate(texts, truth).accuracy
            for model in (folder, tmp_path / "aligned")
        )
        assert before < 0.9 <= after  # by names alone

    def test_same_seed_same_result_another_seed_another(self, tiny: Tiny) -> None:
        first, again, other = (align(TEXTS, model=tiny("bert"), **SHORT, seed=seed) for seed in (1, 1, 2))
        assert same_adapter(first.adapter, again.adapter)
        assert equal_weights(first.encoder, again.encoder)
        assert not same_adapter(first.adapter, other.adapter)

    def test_settings_come_as_a_config_or_one_by_one(self, tiny: Tiny) -> None:
        one = align(TEXTS, model=tiny("bert"), config=AlignmentConfig(**BRIEF), seed=1)
        other = align(TEXTS, model=tiny("bert"), **BRIEF, seed=1)
        assert one.config == other.config
        assert same_adapter(one.adapter, other.adapter)

    def test_the_encoder_on_disk_stays_as_it_is(self, tiny: Tiny) -> None:
        weights = (tiny("bert") / "model.safetensors").read_bytes()
        aligned = align(TEXTS, model=tiny("bert"), **BRIEF)
        assert (tiny("bert") / "model.safetensors").read_bytes() == weights
        assert not equal_weights(aligned.encoder, Encoder.load(tiny("bert"), "bert"))
        assert not aligned.encoder.model.training

    def test_a_training_that_runs_away_is_told(self, tiny: Tiny) -> None:
        assert "choose a learning rate below 1e+20" in refusal(TEXTS, model=tiny("bert"), steps=3, learning_rate=1e20)


class TestFolders:
    @pytest.mark.parametrize("family", FAMILIES)
    def test_an_aligned_encoder_comes_back_as_it_was_after_the_alignment(
        self, tiny: Tiny, tmp_path: Path, family: str
    ) -> None:
        bare = Encoder.load(tiny(family), family)
        aligned = align(TEXTS, LABELS, model=tiny(family), label_sets=[BANK, PAIRS], **BRIEF)
        assert aligned.training.steps == 2
        aligned.save(tmp_path / "aligned")
        loaded = MaskMatcher.from_pretrained(tmp_path / "aligned", LABELS)
        assert equal_weights(loaded.encoder, aligned.encoder)
        assert not equal_weights(loaded.encoder, bare)
        assert loaded.encoder.source == str(tmp_path / "aligned")
        expected = MaskMatcher(aligned.encoder, loaded.config).add_labels(LABELS).predict_proba(TEXTS)
        assert loaded.predict_proba(TEXTS).tolist() == expected.tolist()

    def test_a_folder_holds_adapter_and_card_and_they_can_be_read(self, aligned: Alignment, tmp_path: Path) -> None:
        aligned.save(str(tmp_path / "a" / "b"))
        files = {path.name: path for path in (tmp_path / "a" / "b").iterdir()}
        assert set(files) == {"README.md", "adapter_config.json", "adapter_model.safetensors"}
        assert "- texts of a toy" in files["README.md"].read_text()
        modes = {path.stat().st_mode & 0o777 for path in files.values()}
        (tmp_path / "usual").touch()
        assert modes == {(tmp_path / "usual").stat().st_mode & 0o777}

    def test_an_encoder_by_a_relative_path_is_found_from_elsewhere(
        self, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shutil.copytree(tiny("bert"), tmp_path / "mine")
        monkeypatch.chdir(tmp_path)
        align(TEXTS, model="mine", **BRIEF).save("aligned")
        monkeypatch.chdir(tmp_path.parent)
        assert MaskMatcher.from_pretrained(tmp_path / "aligned").encoder.dimension == 16

    def test_an_adapter_over_an_adapter(self, aligned: Alignment, tmp_path: Path) -> None:
        aligned.save(tmp_path / "lower")
        upper = align(TEXTS, model=tmp_path / "lower", **BRIEF, seed=1)
        upper.save(tmp_path / "upper")
        loaded = Encoder.load(tmp_path / "upper", "upper")
        assert equal_weights(loaded, upper.encoder)
        assert not equal_weights(loaded, Encoder.load(tmp_path / "lower", "lower"))

    def test_training_goes_on_from_an_aligned_encoder(self, aligned: Alignment, tmp_path: Path) -> None:
        aligned.save(tmp_path / "aligned")
        matcher = MaskMatcher.from_pretrained(tmp_path / "aligned").fit(TEXTS, ["a", "b"] * 6, epochs=1)
        matcher.save_pretrained(tmp_path / "trained")
        shutil.rmtree(tmp_path / "aligned")  # a classifier brings its encoder
        assert MaskMatcher.from_pretrained(tmp_path / "trained").predict(TEXTS) == matcher.predict(TEXTS)


@pytest.fixture(scope="module")
def aligned(tiny: Tiny) -> Alignment:
    """An alignment over the tiny BERT; tests do not change it."""
    return align(TEXTS, model=tiny("bert"), sources=["texts of a toy"], **BRIEF)


class TestTargets:
    def refused(self, aligned: Alignment, folder: Path) -> str:
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        with pytest.raises(MaskMatchError) as caught:
            aligned.save(folder)
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
        return str(caught.value)

    def test_a_folder_with_other_things_is_left_alone(self, aligned: Alignment, tmp_path: Path) -> None:
        (tmp_path / "README.md").write_text("my project")
        assert "is no adapter; choose another folder" in self.refused(aligned, tmp_path)

    def test_so_are_a_classifier_and_an_encoder(self, aligned: Alignment, tiny: Tiny, tmp_path: Path) -> None:
        folder = MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "classifier")
        assert "is no adapter" in self.refused(aligned, folder)
        assert "is no adapter" in self.refused(aligned, tiny("bert"))

    def test_an_earlier_adapter_is_replaced_and_what_lies_beside_it_stays(
        self, aligned: Alignment, tiny: Tiny, tmp_path: Path
    ) -> None:
        folder = tmp_path / "aligned"
        folder.mkdir()  # an empty one will do as well
        aligned.save(folder)
        (folder / "notes.txt").write_text("mine")
        other = align(TEXTS, model=tiny("bert"), **BRIEF, seed=5)
        other.save(folder)
        assert (folder / "notes.txt").read_text() == "mine"
        assert same_adapter(Adapter.load(folder), other.adapter)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["aligned"]

    def test_an_adapter_does_not_replace_what_it_rests_on(self, aligned: Alignment, tmp_path: Path) -> None:
        aligned.save(tmp_path / "one")
        second = align(TEXTS, model=tmp_path / "one", **BRIEF)
        assert "itself rests on" in self.refused(second, tmp_path / "one")
        second.save(tmp_path / "two")
        assert "itself rests on" in self.refused(align(TEXTS, model=tmp_path / "two", **BRIEF), tmp_path / "one")

    def test_a_disk_that_is_full(self, aligned: Alignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(*_: Any, **__: Any) -> None:
            raise SafetensorError("No space left on device")

        monkeypatch.setattr("maskmatch.adapter.save_file", full)
        with pytest.raises(MaskMatchError, match="could not be written: No space left on device"):
            aligned.save(tmp_path / "aligned")
        assert list(tmp_path.iterdir()) == []


class Killed(BaseException):
    """As if the process had been killed."""


class TestResuming:
    def interrupted(self, monkeypatch: pytest.MonkeyPatch, at: int, *arguments: Any, **options: Any) -> None:
        """Runs an alignment that comes to an end at a draw."""
        batch = AlignmentData.batch

        def until(self: AlignmentData, rows: list[int]) -> dict[str, Any]:
            if rows[0] >= at:
                raise Killed
            return batch(self, rows)

        with monkeypatch.context() as patch:
            patch.setattr(AlignmentData, "batch", until)
            with pytest.raises(Killed):
                align(*arguments, **options)

    def test_it_ends_where_a_run_without_a_break_does(
        self, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        options = {**SHORT, "model": tiny("bert"), "label_sets": [BANK, PAIRS], "matching_steps": 5}
        through = align(TEXTS, **options)
        folder = tmp_path / "checkpoints"
        for at in (9, 25):  # in the first part, and in the second
            shutil.rmtree(folder, ignore_errors=True)
            self.interrupted(monkeypatch, at, TEXTS, **options, checkpoints=folder)
            assert list(folder.glob("checkpoint-*"))
            resumed = align(TEXTS, **options, checkpoints=folder, resume=True)
            assert same_adapter(resumed.adapter, through.adapter)
            assert resumed.adapter.base_digest == through.adapter.base_digest
            assert equal_weights(resumed.encoder, through.encoder)

    def test_draws_that_were_learned_from_are_not_learned_from_again(
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

        monkeypatch.setattr("maskmatch.model.anchor_loss", counted)
        assert align(TEXTS, **options, resume=True).training.steps == 10
        assert len(losses) == (10 - last) * 2

    def test_checkpoints_of_another_run_are_refused(
        self, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        options = {**SHORT, "model": tiny("bert"), "checkpoints": tmp_path / "c"}
        self.interrupted(monkeypatch, 12, TEXTS, **options)
        assert "holds the checkpoints of an earlier run" in refusal(TEXTS, **options)
        resumed = {**options, "resume": True}
        assert "are of another run" in refusal(TEXTS[1:], **resumed)
        assert "are of another run" in refusal(TEXTS, **resumed, seed=3)
        other = shutil.copytree(tiny("bert"), tmp_path / "other")  # as large, but another
        tensors = load_file(other / "model.safetensors")
        weights = {name: tensor + 0.01 for name, tensor in tensors.items()}
        save_file(weights, other / "model.safetensors", metadata={"format": "pt"})
        assert "are of another run" in refusal(TEXTS, **{**resumed, "model": other})
        assert "no whole checkpoint" in refusal(TEXTS, **{**resumed, "checkpoints": tmp_path / "nowhere"})


class TestRefusals:
    @pytest.mark.parametrize("texts", [["one"], ["one", "one"], ["", "  "], ["one", "\n"], []])
    def test_fewer_than_two_texts(self, tiny: Tiny, texts: list[str]) -> None:
        assert refusal(texts, model=tiny("bert")) == "There are fewer than two different texts to learn from."

    def test_what_is_no_list_of_texts(self, tiny: Tiny) -> None:
        assert "Texts come as a list" in refusal("one text", model=tiny("bert"))
        assert "Texts come as a list" in refusal(None, model=tiny("bert"))
        assert "Text 1 is of type int" in refusal(["one", 2], model=tiny("bert"))
        assert "Text 1 is of type NoneType" in refusal(["one", None, "three"], model=tiny("bert"))
        assert "half of a character" in refusal(["one", "tw\ud800"], model=tiny("bert"))

    def test_labels(self, tiny: Tiny) -> None:
        assert "no labels" in refusal(TEXTS, [], model=tiny("bert"))
        assert "blank" in refusal(TEXTS, ["refund", " "], model=tiny("bert"))

    def test_a_classifier_is_no_encoder(self, tiny: Tiny, tmp_path: Path) -> None:
        folder = MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "classifier")
        assert refusal(TEXTS, model=folder) == (
            f"{folder} is a trained classifier; align an encoder, and train it afterwards."
        )

    def test_a_model_that_is_not_there(self, tmp_path: Path) -> None:
        assert refusal(TEXTS, model=tmp_path / "nowhere") == f"There is no folder {tmp_path / 'nowhere'}."

    def test_an_unknown_task(self, tiny: Tiny) -> None:
        sets = [LabelledTexts("weather", "forecast", BANK.names, BANK.texts)]
        message = refusal(TEXTS, label_sets=sets, model=tiny("bert"))
        assert message.startswith("The label set weather cannot be used: There is no task 'forecast'; choose one of ")

    def test_texts_without_the_fields_of_their_task(self, tiny: Tiny) -> None:
        strings = LabelledTexts("strings", "nli", BANK.names, BANK.texts)
        assert "strings cannot be used: Text 0: its field 'text_b' is missing" in refusal(
            TEXTS, label_sets=[strings], model=tiny("bert")
        )
        odd = LabelledTexts("odd", "paraphrase", (("a",), ("b",)), (PAIRS.texts[0], ({"text": 3, "text_b": "x"},)))
        assert "odd cannot be used: Text 2: its field 'text' is of type int" in refusal(
            TEXTS, label_sets=[odd], model=tiny("bert")
        )

    def test_settings(self, tiny: Tiny) -> None:
        assert "steps is 0" in refusal(TEXTS, model=tiny("bert"), steps=0)
        assert "align takes no epochs" in refusal(TEXTS, model=tiny("bert"), epochs=3)
        assert "checkpoints" in refusal(TEXTS, model=tiny("bert"), resume=True)

    def test_an_adapter_that_is_damaged(self, aligned: Alignment, tmp_path: Path) -> None:
        aligned.save(tmp_path / "aligned")
        file = tmp_path / "aligned" / "adapter_config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "r": 3}))
        assert "is damaged" in refusal(TEXTS, model=tmp_path / "aligned")
