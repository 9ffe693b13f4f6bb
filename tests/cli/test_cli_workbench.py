"""``maskmatch workbench``: what cannot work is one sentence, and nothing is made for it."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from maskmatch.cli import workbench

if TYPE_CHECKING:
    from pathlib import Path

    from cli_tools import Run


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.csv"
    path.write_text("text\nwhere is my refund\n")
    return path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["TEXTS"], "The project has no labels yet; give some with --labels."),
        (["TEXTS", "--labels", "refund"], "'refund' is the only label; give at least two with --labels."),
        (["--labels", "refund, card lost"], "The project has no texts yet; give a file of texts."),
        (["no.csv", "--labels", "refund, card lost"], "There is no file 'no.csv'; check the file name and the folder."),
    ],
)
def test_mistakes(run: Run, tmp_path: Path, texts: Path, arguments: list[str], message: str) -> None:
    given = [str(texts) if each == "TEXTS" else each for each in arguments]
    found = run("workbench", *given, "--project", tmp_path / "project", "--no-browser", "--port", "0")
    assert found.code == 1
    assert message in found.err
    assert not (tmp_path / "project").exists()


def test_a_taken_port(run: Run, tmp_path: Path, texts: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        found = run("workbench", texts, "--labels", "a, b", "--project", tmp_path / "project", "--port", port)
    assert found.code == 1
    assert f"Port {port} is taken" in found.err
    assert not (tmp_path / "project").exists()


def test_other_machines_need_tokens(run: Run, tmp_path: Path, texts: Path) -> None:
    found = run("workbench", texts, "--labels", "a, b", "--project", tmp_path / "project", "--host", "0.0.0.0")
    assert found.code == 1
    assert "Other machines reach 0.0.0.0; say with --token-file who may open the page." in found.err
    assert not (tmp_path / "project").exists()


def test_without_its_packages(run: Run, tmp_path: Path, texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbench, "find_spec", lambda name: None if name == "nicegui" else object())
    found = run("workbench", texts, "--labels", "a, b", "--project", tmp_path / "project")
    assert found.code == 1
    assert 'The workbench needs nicegui, which is not installed; install it with pip install "maskmatch[' in found.err
