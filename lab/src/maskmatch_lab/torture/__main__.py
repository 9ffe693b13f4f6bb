"""The command: ``python -m maskmatch_lab.torture``, or ``make torture``. It needs no network and no datasets."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from maskmatch_lab.benchmarks.common import read_results, write_results
from maskmatch_lab.torture.campaign import run_part
from maskmatch_lab.torture.material import Material
from maskmatch_lab.torture.parts import PARTS

RESULT = "torture"
COMMAND = "make torture"


def main() -> None:
    """Run the parts and write their results; exit with 1 if anything failed."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="the parts to run")
    arguments.add_argument("--scale", type=float, default=1.0, help="the share of the tries of the whole campaign")
    arguments.add_argument("--seed", type=int, default=0, help="the seed of all tries")
    arguments.add_argument("--seconds", type=float, default=900.0, help="the longest time of a part")
    arguments.add_argument("--keep", action="store_true", help="write the results to lab/results/torture.json")
    options = arguments.parse_args()
    quieten()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="maskmatch-torture-") as scratch:
        material = Material(Path(scratch))
        for name in options.only:
            print(f"{name:20} ", end="", flush=True)
            found = run_part(PARTS[name], material, scale=options.scale, seed=options.seed, seconds=options.seconds)
            results[name] = found
            print(describe(found), flush=True)
            if options.keep:
                write_results(RESULT, {"parts": _merged(results)}, command=COMMAND)
    failed = sum(each["failures"] for each in results.values())
    for name, each in results.items():
        for line in each.get("first_failures", ()):
            print(f"  {name}, {line}")
    sys.exit(1 if failed else 0)


def describe(found: dict[str, Any]) -> str:
    """The result of a part in one line."""
    if "skipped" in found:
        return f"skipped: {found['skipped']}"
    outcomes = ", ".join(f"{name} {count}" for name, count in found["outcomes"].items())
    return f"{found['tries']:7} tries, {found['failures']} failures, {found['seconds']} s ({outcomes})"


def quieten() -> None:
    """No warnings of libraries: tens of thousands of damaged files cause them."""
    import torch
    from transformers.utils import logging as library

    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(1)  # the encoders are tiny, and processes are forked
    warnings.simplefilter("ignore")
    logging.getLogger("maskmatch").setLevel(logging.CRITICAL)
    quiet: Any = library  # has no annotations
    quiet.set_verbosity_error()
    quiet.disable_progress_bar()


def _merged(results: dict[str, Any]) -> dict[str, Any]:
    """The new results, and those of other parts that were kept before."""
    try:
        before = read_results(RESULT)["parts"]
    except (OSError, KeyError, ValueError):
        before = {}
    return {name: results.get(name, before.get(name)) for name in PARTS if name in results or name in before}


if __name__ == "__main__":
    main()
