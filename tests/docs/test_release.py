"""Files of a release agree: versions, bounds, licences, workflows."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from maskmatch import __version__

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def project(folder: str = ".") -> dict[str, Any]:
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def workflow(name: str) -> dict[str, Any]:
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))


def test_every_file_names_the_same_version() -> None:
    assert project()["version"] == project("lab")["version"] == __version__
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == __version__
    dated = re.findall(r"^## (\S+) - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert dated[0] == __version__


@pytest.mark.parametrize("folder", [".", "lab"])
def test_what_is_built_on_has_bounds(folder: str) -> None:
    extras = {name: lines for name, lines in project(folder)["optional-dependencies"].items() if name != "dev"}
    for line in chain(project(folder)["dependencies"], *extras.values()):
        requirement = line.partition(";")[0]
        assert re.search(r"==|>=.*,<|^maskmatch\[", requirement), line


def test_the_licence_of_the_lab_is_that_of_the_product() -> None:
    assert (ROOT / "lab" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_read_only_by_default_and_run_what_exists(path: Path) -> None:
    data = workflow(path.name)
    assert data["permissions"] in ({}, {"contents": "read"})
    for job in data["jobs"].values():
        assert job["timeout-minutes"] <= 60
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            for script in re.findall(r"python (tools/\S+)", step.get("run", "")):
                assert (ROOT / script).is_file()
            for target in re.findall(r"^make (\S+)", step.get("run", ""), re.M):
                assert f"\n{target}:" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_python_that_is_promised_is_tested() -> None:
    promised = re.findall(r"Python :: (3\.\d+)", " ".join(project()["classifiers"]))
    assert workflow("ci.yml")["jobs"]["tests"]["strategy"]["matrix"]["python"] == promised
    assert project()["requires-python"] == f">={promised[0]}"


def test_a_release_needs_no_token() -> None:
    publish = workflow("release.yml")["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"]["name"] == "pypi"
    assert "secrets." not in (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
