"""Many rows with Ray: equality with one process although a worker is killed, and texts per second beside one process.

The classifier is an export of the default encoder, the rows are made of the demo's texts. First ``predict --engine
ray`` answers all rows while one of its two workers is killed in the middle; its answers are compared with those of
``predict``. Then both commands run in turn: Ray with two actors of one thread each, and one process with two threads.
The time of each command with a few rows, which is that of its start, is measured as well.

    python -m maskmatch_lab.benchmarks.ray
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch_lab.benchmarks.common import parser, write_results

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS, ROUNDS, FEW = 50_000, 5, 16
LABELS = ["booking", "payment", "broken bike", "lost and found", "opening hours", "membership", "complaint"]


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--rows", type=int, default=ROWS)
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    arguments.add_argument("--partition-rows", type=int, default=2048)
    arguments.add_argument("--home", type=Path, help="Where to write the results; default: those of the lab.")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        result = campaign(Path(scratch), options.rows, options.rounds, options.partition_rows)
    write_results("ray", result, home=options.home)
    print(json.dumps({name: value for name, value in result.items() if name != "seconds"}, indent=1))


def campaign(folder: Path, rows: int, rounds: int, partition_rows: int, export: Path | None = None) -> dict[str, Any]:
    """All measurements.

    Args:
        folder: A folder to write to.
        rows: How many rows.
        rounds: How often each command is timed.
        partition_rows: Rows per partition.
        export: The export; None: one of the default encoder.
    """
    export = export or _default_export(folder / "export")
    many, few = _write_rows(folder / "rows.parquet", rows), _write_rows(folder / "few.parquet", FEW)
    commands = _Commands(export, folder / "answers", partition_rows)
    killed = commands.ray(many, kill_after=rows // partition_rows // 2)[1]
    expected = folder / "answers.jsonl"
    commands.one_process(many, expected)
    equality = compare(folder / "answers", expected)
    seconds: dict[str, list[float]] = {"ray": [], "one_process": [], "ray_start": [], "one_process_start": []}
    for _ in range(rounds):  # alternating, so that a busy moment affects both
        for suffix, file in (("", many), ("_start", few)):
            seconds[f"ray{suffix}"].append(commands.ray(file)[0])
            seconds[f"one_process{suffix}"].append(commands.one_process(file, folder / "other.jsonl"))
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    work = {name: medians[name] - medians[f"{name}_start"] for name in ("ray", "one_process")}
    ratios = [one / many for one, many in zip(seconds["one_process"], seconds["ray"], strict=True)]
    return {
        "rows": rows,
        "partition_rows": partition_rows,
        "worker_killed_after_partitions": killed,
        "equality": equality,
        "rounds": rounds,
        "texts_per_second": {name: round(rows / medians[name], 1) for name in work},
        "texts_per_second_after_start": {name: round(rows / max(each, 1e-9), 1) for name, each in work.items()},
        "ratio": round(statistics.median(ratios), 3),
        "ratio_after_start": round(work["one_process"] / max(work["ray"], 1e-9), 3),
        "seconds": {name: [round(value, 2) for value in values] for name, values in seconds.items()},
    }


class _Commands:
    """The two commands.

    Args:
        export: The classifier.
        output: The folder of Ray's answers.
        partition_rows: Rows per partition.
    """

    def __init__(self, export: Path, output: Path, partition_rows: int) -> None:
        self._start = [sys.executable, "-m", "maskmatch", "predict", str(export)]
        self._output, self._rows = output, partition_rows

    def ray(self, file: Path, *, kill_after: int | None = None) -> tuple[float, int | None]:
        """Answer a file with two actors; returns the seconds, and after how many partitions a worker was killed."""
        shutil.rmtree(self._output, ignore_errors=True)
        spread = ["--engine", "ray", "--actors", "2", "--threads", "1", "--partition-rows", str(self._rows)]
        command = [*self._start, str(file), "-o", str(self._output), *spread]
        started = time.perf_counter()
        process = subprocess.Popen(command, env=_environment(None), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        killed = None if kill_after is None else _kill_a_worker(process, self._output, kill_after)
        error = process.communicate()[1].decode()
        if process.returncode:
            raise RuntimeError(error)
        return time.perf_counter() - started, killed

    def one_process(self, file: Path, answers: Path) -> float:
        """Answer a file in one process with two threads; returns the seconds."""
        started = time.perf_counter()
        with answers.open("w", encoding="utf-8") as output:
            command = [*self._start, str(file)]
            subprocess.run(command, env=_environment(2), stdout=output, stderr=subprocess.DEVNULL, check=True)
        return time.perf_counter() - started


def compare(folder: Path, expected: Path) -> dict[str, Any]:
    """What Ray's answers have in common with those of one process."""
    from pyarrow import dataset

    found = dataset.dataset(folder, format="parquet").to_table(columns=["row", "label", "top_k", "error"]).to_pylist()
    lines = [json.loads(line) for line in expected.read_text(encoding="utf-8").splitlines()]
    rows = sorted(row["row"] for row in found)
    by_row = {row["row"]: row for row in found}
    pairs = [(by_row[line["row"]], line) for line in lines if line["row"] in by_row]
    differences = [
        abs(one["probability"] - other["probability"])
        for mine, line in pairs
        for one, other in zip(mine["top_k"], line["top_k"], strict=True)
    ]
    return {
        "rows": len(found),
        "every_row_once": rows == [line["row"] for line in lines],
        "same_label": sum(mine["label"] == line["label"] for mine, line in pairs),
        "same_answer": sum(mine["top_k"] == line["top_k"] for mine, line in pairs),
        "largest_difference": max(differences, default=0.0),
        "bad_rows": sum(row["error"] is not None for row in found),
    }


def _kill_a_worker(process: subprocess.Popen[bytes], output: Path, after: int) -> int | None:
    """Kill a worker once this many partitions are written; returns how many, or None if the command was faster."""
    import psutil

    while process.poll() is None:
        partitions = len(list(output.glob("*.parquet")))
        for child in psutil.Process(process.pid).children(recursive=True) if partitions >= after else []:
            if any("MapWorker" in word for word in child.cmdline()):
                child.kill()
                return partitions
        time.sleep(0.01)
    return None


def _environment(threads: int | None) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    return environment if threads is None else {**environment, "OMP_NUM_THREADS": str(threads)}


def _write_rows(path: Path, rows: int) -> Path:
    """Rows of a few sentences of the demo each."""
    import pyarrow as pa
    from pyarrow import parquet

    draw, sentences = random.Random(0), _sentences()
    texts = [" ".join(draw.choices(sentences, k=draw.choice((1, 1, 1, 2, 3)))) for _ in range(rows)]
    parquet.write_table(pa.table({"text": texts}), path)
    return path


def _sentences() -> Sequence[str]:
    from importlib.resources import files

    found = [file for file in files("maskmatch.demo").iterdir() if file.name.endswith(".jsonl")]
    lines = [line for file in found for line in file.read_text(encoding="utf-8").splitlines()]
    return sorted({json.loads(line)["text"] for line in lines})


def _default_export(folder: Path) -> Path:
    from maskmatch import MaskMatcher, export

    export(MaskMatcher.from_pretrained(None, LABELS, verbose=False), folder)
    return folder


if __name__ == "__main__":
    main()
