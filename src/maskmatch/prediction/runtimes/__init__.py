"""Runtimes: what computes input vectors from padded batches.

A runtime for exports is a file here, with a class that takes the path of the graph and computes the vectors of a batch
(:class:`maskmatch.prediction.pipeline.Runtime`), and a row in the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from maskmatch.errors import MaskMatchError, did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from maskmatch.prediction.pipeline import Runtime

GRAPH_FILE = "model.onnx"


@dataclass(frozen=True)
class RuntimeRow:
    """A row of the table of runtimes: where its class is, and the file of an export that it reads."""

    module: str
    name: str
    file: str = GRAPH_FILE


EXPORT_RUNTIMES = {"onnx": RuntimeRow("maskmatch.prediction.runtimes.onnx", "OnnxRuntime")}


def runtime_row(kind: str) -> RuntimeRow:
    """A row of the table by its name."""
    if kind not in EXPORT_RUNTIMES:
        known = ", ".join(EXPORT_RUNTIMES)
        raise MaskMatchError(
            f"There is no runtime {kind!r}; choose one of {known}.{did_you_mean(kind, EXPORT_RUNTIMES)}"
        )
    return EXPORT_RUNTIMES[kind]


def load_runtime(kind: str, folder: Path) -> Runtime:
    """The runtime of an export's folder."""
    row = runtime_row(kind)
    runtime: Runtime = getattr(import_module(row.module), row.name)(folder / row.file)
    return runtime
