"""Where figures come from: the command, the versions, the machine."""

from __future__ import annotations

import os
import platform
import shlex
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGES = ("maskmatch", "torch", "transformers", "numpy", "scikit-learn")


def versions() -> dict[str, str]:
    """The versions of Python and of the libraries that results depend on."""
    known = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            known[package] = version(package)
        except PackageNotFoundError:  # run from a checkout that was never installed
            continue
    return known


def machine() -> dict[str, Any]:
    """The processor, its cores, and the number of threads."""
    import torch

    facts: dict[str, Any] = {"cpu": _cpu(), "cores": os.cpu_count(), "threads": torch.get_num_threads()}
    if torch.cuda.is_available():
        facts["gpu"] = torch.cuda.get_device_name()
    return facts


def command_line(arguments: Sequence[str]) -> str:
    """The command in a form that works on another machine: the folder of the datasets is a variable.

    Example:
        >>> command_line(["compare", "--data", "/home/me/data", "-o", "out"])
        'maskmatch compare --data "$MASKMATCH_DATA" -o out'
    """
    words = [shlex.quote(word) for word in arguments]
    for place, word in enumerate(arguments):
        if word == "--data" and place + 1 < len(words) and Path(arguments[place + 1]).is_absolute():
            words[place + 1] = '"$MASKMATCH_DATA"'
    return " ".join(["maskmatch", *words])


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
