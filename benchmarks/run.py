"""Run all benchmarks, one after the other: ``python -m benchmarks.run --data FOLDER``."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.common import parser

BENCHMARKS = ("overhead", "prediction", "zero_shot", "expansion", "few_shot", "similarity", "many_labels", "experiment")


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    for name in BENCHMARKS:
        print(f"== {name}", flush=True)
        arguments = ["--data", str(options.data)] if options.data else []
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *arguments], check=True)
    subprocess.run([sys.executable, "-m", "benchmarks.write_docs"], check=True)


if __name__ == "__main__":
    main()
