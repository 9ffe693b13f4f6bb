"""The files to deploy a server: no engine can build them here, so they are linted, and compared with the project."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from maskmatch.errors import DISTRIBUTIONS, NOT_SERVING

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
HADOLINT = Path(sys.executable).with_name("hadolint")


@pytest.mark.skipif(not HADOLINT.exists(), reason="hadolint is not installed")
def test_the_dockerfile_is_clean() -> None:
    done = subprocess.run([str(HADOLINT), str(DEPLOY / "Dockerfile")], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_it_runs_without_rights_and_writes_nothing() -> None:
    lines = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users
    assert users[-1].isdigit()
    assert int(users[-1]) > 0
    service = yaml.safe_load((DEPLOY / "compose.yml").read_text(encoding="utf-8"))["services"]["maskmatch"]
    assert service["read_only"] is True
    assert all(volume.endswith(":ro") for volume in service["volumes"])
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_an_install_for_serving_only_has_the_bounds_of_the_project() -> None:
    """The list has what the core and the extra "serve" state, but for what only training and reports need."""
    lines = (DEPLOY / "requirements-serve.txt").read_text(encoding="utf-8").splitlines()
    listed = {_requirement(line) for line in lines if line and not line.startswith("#")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    stated = {_requirement(line) for line in [*project["dependencies"], *extras["serve"], *extras["onnx"]]}
    needless = {*NOT_SERVING, "huggingface_hub", "maskmatch[onnx]", "onnx"}
    needless = {DISTRIBUTIONS.get(name, name) for name in needless}
    assert {each for each in listed if each[0] != "tokenizers"} == {each for each in stated if each[0] not in needless}
    assert "requirements-serve.txt" in (DEPLOY / "Dockerfile").read_text(encoding="utf-8")


def _requirement(line: str) -> tuple[str, str]:
    """The name of a requirement, and its bounds with its marker."""
    found = re.match(r"[\w\[\]-]+", line)
    assert found, line
    return found[0], line[found.end() :].replace(" ", "")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_unit_is_clean(tmp_path: Path) -> None:
    unit = (DEPLOY / "maskmatch.service").read_text(encoding="utf-8")
    path = tmp_path / "maskmatch.service"
    path.write_text(unit.replace("/opt/maskmatch/bin/maskmatch", "/bin/true"), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", str(path)], check=False, capture_output=True, text=True)
    own = [line for line in done.stderr.splitlines() if "maskmatch.service" in line]
    assert not own
