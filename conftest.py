"""Tests run without a network, beside other work."""

import gc
import os
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("MASKMATCH_CACHE", str(Path(__file__).parent / ".cache" / "tests"))  # not the user's own
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

LAB_TESTS = Path(__file__).parent / "lab" / "tests"  # a source distribution has none

pytest_plugins = ["shared_fixtures", "server_fixtures", *(["lab_fixtures"] if LAB_TESTS.exists() else [])]

collect_ignore_glob = ["lab/src/maskmatch_lab/benchmarks/peers/*"]
"""Peers are imported in environments of their own, where their libraries are installed."""


def pytest_collection_finish() -> None:
    """Let the garbage collector skip what was imported and collected: each training collects, which took seconds."""
    gc.collect()
    gc.freeze()
