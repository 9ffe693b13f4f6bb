"""What all parts of the benchmark need: sizes, data, the peers' processes, finished measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.peers.process import Crew
    from benchmarks.speed.kept import Kept
    from benchmarks.speed.sizes import Sizes


@dataclass(frozen=True)
class Session:
    """A run of the benchmark.

    Attributes:
        crew: The peers' processes.
        kept: Finished measurements.
        sizes: How much is measured.
        data: The folder of the datasets.
        encoder: The folder of the encoder that all read with.
    """

    crew: Crew
    kept: Kept
    sizes: Sizes
    data: Path | None
    encoder: str
