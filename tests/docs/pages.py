"""Snippets and links of the documentation, as the tests read them."""

from __future__ import annotations

import re
import shlex
import socket
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer
from typer.testing import CliRunner

from maskmatch.cli import app
from server_tools import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PLACEHOLDER = re.compile(r"\$MASKMATCH_DATA|\b[A-Z]{3,}(?:[./-][A-Za-z-]+)*\b(?!=)")
"""Files that only the reader has: a command that names one is checked for its options, not run."""


SERVERS: list[ServerProcess] = []
"""Servers that a page has started; they run until the page ends."""


@dataclass(frozen=True)
class Snippet:
    """A block of code of a page."""

    language: Literal["python", "bash"]
    text: str
    line: int

    def commands(self) -> list[str]:
        """The command lines of a bash block, without comments."""
        joined = self.text.replace("\\\n", " ")
        return [line.partition("  #")[0].strip() for line in joined.splitlines() if line.strip()]


def snippets(page: Path) -> list[Snippet]:
    """The Python and bash blocks of a page, in their order."""
    text = page.read_text(encoding="utf-8")
    return [
        Snippet(found[1], found[2], text.count("\n", 0, found.start()) + 2)  # type: ignore[arg-type]
        for found in re.finditer(r"^```(python|bash)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    ]


def run_page(page: Path, folder: Path) -> int:
    """Run all snippets of a page one after the other in the current folder; returns how many commands and blocks ran.

    Args:
        page: The page.
        folder: Where redirected output goes: the current folder.
    """
    names: dict[str, Any] = {"__name__": "page"}
    ran = 0
    try:
        for snippet in map(_with_free_ports(page), snippets(page)):
            if snippet.language == "python":
                blank_lines = "\n" * (snippet.line - 1)  # so that an error names the line of the page
                exec(compile(blank_lines + snippet.text, page.name, "exec"), names)
                ran += 1
            else:
                ran += sum(run_command(line, folder) for line in snippet.commands())
    finally:
        while SERVERS:
            assert SERVERS.pop().stop() == 0
    return ran


def _with_free_ports(page: Path) -> Callable[[Snippet], Snippet]:
    """Replaces the ports of servers in snippets by free ones: pages are run at the same time."""
    ports = {}
    for port in re.findall(r"--port (\d+)", page.read_text(encoding="utf-8")):
        with socket.create_server(("127.0.0.1", 0)) as free:
            ports[port] = str(free.getsockname()[1])

    def replaced(snippet: Snippet) -> Snippet:
        text = snippet.text
        for port, free_port in ports.items():
            text = text.replace(port, free_port)
        return replace(snippet, text=text)

    return replaced


def run_command(line: str, folder: Path) -> bool:
    """Run a command line. Lines that set up an environment, or need the reader's files, are only checked."""
    typed, pipe, command = line.partition(" | ") if line.startswith("echo ") else ("", "", line)
    command, redirect, target = command.partition(" > ")
    words = shlex.split(command)
    if words[0] == "make":
        assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(encoding="utf-8"), line
        return False
    if words[:2] == ["pip", "install"]:
        check_install(words[2:])
        return False
    if words[0] == "python":
        check_python(words[1:])
        return False
    assert words[0] == "maskmatch", line
    if words[1] == "serve":
        check_options(words[1:])
        SERVERS.append(ServerProcess(*words[2:]))
        return True
    if PLACEHOLDER.search(re.sub(r'"[^"$]*"', '""', command)):
        check_options(words[1:])
        return False
    result = CliRunner().invoke(app, words[1:], input=" ".join(shlex.split(typed)[1:]) if pipe else None)
    assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception!r}"
    assert result.stdout.strip(), line
    if redirect:
        (folder / target.strip()).write_text(result.stdout, encoding="utf-8")
    return True


def check_install(targets: list[str]) -> None:
    """Every extra and every folder that is to be installed exists."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for before, target in pairwise(["", *targets]):
        if before == "-r":
            assert (ROOT / target).is_file(), target
            continue
        if target.startswith("-"):
            continue
        name, _, extras = target.partition("[")
        assert name == project["name"] or (ROOT / name / "pyproject.toml").is_file(), target
        assert all(extra in project["optional-dependencies"] for extra in re.findall(r"\w+", extras)), target


def check_python(words: list[str]) -> None:
    """The module or the script exists."""
    if words[0] == "-m":
        assert find_spec(words[1]) is not None, words[1]
    else:
        assert (ROOT / words[0]).is_file(), words[0]


def check_options(words: list[str]) -> None:
    """The command exists and takes these options; nothing is run."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("maskmatch", list(words))
    while hasattr(command, "resolve_command"):  # a group
        name, found, words = command.resolve_command(context, list(words))
        context = found.make_context(name, list(words), parent=context)
        command = found


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    anchors: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?) *$", text, flags=re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 0
        while (unique := f"{anchor}-{number}" if number else anchor) in anchors:
            number += 1
        anchors.add(unique)
    return anchors


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """The files that a page links to, each with its anchor."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for found in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", re.sub(r"`[^`\n]*`", "", text)):
        link = found[0] or found[1]
        if not link.startswith(("http:", "https:", "mailto:")):
            target, _, anchor = link.partition("#")
            yield (page.parent / target).resolve() if target else page, anchor
