"""Every snippet and command of the README and the guide runs as printed (on a tiny encoder, to be quick)."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from maskmatch.cli import app

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/guide.md", "docs/labels.md", "docs/alignment.md")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.fixture
def small_world(tiny_default: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The default is a tiny encoder, training is short, and files go to a folder of the test's own."""
    monkeypatch.setattr("maskmatch.training_config.FEW_STEPS", 4)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("small_world")
def test_python_snippets_run_one_after_the_other(page: str) -> None:
    names: dict[str, Any] = {}
    snippets = blocks(page, "python")
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, page, "exec"), names)
    assert names["matcher"].labels is not None


@pytest.mark.usefixtures("small_world")
def test_commands_run_one_after_the_other(tmp_path: Path) -> None:
    commands = [line for block in blocks("README.md", "bash") for line in block.splitlines() if line.strip()]
    ran = [line for line in commands if _run(line.partition("  #")[0].strip(), tmp_path)]
    assert len(ran) >= 10
    assert (tmp_path / "bikes" / "maskmatch.json").is_file()
    assert (tmp_path / "bikes-report" / "report.html").is_file()
    assert len((tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()) == 5


def _run(line: str, folder: Path) -> bool:
    """Run a line; what sets up an environment is only checked for what it names."""
    if line.startswith("make "):
        assert f"\n{line.split()[1]}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
        return False
    if line.startswith("pip install"):
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
            "optional-dependencies"
        ]
        assert all(extra in extras for extra in re.findall(r"\[(\w+)\]", line))
        return False
    typed, pipe, command = line.partition(" | ") if line.startswith("echo ") else ("", "", line)
    command, redirect, target = command.partition(" > ")
    words = shlex.split(command)
    assert words[0] == "maskmatch", line
    result = CliRunner().invoke(app, words[1:], input=" ".join(shlex.split(typed)[1:]) if pipe else None)
    assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception!r}"
    assert result.stdout.strip(), line
    if redirect:
        (folder / target.strip()).write_text(result.stdout, encoding="utf-8")
    return True


def test_links_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *ROOT.glob("docs/*.md"), ROOT / "CONTRIBUTING.md", ROOT / "examples/README.md"):
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)\)|src=\"([^\"]+)\"", text):
            link = target[0] or target[1]
            assert link.startswith("http") or (page.parent / link).exists(), f"{page.name}: {link}"
