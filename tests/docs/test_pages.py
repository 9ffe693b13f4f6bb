"""Every snippet and command of README, tutorial and guides runs as printed (on a tiny encoder); every link works."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from pages import ROOT, check_options, headings, links, run_command, run_page, snippets
from typer.testing import CliRunner

from maskmatch.cli import app

DOCS = sorted((ROOT / "docs").rglob("*.md"))
OTHERS = [ROOT / name for name in ("CONTRIBUTING.md", "examples/README.md", "lab/README.md", "lab/corpus/README.md")]
RUN = [page for page in (ROOT / "README.md", *DOCS) if snippets(page)]
LINKED = [ROOT / "README.md", *DOCS, *OTHERS]
REAL_DEMO = ("README.md", "tutorial.md")
"""Pages on which the demo runs; on the others its folder is a copy, which saves a training."""


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def small_world(tiny_default: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The default is a tiny encoder, training is short, and files go to a folder of the test's own."""
    monkeypatch.setattr("maskmatch.config.training.FEW_STEPS", 4)
    monkeypatch.setattr("maskmatch.config.training.DEFAULT_STEPS", 4)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def demo(small_world: None, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    """The folder that ``maskmatch demo`` writes, made once per session and copied for each page."""
    made = tmp_path_factory.getbasetemp() / "maskmatch-demo"
    if not made.exists():
        assert CliRunner().invoke(app, ["demo"]).exit_code == 0
        shutil.copytree(tmp_path / "maskmatch-demo", made)
        shutil.rmtree(tmp_path / "maskmatch-demo")
    return made


@pytest.mark.parametrize("page", RUN, ids=page_name)
def test_snippets_run_as_printed(page: Path, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.name not in REAL_DEMO:
        monkeypatch.setattr("pages.run_command", lambda line, folder: _run(line, folder, demo))
    ran = run_page(page, tmp_path)
    assert ran > 0 or page.is_relative_to(ROOT / "docs" / "results"), "a guide shows something that runs"


def _run(line: str, folder: Path, demo: Path) -> bool:
    if line == "maskmatch demo":
        shutil.copytree(demo, folder / "maskmatch-demo", dirs_exist_ok=True)
        return True
    return run_command(line, folder)


@pytest.mark.usefixtures("small_world")
def test_the_readme_leaves_what_it_promises(tmp_path: Path) -> None:
    run_page(ROOT / "README.md", tmp_path)
    assert (tmp_path / "bikes" / "maskmatch.json").is_file()
    assert (tmp_path / "bikes-report" / "report.html").is_file()
    assert len((tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()) == 5


def test_commands_with_files_of_the_reader_are_checked_for_their_options() -> None:
    assert not run_command('maskmatch compare --data "$MASKMATCH_DATA" --datasets a:topic --full -o out', Path())
    assert not run_command("maskmatch train TRAIN.jsonl -o out --shots 5", Path())
    with pytest.raises(Exception, match="--no-such-option"):
        run_command("maskmatch train TRAIN.jsonl -o out --no-such-option", Path())
    with pytest.raises(Exception, match="no-such-command"):
        check_options(["no-such-command"])
    with pytest.raises(Exception, match="--no-such-option"):
        check_options(["labels", "expand", "LABELS.csv", "--no-such-option"])


@pytest.mark.parametrize("page", LINKED, ids=page_name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in links(page):
        assert target.exists(), f"{page_name(page)}: {target}"
        assert not anchor or anchor in headings(target), f"{page_name(page)}: no heading #{anchor} in {target.name}"


def test_every_page_is_reached_from_the_index() -> None:
    seen, todo = set(), [ROOT / "docs" / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen:
            continue
        seen.add(page)
        todo += [target for target, _ in links(page) if target.suffix == ".md" and target.exists()]
    assert {page_name(page) for page in DOCS} <= {page_name(page) for page in seen}


ROOMS = {
    "## Rooms of the product": "src/maskmatch",
    "### Inside `model/`": "src/maskmatch/model",
    "### Inside `prediction/`": "src/maskmatch/prediction",
    "## Rooms of the lab": "lab/src/maskmatch_lab",
}


@pytest.mark.parametrize("heading", ROOMS)
def test_the_map_of_rooms_is_that_of_the_code(heading: str) -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    part = re.split(r"^##", page.partition(f"{heading}\n")[2], flags=re.MULTILINE)[0]
    first_cells = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
    named = {name for cell in first_cells for name in re.findall(r"`([^`]+)`", cell)}
    home = ROOT / ROOMS[heading]
    assert named
    assert not [name for name in named if not (home / name).exists()], "named, but not there"
    rooms = {f"{path.parent.name}/" for path in home.glob("*/__init__.py")}
    if heading.startswith("## "):
        assert rooms <= named, "there, but not named"


def test_anchors_are_those_of_github(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n## `search`: exact, or not?\n\n## A [link](x.md)\n\n## A link\n", encoding="utf-8")
    assert headings(page) == {"a-page", "search-exact-or-not", "a-link", "a-link-1"}
