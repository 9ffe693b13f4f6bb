"""Run benchmarks one after the other: ``python -m maskmatch_lab.benchmarks.run --data FOLDER``."""

from __future__ import annotations

import subprocess
import sys

from maskmatch_lab.benchmarks.common import parser

BENCHMARKS = (
    "speed",
    "overhead",
    "zero_shot",
    "expansion",
    "few_shot",
    "similarity",
    "many_labels",
    "loading",
    "calibration",
    "out_of_scope",
    "label_check",
    "serving",
    "real_world",
    "sklearn",
    "ray",
    "experiment",
)
ALL = "all"


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument(
        "--only", nargs="+", choices=(*BENCHMARKS, ALL), default=["speed"], help="the benchmarks to run"
    )
    options = arguments.parse_args()
    for name in BENCHMARKS if ALL in options.only else options.only:
        print(f"== {name}", flush=True)
        given = ["--data", str(options.data)] if options.data else []
        subprocess.run([sys.executable, "-m", f"maskmatch_lab.benchmarks.{name}", *given], check=True)
    subprocess.run([sys.executable, "-m", "maskmatch_lab.benchmarks.write_docs"], check=True)


if __name__ == "__main__":
    main()
