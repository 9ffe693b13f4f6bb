"""Shared state of all parts of the benchmark: sizes, data, the peers' processes, cached measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from maskmatch_lab.benchmarks.peers.process import Crew
    from maskmatch_lab.benchmarks.speed.kept import Kept
    from maskmatch_lab.benchmarks.speed.sizes import Sizes


@dataclass(frozen=True)
class Session:
    """A run of the benchmark.

    Attributes:
        crew: The peers' processes.
        kept: The cache of finished measurements.
        sizes: The sizes to measure.
        data: The folder of the datasets.
        encoder: The folder of the encoder that all peers use.
    """

    crew: Crew
    kept: Kept
    sizes: Sizes
    data: Path | None
    encoder: str
