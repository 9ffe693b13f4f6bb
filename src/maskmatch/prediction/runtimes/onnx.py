"""The ONNX runtime: an exported graph computes input vectors, without torch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from maskmatch.prompts.batches import PaddedBatch

INPUTS = ("input_ids", "attention_mask", "mask_positions")
OUTPUT = "vectors"
INSTALL = 'install it with pip install "maskmatch[onnx]"'


_inherited: list[Any] = []
"""Sessions of a parent process: to free one would wait for threads that a forked process does not have."""


def _identity(path: Path) -> tuple[int, ...] | None:
    """What changes if a file is replaced or written; None if it is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


class OnnxRuntime:
    """Computes input vectors with onnxruntime.

    Args:
        path: The graph: token ids, attention mask and mask positions → input vectors.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()  # the process may change its folder
        self._file = _identity(self._path)
        self._start()

    def _start(self) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise MaskMatchError(f"An export needs onnxruntime, which is not installed; {INSTALL}.") from error
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        threads = os.environ.get("OMP_NUM_THREADS", "")  # as for torch, which reads it by itself
        options.intra_op_num_threads = int(threads) if threads.isdecimal() else 0
        try:
            self._session: Any = onnxruntime.InferenceSession(
                os.fspath(self._path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # whatever a damaged file makes it raise
            reason = str(error).strip().partition("\n")[0]
            raise MaskMatchError(f"{self._path} is damaged and cannot be read: {reason}") from error
        self._inputs = [each.name for each in self._session.get_inputs()]  # a read-out may not use all of them
        self._process = os.getpid()

    def __call__(self, batch: PaddedBatch) -> NDArray[np.float32]:
        """The vectors of texts, all of whose prompts are in the batch: (texts, masks, dim)."""
        if self._process != os.getpid():  # a forked process has none of the session's threads
            if _identity(self._path) != self._file:
                raise MaskMatchError(f"{self._path} was replaced after it was loaded; load the export again.")
            _inherited.append(self._session)
            self._start()
        arrays = {name: getattr(batch, name) for name in self._inputs}
        return np.asarray(self._session.run([OUTPUT], arrays)[0], dtype=np.float32)
