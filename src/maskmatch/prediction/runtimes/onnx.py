"""The ONNX runtime: an exported graph computes input vectors, without torch."""

from __future__ import annotations

import mmap
import os
from itertools import chain, islice
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.files import Lock, exclusive
from maskmatch.prediction.overlap import mapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from maskmatch.prompts.batches import PaddedBatch

INPUTS = ("input_ids", "attention_mask", "mask_positions")
OUTPUT = "vectors"
INSTALL = 'install it with pip install "maskmatch[onnx]"'

EXTERNAL_DATA = b"\x0a\x08location\x12"
"""How a graph names a file with weights: the key "location" of a map, in the format of protobuf."""

MOST_WORKERS = 8
"""How many batches are computed at once at most: each of them holds its activations."""

MANY_BATCHES = 8
"""From how many batches on a second session is worth its start, which takes about as long as one of them."""


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

    One batch is computed by all threads. Of many batches each is computed by one thread, as many at once as there are
    threads: that is faster, because threads need not wait for each other after every operator.

    Args:
        path: The graph: token ids, attention mask and mask positions → input vectors.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()  # the process may change its folder
        self._file = _identity(self._path)
        self.lock = Lock()  # one thread at a time starts a session
        self._sessions: dict[int, Any] = {}  # by their number of threads; 0: all
        self._process = os.getpid()
        self._replaced = False
        self._starting = False  # whether a thread starts the session with one thread, or has tried to
        session = self._session(0)
        self._inputs = [each.name for each in session.get_inputs()]  # a read-out may not use all of them

    @property
    def at_once(self) -> int:
        """How many batches are best computed at once, each by one thread."""
        return min(_threads(), MOST_WORKERS)

    def __call__(self, batch: PaddedBatch, *, alone: bool = True) -> NDArray[np.float32]:
        """The vectors of texts, all of whose prompts are in the batch: (texts, masks, dim).

        Args:
            batch: The batch.
            alone: Whether no other batch is computed meanwhile, so that all threads work on this one.
        """
        session = None if alone or self.at_once == 1 else self._single_if_started()
        return self._run(self._session(0) if session is None else session, batch)

    def map(self, batches: Iterable[PaddedBatch]) -> Iterator[NDArray[np.float32]]:
        """The vectors of each batch, in order."""
        batches = iter(batches)
        first = list(islice(batches, MANY_BATCHES))
        if len(first) < MANY_BATCHES or self.at_once == 1 or self._single() is None:
            return map(self, chain(first, batches))
        return mapped(lambda batch: self(batch, alone=False), chain(first, batches), self.at_once)

    def _single_if_started(self) -> Any:
        """The session with one thread. If there is none yet, None: no batch waits while it is started."""
        if self._process != os.getpid():
            return None
        if 1 not in self._sessions and not self._starting:
            self._starting = True
            # No daemon, which a thread of the server would make it: a process that ends meanwhile would be aborted.
            Thread(target=self._single, name="maskmatch session", daemon=False).start()
        return self._sessions.get(1)

    def _single(self) -> Any:
        """The session with one thread; None if it cannot be started any more, because the file was replaced."""
        if self._replaced:
            return None
        try:
            return self._session(1)
        except MaskMatchError:
            self._replaced = True  # a graph is not read again for every batch
            return None

    def _run(self, session: Any, batch: PaddedBatch) -> NDArray[np.float32]:
        arrays = {name: getattr(batch, name) for name in self._inputs}
        return np.asarray(session.run([OUTPUT], arrays)[0], dtype=np.float32)

    def _session(self, threads: int) -> Any:
        """The session with this number of threads, started when it is first needed."""
        found = self._sessions.get(threads) if self._process == os.getpid() else None
        return self._started(threads) if found is None else found

    @exclusive
    def _started(self, threads: int) -> Any:
        if self._process != os.getpid():  # a forked process has none of the session's threads
            _inherited.extend(self._sessions.values())
            self._sessions, self._starting, self._process = {}, False, os.getpid()
        if threads not in self._sessions:
            started = _start(self._path, threads)
            if _identity(self._path) != self._file:  # after it was read: it may be replaced at any moment
                raise MaskMatchError(f"{self._path} was replaced after it was loaded; load the export again.")
            self._sessions[threads] = started
        return self._sessions[threads]


def _threads() -> int:
    """How many threads there are: OMP_NUM_THREADS, as for torch, or the processors of this process."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    affinity = getattr(os, "sched_getaffinity", None)
    return max(1, len(affinity(0)) if affinity is not None else os.cpu_count() or 1)


def _start(path: Path, threads: int) -> Any:
    """A session with this number of threads; 0: all."""
    try:
        import onnxruntime
    except ImportError as error:
        raise MaskMatchError(f"An export needs onnxruntime, which is not installed; {INSTALL}.") from error
    _check_self_contained(path)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    limited = "OMP_NUM_THREADS" in os.environ or _threads() < (os.cpu_count() or 1)
    options.intra_op_num_threads = threads or (_threads() if limited else 0)  # 0: one per physical core
    try:
        return onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # whatever a damaged file makes it raise
        reason = str(error).strip().partition("\n")[0]
        raise MaskMatchError(f"{path} is damaged and cannot be read: {reason}") from error


def _check_self_contained(path: Path) -> None:
    """Raise if a graph names files beside it: exports never do, and old versions of onnxruntime would read any file."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            outside = content.find(EXTERNAL_DATA) >= 0
    except (OSError, ValueError) as error:  # an empty file cannot be mapped
        raise MaskMatchError(f"{path} is damaged and cannot be read: {error}") from error
    if outside:
        raise MaskMatchError(f"{path} keeps weights in other files, which no export does; it is not loaded.")
