"""The parent's side: processes of peers that stay alive, so that their runs can alternate."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from collections import Counter
from queue import Empty, Queue
from typing import IO, TYPE_CHECKING, Any

from maskmatch_lab.benchmarks.peers.environments import python_of
from maskmatch_lab.benchmarks.peers.table import PEERS
from maskmatch_lab.paths import LAB, ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from maskmatch_lab.benchmarks.peers.table import Peer

LONGEST = 7200.0
"""The time in seconds after which a process without an answer counts as lost."""


class PeerError(Exception):
    """A request to a peer failed."""


class PeerDiedError(PeerError):
    """The process of a peer has ended, and its prepared work is lost."""


class PeerProcess:
    """A process that runs a peer.

    Args:
        command: The command that starts it.
        name: Its name in errors.
        log: The file for its standard error.
    """

    def __init__(self, command: Sequence[str], name: str, log: Path) -> None:
        self._name, self._log = name, log
        log.parent.mkdir(parents=True, exist_ok=True)
        self._scratch = tempfile.TemporaryDirectory()  # some libraries write into the working directory
        paths = [str(LAB / "src"), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                encoding="utf-8",
                cwd=self._scratch.name,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1"},
            )
        assert self._process.stdout is not None
        self._answers: Queue[str | None] = Queue()
        threading.Thread(target=_collect, args=(self._process.stdout, self._answers), daemon=True).start()

    def ask(self, command: str, longest: float = LONGEST, **arguments: Any) -> dict[str, Any]:
        """Send a request and return the answer.

        Args:
            command: The command.
            longest: The time to wait in seconds; after that the process is killed.
            arguments: The arguments of the command.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=longest)
        except (OSError, Empty) as error:
            line = None
            if isinstance(error, Empty):
                self.close()
                raise PeerDiedError(f"{self._name} took longer than {longest:g} s") from error
        if line is None:
            raise PeerDiedError(f"{self._name} ended: {self._last_line()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerError(f"{self._name}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._scratch.cleanup()

    def _last_line(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else "no output"


class Crew:
    """The processes of all peers, each started when it is first needed, and restarted if it died.

    Args:
        environments: The folder of the environments.
        logs: The folder for the standard error of the processes.
    """

    def __init__(self, environments: Path, logs: Path) -> None:
        self._environments, self._logs = environments, logs
        self._living: dict[tuple[str, str], PeerProcess] = {}
        self.lives: Counter[tuple[str, str]] = Counter()
        """The number of starts and deaths of each process: work that was prepared before the last one is lost."""

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, name: str) -> PeerProcess:
        """A new process of a peer; the caller has to close it."""
        peer = PEERS[name]
        return PeerProcess(self.command(peer), name, self._logs / f"{peer.module}.log")

    def command(self, peer: Peer) -> list[str]:
        """The command that starts a peer."""
        return [str(python_of(peer, self._environments)), "-m", f"maskmatch_lab.benchmarks.peers.{peer.module}"]

    def ask(self, peer: str, command: str, *, room: str = "", **arguments: Any) -> dict[str, Any]:
        """Send a request to the running process of a peer.

        Args:
            peer: The peer.
            command: The command.
            room: The name of the process; a peer may have several.
            arguments: The arguments of the command.
        """
        place = peer, room
        if place not in self._living:
            self._living[place] = self.start(peer)
            self.lives[place] += 1
        try:
            return self._living[place].ask(command, **arguments)
        except PeerDiedError:
            self._living.pop(place).close()
            self.lives[place] += 1
            raise

    def close(self) -> None:
        """End all processes."""
        while self._living:
            self._living.popitem()[1].close()


def _collect(output: IO[str], answers: Queue[str | None]) -> None:
    for line in output:
        answers.put(line)
    answers.put(None)
