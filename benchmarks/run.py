"""Run benchmarks one after the other: ``python -m benchmarks.run --data FOLDER``; without ``--only``, that of speed."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.common import parser

BENCHMARKS = ("speed", "overhead", "zero_shot", "expansion", "few_shot", "similarity", "many_labels", "experiment")
ALL = "all"


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--only", nargs="+", choices=(*BENCHMARKS, ALL), default=["speed"], help="which to run")
    options = arguments.parse_args()
    for name in BENCHMARKS if ALL in options.only else options.only:
        print(f"== {name}", flush=True)
        given = ["--data", str(options.data)] if options.data else []
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *given], check=True)
    subprocess.run([sys.executable, "-m", "benchmarks.write_docs"], check=True)


if __name__ == "__main__":
    main()
