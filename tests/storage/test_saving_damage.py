"""Damage to a saved classifier is told in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from safetensors.torch import load_file, save_file

from maskmatch import MaskMatcher
from refusals import refusal
from saving_tools import OURS, SHORT, Tiny, edit_json
from toy_data import TEXTS, TRUTH

if TYPE_CHECKING:
    from pathlib import Path


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
