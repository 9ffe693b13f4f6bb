"""Environments of the peers: each is a folder with a Python that has the project's packages and the peer's own.

All peers use the same builds of torch, transformers and sentence-transformers; only the peer's other packages are
installed, within the limits of constraints.txt. An environment with a torch of its own raises an error.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import TYPE_CHECKING

from maskmatch import MaskMatchError
from maskmatch_lab.paths import ROOT

if TYPE_CHECKING:
    from maskmatch_lab.benchmarks.peers.table import Peer

DEFAULT_FOLDER = ROOT / ".cache" / "environments"


def python_of(peer: Peer, folder: Path) -> Path:
    """The Python that runs a peer; its environment is created if it does not exist.

    Args:
        peer: The peer.
        folder: The folder of all environments.
    """
    if not peer.requirements:
        return Path(sys.executable)
    home = folder.resolve() / peer.module
    python = home / "bin" / "python"
    if not is_ready(peer, folder):
        shutil.rmtree(home, ignore_errors=True)
        print(f"creating an environment for {peer.name}: {', '.join(peer.requirements)}", file=sys.stderr, flush=True)
        venv.EnvBuilder(symlinks=True).create(home)
        packages = _packages(home)
        (packages / "project.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n", encoding="utf-8")
        _install(peer, python)
        if (packages / "torch").exists():
            raise MaskMatchError(f"{peer.name} installed its own torch into {home}; it must share the project's.")
        (home / "ready.json").write_text(json.dumps(_marks(peer)), encoding="utf-8")
    return python


def is_ready(peer: Peer, folder: Path) -> bool:
    """Whether a peer needs no environment, or has one with these requirements."""
    mark = folder / peer.module / "ready.json"
    return not peer.requirements or (mark.is_file() and json.loads(mark.read_text(encoding="utf-8")) == _marks(peer))


def _marks(peer: Peer) -> dict[str, object]:
    return {
        "requirements": list(peer.requirements),
        "python": sys.version,
        "project": sysconfig.get_paths()["purelib"],
    }


def _packages(home: Path) -> Path:
    return home / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def _install(peer: Peer, python: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    command += ["-c", str(ROOT / "constraints.txt"), *peer.requirements]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        raise MaskMatchError(f"The environment of {peer.name} could not be created: {reason}")
