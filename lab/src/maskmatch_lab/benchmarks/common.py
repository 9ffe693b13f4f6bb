"""Shared parts of the benchmarks: datasets, and results files that record how they were made."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from maskmatch import MaskMatchError, draw_shots, load_examples
from maskmatch.data import Examples
from maskmatch.files import write_text
from maskmatch_lab import paths
from maskmatch_lab.comparison.provenance import machine

RESULTS = paths.RESULTS
"""Where results are read and written; tests set another folder."""


def parser(description: str) -> argparse.ArgumentParser:
    """A command line with the folder of the datasets, which defaults to MASKMATCH_DATA."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--data", type=Path, default=os.environ.get("MASKMATCH_DATA"), help="folder of the datasets")
    return arguments


def load_split(data: Path | None, name: str, split: str, fields: tuple[str, ...] = ("text",)) -> Examples:
    """A split of a dataset: ``DATA/NAME/SPLIT.jsonl.gz``, one JSON object per line."""
    if data is None:
        raise MaskMatchError("Give the folder of the datasets with --data or MASKMATCH_DATA.")
    return load_examples(Path(data) / name / f"{split}.jsonl.gz", fields)


def shots(examples: Examples, number: int, seed: int) -> Examples:
    """A seeded draw of this many rows per label."""
    assert examples.labels is not None
    rows = draw_shots(examples.labels, number, seed)
    return Examples([examples.texts[row] for row in rows], [examples.labels[row] for row in rows])


def label_names(examples: Examples) -> list[str]:
    """All labels of a split, sorted."""
    assert examples.labels is not None
    return sorted(set(examples.labels))


def mean_and_sd(values: list[float]) -> dict[str, float]:
    """Mean and sample standard deviation."""
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)
    return {"mean": round(mean, 4), "sd": round(variance**0.5, 4)}


def usual_epochs(texts: int, labels: int) -> float:
    """The default number of epochs of mask-matching for this many texts and labels."""
    from maskmatch import METHODS
    from maskmatch.config.training import TrainingConfig

    return TrainingConfig().resolved(METHODS["mask-matching"], texts, labels_with_centroids=labels).epochs or 0.0


def read_results(name: str) -> dict[str, Any]:
    """The committed results of a benchmark."""
    return dict(json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")))


def finished_cells(name: str, again: bool = False) -> list[dict[str, Any]]:
    """The finished cells of a benchmark, so that a run that was stopped can resume."""
    if again or not (RESULTS / f"{name}.json").is_file():
        return []
    return list(read_results(name).get("cells", []))


def write_results(name: str, result: dict[str, Any], *, home: Path | None = None, command: str | None = None) -> Path:
    """Write results with the command, versions and machine that made them, atomically.

    Args:
        name: The name of the file, without its extension.
        result: The results.
        home: The folder to write to; None: that of the committed results.
        command: The command that makes them; None: that of the benchmark with this name.
    """
    home = RESULTS if home is None else home
    path = home / f"{name}.json"
    data = {
        "command": command or f"python -m maskmatch_lab.benchmarks.{name} " + " ".join(_without_paths(sys.argv[1:])),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in ("maskmatch", "torch", "transformers")},
        },
        "machine": machine(),
        **result,
    }
    data["command"] = data["command"].strip()
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    return path


def _without_paths(arguments: list[str]) -> list[str]:
    """The arguments without the data folder, which differs between machines."""
    kept: list[str] = []
    skip = False
    for argument in arguments:
        if not skip and argument != "--data":
            kept.append(argument)
        skip = argument == "--data"
    return kept
