"""A cache of finished measurements on disk, so that a run that was stopped can resume.

The key of a measurement has its settings, the machine, the versions, and the source code of maskmatch and of the peers:
when one of them changes, cached measurements are stale.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from maskmatch.files import write_text
from maskmatch_lab.benchmarks.peers.table import PEERS
from maskmatch_lab.comparison.provenance import machine, versions
from maskmatch_lab.paths import LAB, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PEER_CODE = LAB / "src" / "maskmatch_lab" / "benchmarks" / "peers"
SOURCES = (ROOT / "src" / "maskmatch", PEER_CODE, PEER_CODE.parent / "material.py")


class Kept:
    """A folder of finished measurements.

    Args:
        folder: The folder.
        again: Repeat finished measurements.
    """

    def __init__(self, folder: Path, again: bool = False) -> None:
        self._folder, self._again = folder, again
        peers = {name: peer.requirements for name, peer in PEERS.items()}
        self._world = {"machine": machine(), "versions": versions(), "source": _source(), "peers": peers}

    def measured(self, name: str, settings: Any, measure: Callable[[], Any]) -> dict[str, Any]:
        """The cached measurement with these settings, or a new one.

        Args:
            name: The beginning of the file's name; a digest follows.
            settings: Everything that the measurement depends on besides machine, versions and source code.
            measure: Makes the measurement.
        """
        known = json.dumps({"settings": settings, **self._world}, sort_keys=True, default=str)
        path = self._folder / f"{name}-{hashlib.sha256(known.encode()).hexdigest()[:12]}.json"
        if path.is_file() and not self._again:
            return dict(json.loads(path.read_text(encoding="utf-8")))
        found = {"measured": datetime.now(timezone.utc).isoformat(timespec="seconds"), "found": measure()}
        write_text(path, json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        return found


def _source() -> str:
    """A digest of the package's code and weights, and of the code that runs peers."""
    digest = hashlib.sha256()
    for path in sorted(each for source in SOURCES for each in (source, *source.rglob("*"))):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()
