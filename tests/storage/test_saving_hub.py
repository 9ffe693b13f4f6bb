"""Saved classifiers to and from the hub."""

from __future__ import annotations

import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import huggingface_hub
import torch
import transformers
from safetensors.torch import load_file

from maskmatch import MaskMatcher
from maskmatch.model.encoder import HUB_FILES
from refusals import refusal
from saving_tools import OURS, Tiny
from toy_data import LABELS, TEXTS

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


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
