"""The process of a peer: it reads one request per line and answers with one line. Standard library only."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol, TextIO

SHARE_OF_MEMORY = 0.8
"""The share of the machine's memory that a process may allocate."""


class Work(Protocol):
    """Prepared work, which can run more than once unless it is training."""

    def run(self) -> Mapping[str, Any] | None:
        """Run it and return facts for the answer; ``seconds`` among them replaces the time around the call."""


Kinds = Mapping[str, Callable[..., Work]]


def serve(kinds: Kinds, packages: Sequence[str] = ()) -> None:
    """Answer requests until there are no more.

    Args:
        kinds: The kinds of work: by name, a function that prepares it from its settings.
        packages: The packages whose versions are reported.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not mix with the answers
    _limit_memory()
    works: dict[str, Work] = {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = _answer(request, kinds, packages, works)
        except Exception as error:  # the parent decides what a failure means
            answer = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"}
        _write(answers, answer)


def _answer(request: dict[str, Any], kinds: Kinds, packages: Sequence[str], works: dict[str, Work]) -> dict[str, Any]:
    command, name = request["command"], request.get("name", "")
    if command == "about":
        return {"versions": _versions(packages), "threads": _threads()}
    if command == "prepare":
        _reset_peak()
        started = time.perf_counter()
        works[name] = kinds[request["kind"]](**request["settings"])
        return {"seconds": time.perf_counter() - started}
    if command == "run":
        gc.collect()  # before the clock starts
        started = time.perf_counter()
        facts = works[name].run() or {}
        return {"seconds": time.perf_counter() - started, "peak_megabytes": peak_megabytes(), **facts}
    if command == "predict":
        started = time.perf_counter()
        labels = list(map(str, works[name].predict(request["texts"])))  # type: ignore[attr-defined]
        return {"seconds": time.perf_counter() - started, "labels": labels}
    works.pop(name, None)
    gc.collect()
    return {}


def peak_megabytes() -> float:
    """The peak memory of the process since work was last prepared."""
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _reset_peak() -> None:
    with suppress(OSError):  # not on Linux: the peak is then that since the start of the process
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def _limit_memory() -> None:
    import resource

    with suppress(OSError, ValueError):  # not supported by the system
        most = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * SHARE_OF_MEMORY)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _versions(packages: Sequence[str]) -> dict[str, str]:
    known = {}
    for package in packages:
        try:
            known[package] = version(package)
        except PackageNotFoundError:
            continue
    return known


def _threads() -> int | None:
    torch = sys.modules.get("torch")
    return None if torch is None else int(torch.get_num_threads())


def _write(answers: TextIO, answer: dict[str, Any]) -> None:
    print(json.dumps(answer), file=answers, flush=True)
