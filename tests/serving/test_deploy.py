"""The files to deploy a server: no engine can build them here, so they are linted, and compared with the project."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

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


def test_it_installs_what_the_project_states() -> None:
    """The list of packages without torch is in the Dockerfile; its bounds are those of the project."""
    listed = re.findall(r'"([a-z-]+)(>=[^"]+)"', (DEPLOY / "Dockerfile").read_text(encoding="utf-8"))
    stated = re.findall(r'"([a-z-]+)(>=[^" ;]+)', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert len(listed) > 10
    for name, bounds in listed:
        if name != "tokenizers":  # comes with transformers
            assert (name, bounds) in stated


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_unit_is_clean(tmp_path: Path) -> None:
    unit = (DEPLOY / "maskmatch.service").read_text(encoding="utf-8")
    path = tmp_path / "maskmatch.service"
    path.write_text(unit.replace("/opt/maskmatch/bin/maskmatch", "/bin/true"), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", str(path)], check=False, capture_output=True, text=True)
    own = [line for line in done.stderr.splitlines() if "maskmatch.service" in line]
    assert not own
