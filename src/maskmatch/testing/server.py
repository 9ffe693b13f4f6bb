"""A real server process on loopback."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time

STARTED = re.compile(r"serving on (http://\S+)")
PATIENCE = 90.0
"""How many seconds a server may take to start or stop."""


class ServerProcess:
    """A server in a process of its own, from its start to :meth:`stop` or the end of a ``with`` block.

    Args:
        *arguments: What the command is given; ``--port 0`` takes any free port.
        **environment: Further environment variables.

    Attributes:
        command: The command of ``maskmatch`` that it runs.
        url: Its address.
        log: The lines that it has written to standard error.
    """

    command = "serve"

    def __init__(self, *arguments: str, **environment: str) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue()
        self.log: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "maskmatch", self.command, *arguments],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", **environment},
        )
        threading.Thread(target=self._read, daemon=True).start()
        self.url = self._wait_for_address()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line.rstrip())
            self._lines.put(line)
        self._lines.put(None)

    def _wait_for_address(self) -> str:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            line = self._lines.get(timeout=PATIENCE)
            found = None if line is None else STARTED.search(line)
            if found is not None:
                return found[1]
            if line is None:
                break
        self.process.kill()
        raise AssertionError(f"the server did not start: {self.log}")

    def stop(self) -> int:
        """Ask it to stop, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE)

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=PATIENCE)
