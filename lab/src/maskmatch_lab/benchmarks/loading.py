"""Loading: what it costs to check every file of a saved classifier, for the default encoder and its export.

Loads with and without the check take turns in one process. No datasets are needed.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from maskmatch import ExportedMatcher, MaskMatcher, export
from maskmatch_lab.benchmarks.common import parser, write_results

REPEATS = 9
LABELS = ["refund", "card lost", "exchange rate"]


def main() -> None:
    parser(__doc__ or "").parse_args()
    matcher = MaskMatcher.from_pretrained(labels=LABELS, task="intent", verbose=False)
    with tempfile.TemporaryDirectory() as scratch:
        folder = matcher.save_pretrained(Path(scratch) / "model")
        exported = Path(scratch) / "export"
        export(matcher, exported, int8=True)
        kinds = {"classifier": (MaskMatcher, folder), "int8 export": (ExportedMatcher, exported)}
        result = {name: _measure(load, place) for name, (load, place) in kinds.items()}
    write_results("loading", {"repeats": REPEATS, "kinds": result})


def _measure(kind: Any, folder: Path) -> dict[str, Any]:
    """Seconds of loads with and without the check, in turns; the first of each warms the disk's cache."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(REPEATS + 1):
        for verify, taken in seconds.items():
            started = time.perf_counter()
            kind.from_pretrained(folder, verify=verify, verbose=False)
            taken.append(time.perf_counter() - started)
    medians = {verify: statistics.median(taken[1:]) for verify, taken in seconds.items()}
    return {
        "megabytes": round(sum(path.stat().st_size for path in folder.iterdir()) / 2**20, 1),
        "seconds_with_check": round(medians[True], 4),
        "seconds_without": round(medians[False], 4),
        "seconds_of_check": round(medians[True] - medians[False], 4),
    }


if __name__ == "__main__":
    main()
