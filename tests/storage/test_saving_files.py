"""The files of a saved classifier: written whole or not at all, free of pickles, with a card."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
import torch
import transformers

import maskmatch.storage.folder
from maskmatch import MaskMatcher, MaskMatchError, SimilarityConfig
from refusals import refusal
from saving_tools import OURS, SHORT, Tiny, edit_json, snapshot
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class TestFiles:
    @pytest.mark.parametrize("method", ["mask-matching", "fine-tuning", "prompt-tuning"])
    def test_nothing_but_safetensors_json_and_the_card(self, tiny: Tiny, tmp_path: Path, method: str) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), method=method).fit(TEXTS, TRUTH, **SHORT)
        folder = matcher.save_pretrained(tmp_path / "model")
        names = {path.name for path in folder.rglob("*")}
        assert names <= OURS
        assert {"maskmatch.json", "labels.safetensors", "model.safetensors", "config.json"} <= names
        for path in folder.iterdir():  # pickles and the zips that torch puts them in begin so
            content = path.read_bytes()
            is_safetensors = path.suffix == ".safetensors" and content[8:9] == b"{"  # after the length of its header
            assert is_safetensors or not content.startswith((b"\x80", b"PK")), path.name

    def test_the_encoder_is_in_plain_layout(self, saved: Path) -> None:
        model = transformers.AutoModel.from_pretrained(saved, add_pooling_layer=False)
        tokenizer = transformers.AutoTokenizer.from_pretrained(saved)
        with torch.no_grad():
            assert model(**tokenizer("refund", return_tensors="pt")).last_hidden_state.shape[2] == 16

    def test_versions_and_format_are_written_down(self, saved: Path) -> None:
        data = json.loads((saved / "maskmatch.json").read_text())
        assert data["format"] == 6
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

    def test_it_names_what_was_measured_and_when(self, tiny: Tiny, tmp_path: Path) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        report = matcher.evaluate(TEXTS, TRUTH, data="toy|set, test")
        card = (matcher.save_pretrained(tmp_path / "m") / "README.md").read_text(encoding="utf-8")
        assert f"On `toy\\|set, test`, {report.date}." in card
        matcher.evaluate(TEXTS, TRUTH)
        card = (matcher.save_pretrained(tmp_path / "m") / "README.md").read_text(encoding="utf-8")
        assert "On unnamed data, " in card

    def test_it_tells_the_temperature_that_was_learned(self, tiny: Tiny, tmp_path: Path) -> None:
        similarity = SimilarityConfig(learn_temperature=True)
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, similarity=similarity).fit(TEXTS, TRUTH, **SHORT)
        card = (matcher.save_pretrained(tmp_path / "m") / "README.md").read_text(encoding="utf-8")
        temperature = matcher.model.similarity.temperature
        assert temperature != pytest.approx(0.05, rel=1e-3)
        assert f"temperature {float(f'{temperature:.4g}')} (learned)" in card

    def test_it_tells_the_temperature_that_was_set(self, tiny: Tiny, tmp_path: Path) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, similarity=SimilarityConfig(temperature=0.1))
        assert "temperature 0.1\n" in (matcher.save_pretrained(tmp_path / "m") / "README.md").read_text(
            encoding="utf-8"
        )

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
            patch.setattr(maskmatch.storage.folder, "save_file", crash)
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

        monkeypatch.setattr(maskmatch.storage.folder, "save_file", full)
        assert "No space left" in refusal(trained.save_pretrained, tmp_path / "model")

    def test_a_crash_between_the_two_renames_is_mended(self, trained: MaskMatcher, saved: Path) -> None:
        for load in (MaskMatcher.from_pretrained, lambda folder: MaskMatcher.from_pretrained(str(folder))):
            saved.rename(saved.with_name(".model.previous"))
            saved.with_name(".model.x.elsewhere-1.writing").mkdir(exist_ok=True)
            assert load(saved).predict(TEXTS) == trained.predict(TEXTS)
            assert saved.is_dir()

    def test_a_crash_between_the_two_renames_is_mended_before_a_save(self, trained: MaskMatcher, saved: Path) -> None:
        (saved / "notes.txt").write_text("mine")
        saved.rename(saved.with_name(".model.previous"))
        saved.with_name(".model.x.elsewhere-1.writing").mkdir()
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
        assert "not a saved classifier" in refusal(trained.save_pretrained, tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
        assert "not a saved classifier" in refusal(trained.save_pretrained, tmp_path / "thesis.tex")
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


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are another thing there")
def test_others_may_read_what_the_umask_lets_them(tiny: Tiny, tmp_path: Path) -> None:
    folder = MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "model")
    mask = os.umask(0)
    os.umask(mask)
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o666 & ~mask, path.name


def test_a_classifier_with_other_labels_is_replaced_only_on_request(tiny: Tiny, tmp_path: Path) -> None:
    first = MaskMatcher.from_pretrained(tiny("bert"), ["refund", "card lost"])
    first.save_pretrained(tmp_path / "m")
    other = MaskMatcher.from_pretrained(tiny("bert"), ["refund", "parcel"])
    assert "only the old one has 'card lost'" in refusal(other.save_pretrained, tmp_path / "m")
    assert list(MaskMatcher.from_pretrained(tmp_path / "m").labels or []) == ["refund", "card lost"]
    first.add_labels(["voucher"]).save_pretrained(tmp_path / "m")  # its own folder
    MaskMatcher.from_pretrained(tmp_path / "m").remove_labels(["voucher"]).save_pretrained(tmp_path / "m")
    other.save_pretrained(tmp_path / "m", overwrite=True)
    assert list(MaskMatcher.from_pretrained(tmp_path / "m").labels or []) == ["refund", "parcel"]


def test_label_names_are_text_in_the_card(tiny: Tiny, tmp_path: Path) -> None:
    names = ["<script>alert(1)</script>", "![x](http://example.com/pixel.png)", "a|b"]
    card = (MaskMatcher.from_pretrained(tiny("bert"), names).save_pretrained(tmp_path / "m") / "README.md").read_text()
    reads = card[card.index("| label |") :]
    assert "| <script>" not in reads
    assert "| ![x](" not in reads
    assert "a\\|b" in reads
