"""Finished measurements on disk, so that a run that was stopped goes on where it was.

A measurement is known by its settings, the machine, the versions, and the source of maskmatch and of the peers: what
was measured before one of them changed is not taken for what would be measured now.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.peers.table import PEERS
from maskmatch.comparison.provenance import machine, versions

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
SOURCES = (ROOT / "src" / "maskmatch", ROOT / "benchmarks" / "peers", ROOT / "benchmarks" / "material.py")


class Kept:
    """A folder of finished measurements.

    Args:
        folder: Where they are.
        again: Measure also what is finished.
    """

    def __init__(self, folder: Path, again: bool = False) -> None:
        self._folder, self._again = folder, again
        peers = {name: peer.requirements for name, peer in PEERS.items()}
        self._world = {"machine": machine(), "versions": versions(), "source": _source(), "peers": peers}

    def measured(self, name: str, settings: Any, measure: Callable[[], Any]) -> dict[str, Any]:
        """What was measured before under these settings, or is measured now.

        Args:
            name: What the file is called, besides what tells settings apart.
            settings: Everything that the measurement hangs on besides machine, versions and source.
            measure: How to measure.
        """
        known = json.dumps({"settings": settings, **self._world}, sort_keys=True, default=str)
        path = self._folder / f"{name}-{hashlib.sha256(known.encode()).hexdigest()[:12]}.json"
        if path.is_file() and not self._again:
            return dict(json.loads(path.read_text(encoding="utf-8")))
        found = {"measured": datetime.now(timezone.utc).isoformat(timespec="seconds"), "found": measure()}
        self._folder.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(".writing")
        scratch.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        scratch.replace(path)
        return found


def _source() -> str:
    """A digest of the package's code and weights, and of how peers are run."""
    digest = hashlib.sha256()
    for path in sorted(each for source in SOURCES for each in (source, *source.rglob("*"))):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()
