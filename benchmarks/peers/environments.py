"""Environments of the peers: each a folder with a Python that sees the project's packages and adds the peer's own.

So torch, transformers and sentence-transformers are the same build for all, and only what a peer needs beside them is
installed. pip is held to constraints.txt; an environment into which it would put a torch of its own is refused.
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

if TYPE_CHECKING:
    from benchmarks.peers.table import Peer

ROOT = Path(__file__).parents[2]
DEFAULT_FOLDER = ROOT / ".cache" / "environments"


def python_of(peer: Peer, folder: Path) -> Path:
    """The Python that runs a peer; its environment is made if it is not there.

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
        print(f"making an environment for {peer.name}: {', '.join(peer.requirements)}", file=sys.stderr, flush=True)
        venv.EnvBuilder(symlinks=True).create(home)
        packages = _packages(home)
        (packages / "project.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n", encoding="utf-8")
        _install(peer, python)
        if (packages / "torch").exists():
            raise MaskMatchError(f"{peer.name} brought a torch of its own into {home}; it has to share the project's.")
        (home / "ready.json").write_text(json.dumps(_marks(peer)), encoding="utf-8")
    return python


def is_ready(peer: Peer, folder: Path) -> bool:
    """Whether a peer can run at once: it needs no environment, or has one with these requirements."""
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
        raise MaskMatchError(f"The environment of {peer.name} could not be made: {reason}")
