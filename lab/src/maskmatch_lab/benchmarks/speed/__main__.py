"""``python -m maskmatch_lab.benchmarks.speed``: measure maskmatch and its peers, in about two hours."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.model.encoder import EMBEDDED_MODEL, find_model
from maskmatch_lab.benchmarks import common
from maskmatch_lab.benchmarks.peers.environments import DEFAULT_FOLDER, python_of
from maskmatch_lab.benchmarks.peers.process import Crew
from maskmatch_lab.benchmarks.peers.table import PEERS
from maskmatch_lab.benchmarks.speed import bars, curves, prediction, training
from maskmatch_lab.benchmarks.speed.kept import Kept
from maskmatch_lab.benchmarks.speed.session import Session
from maskmatch_lab.benchmarks.speed.sizes import TINY, Sizes
from maskmatch_lab.paths import ROOT

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

PARTS: dict[str, Callable[[Session], dict[str, Any]]] = {
    "training": training.measure,
    "prediction": prediction.measure,
    "curves": curves.measure,
}
KEPT = ROOT / ".cache" / "speed"


def main(arguments: list[str] | None = None) -> None:
    """Measure the chosen parts, and write a results file for each."""
    options = _options(arguments)
    sizes = TINY if options.tiny else Sizes()
    kept = Kept(options.kept / ("tiny" if options.tiny else "cells"), again=options.again)
    folder = str(find_model(EMBEDDED_MODEL)[0])
    for peer in PEERS.values():
        python_of(peer, options.environments)  # installed before anything is timed
    for part in options.only:
        started = time.perf_counter()
        print(f"== {part}", file=sys.stderr, flush=True)
        with Crew(options.environments, options.kept / "logs") as crew:
            result = PARTS[part](Session(crew, kept, sizes, options.data, folder))
            versions = _versions(crew)
        result = {"sizes": sizes.to_dict(), "peers": versions, **result}
        result["bars"] = bars.of_part(part, result)
        result["seconds_in_all"] = round(time.perf_counter() - started)
        home = options.kept / "tiny" / "results" if options.tiny else None
        print(common.write_results(f"speed_{part}", result, home=home, command=_command(part)), flush=True)


def _options(arguments: list[str] | None) -> Namespace:
    parser = common.parser(__doc__ or "")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="the parts to measure")
    parser.add_argument("--again", action="store_true", help="repeat finished measurements")
    parser.add_argument(
        "--tiny", action="store_true", help="only check that everything runs; results go to another folder"
    )
    parser.add_argument("--environments", type=Path, default=DEFAULT_FOLDER, help="folder of the peers' environments")
    parser.add_argument("--kept", type=Path, default=KEPT, help="folder of cached measurements and logs")
    return parser.parse_args(arguments)


def _versions(crew: Crew) -> dict[str, dict[str, str]]:
    return {name: crew.ask(name, "about")["versions"] for name in PEERS}


def _command(part: str) -> str:
    return f"python -m maskmatch_lab.benchmarks.speed --only {part}"


if __name__ == "__main__":
    main()
