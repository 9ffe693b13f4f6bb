"""Fixtures of the command line's tests."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from cli_tools import Result, Run, Stdin, Tiny, write_csv
from maskmatch import MaskMatcher
from maskmatch.cli import main
from toy_data import FAST, TEXTS, TRUTH


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line in this process; without ``stdin``, standard input is a terminal."""

    def call(*arguments: object, stdin: str | None = None) -> Result:
        monkeypatch.setattr(sys, "argv", ["maskmatch", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", Stdin(stdin))
        capfd.readouterr()
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capfd.readouterr()
        code = caught.value.code
        return Result(code if isinstance(code, int) else int(code is not None), captured.out, captured.err)

    return call


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
