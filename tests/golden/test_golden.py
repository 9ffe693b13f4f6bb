"""Folders that earlier versions saved load with the same answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from golden.cases import CASES, NEW_CASES
from golden.write import ANSWERS
from maskmatch import ExportedMatcher, MaskMatcher

HERE = Path(__file__).parent
FOLDERS = sorted(path.parent for path in HERE.glob(f"*/*/{ANSWERS}"))


def load(folder: Path) -> Any:
    exported = (folder / "export.json").exists()
    return (ExportedMatcher if exported else MaskMatcher).from_pretrained(folder)


def tolerance(folder: Path, kept: dict[str, Any]) -> float:
    """Another processor rounds otherwise, also one with the same instructions; in 8 bits by a step of 1/127."""
    same = kept["processor"] == torch.backends.cpu.get_cpu_capability()
    return 1e-2 if folder.suffix == ".int8" and not same else 5e-5


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_same_answers(folder: Path) -> None:
    kept = json.loads((folder / ANSWERS).read_text(encoding="utf-8"))
    matcher = load(folder)
    found = matcher.predict_proba(kept["texts"])
    np.testing.assert_allclose(found, kept["probabilities"], rtol=0, atol=tolerance(folder, kept))
    if kept["processor"] == torch.backends.cpu.get_cpu_capability():
        assert [str(label) for label in matcher.predict(kept["texts"])] == kept["best"]


@pytest.mark.parametrize("name", CASES)
def test_same_answers_after_saving_again(name: str, tmp_path: Path) -> None:
    folder = HERE / "0.1" / name
    kept = json.loads((folder / ANSWERS).read_text(encoding="utf-8"))
    again = MaskMatcher.from_pretrained(MaskMatcher.from_pretrained(folder).save_pretrained(tmp_path / "again"))
    found = again.predict_proba(kept["texts"])
    np.testing.assert_allclose(found, kept["probabilities"], rtol=0, atol=tolerance(folder, kept))


@pytest.mark.parametrize("version", ["0.1", "format-3", *NEW_CASES])
def test_every_case_has_a_folder(version: str) -> None:
    cases = NEW_CASES.get(version, CASES)
    expected = set(cases) | {f"{name}.{kind}" for name, case in cases.items() for kind in case.exports}
    assert {folder.name for folder in FOLDERS if folder.parent.name == version} == expected


def test_no_machine_paths() -> None:
    for path in HERE.rglob("*/*/*"):
        if path.suffix in (".json", ".md"):
            text = path.read_text(encoding="utf-8")
            assert "/tmp" not in text
            assert "/work" not in text
