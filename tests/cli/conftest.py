"""Fixtures of the command line's tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cli_tools import Tiny, write_csv
from maskmatch import MaskMatcher
from toy_data import FAST, TEXTS, TRUTH


@pytest.fixture(scope="module")
def model(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier that knows the toy set by heart; tests do not change it."""
    matcher = MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, TRUTH, **FAST)
    return matcher.save_pretrained(tmp_path_factory.mktemp("cli") / "model")


@pytest.fixture
def own(model: Path, tmp_path: Path) -> Path:
    """A copy of the classifier to be changed."""
    return Path(shutil.copytree(model, tmp_path / "own"))


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "toy.csv", TEXTS, TRUTH)
