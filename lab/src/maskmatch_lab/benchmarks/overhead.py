"""The overhead of the library: time and memory of a training run in comparison with a bare PyTorch loop.

Both train the default encoder on banking77, 5 shots per label, for the usual epochs with the same batch size, each in
a process of its own. The library's time is that of a complete run, from tokenisation to the computation of centroids;
the bare loop starts with finished batches. The results also have the share of time in forward, backward and optimizer
step, and the peak resident memory of the two processes.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import torch

from maskmatch import MaskMatcher
from maskmatch.training.data import training_data
from maskmatch_lab.benchmarks.common import label_names, load_split, parser, shots, usual_epochs, write_results

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REPEATS = 5
BATCH = 32


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--part", choices=("library", "bare"), help=argparse_hidden())
    options = arguments.parse_args()
    if options.part:
        print(json.dumps(_library(options.data) if options.part == "library" else _bare(options.data)))
        return
    runs: dict[str, list[dict[str, float]]] = {"library": [], "bare": []}
    for _ in range(REPEATS):
        for part, results in runs.items():  # alternating, so that a busy moment affects both
            command = [
                sys.executable,
                "-m",
                "maskmatch_lab.benchmarks.overhead",
                "--part",
                part,
                "--data",
                str(options.data),
            ]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            results.append(json.loads(output.splitlines()[-1]))
            print(part, results[-1], flush=True)
    medians = {part: {name: _median([run[name] for run in own]) for name in own[0]} for part, own in runs.items()}
    write_results(
        "overhead",
        {
            "steps": medians["library"]["steps"],
            "repeats": REPEATS,
            "share_in_forward_backward_step": medians["library"]["share"],
            "time_ratio": round(_median(_ratios(runs, "seconds")), 3),
            "memory_ratio": round(_median(_ratios(runs, "peak_megabytes")), 3),
            "medians": medians,
            "runs": runs,
        },
    )


def argparse_hidden() -> str:
    import argparse

    return argparse.SUPPRESS


def _library(data: Path) -> dict[str, float]:
    """A training run of the library, with a clock around forward, backward and step."""
    matcher, few = _setup(data)
    clock = _Clock()
    clock.wrap(torch.nn.Module, "__call__", only=lambda module: type(module).__name__ == "MatchingModel")
    clock.wrap(torch.Tensor, "backward")
    clock.wrap(torch.optim.AdamW, "step")
    started = time.perf_counter()
    matcher.fit(few.texts, few.labels, seed=0, batch_size=BATCH, calibrate=False)
    seconds = time.perf_counter() - started
    assert matcher.training_ is not None
    steps = matcher.training_.steps
    return {"seconds": seconds, "share": clock.seconds / seconds, "peak_megabytes": _peak(), "steps": steps}


def _bare(data: Path) -> dict[str, float]:
    """The same steps on the same batches, in a bare loop."""
    matcher, few = _setup(data)
    assert matcher.labels is not None
    batches = training_data(matcher.bank, few.texts, few.labels).batch
    model = matcher.model
    torch.manual_seed(0)
    ready = []
    for _ in range(round(usual_epochs(len(few), len(matcher.labels)))):
        order = torch.randperm(len(few)).tolist()
        ready += [batches(order[start : start + BATCH]) for start in range(0, len(order), BATCH)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    model.train()
    started = time.perf_counter()
    for batch in ready:
        model(**batch)["loss"].backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "share": 1.0, "peak_megabytes": _peak(), "steps": len(ready)}


def _setup(data: Path) -> tuple[MaskMatcher, Any]:
    train = load_split(data, "banking77", "train")
    few = shots(train, 5, 0)
    return MaskMatcher.from_pretrained(labels=label_names(train), task="intent"), few


class _Clock:
    """Adds up the time spent in some functions, counting nested calls once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0

    def wrap(self, owner: Any, name: str, only: Callable[[Any], bool] = lambda _: True) -> None:
        original = getattr(owner, name)

        def timed(this: Any, *arguments: Any, **options: Any) -> Any:
            if self._depth or not only(this):
                return original(this, *arguments, **options)
            self._depth += 1
            started = time.perf_counter()
            try:
                return original(this, *arguments, **options)
            finally:
                self._depth -= 1
                self.seconds += time.perf_counter() - started

        setattr(owner, name, timed)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _ratios(runs: dict[str, list[dict[str, float]]], name: str) -> list[float]:
    return [ours[name] / bare[name] for ours, bare in zip(runs["library"], runs["bare"], strict=True)]


def _median(values: list[float]) -> float:
    return round(sorted(values)[len(values) // 2], 4)


if __name__ == "__main__":
    main()
