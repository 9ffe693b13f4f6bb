"""Locks of folders: among processes, threads and forks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from maskmatch import MaskMatchError
from maskmatch.files import locked, write_folder


def save(folder: Path) -> None:
    with write_folder(folder) as scratch:
        (scratch / "weights").write_text("new")


class TestLocks:
    HOLD = (
        "import sys, time\nfrom pathlib import Path\nfrom maskmatch.files import locked\n"
        "with locked(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(float(sys.argv[2]))\n"
    )

    def hold(self, folder: Path, seconds: float) -> subprocess.Popen[str]:
        """Another process that holds the lock."""
        process = subprocess.Popen(
            [sys.executable, "-c", self.HOLD, str(folder), str(seconds)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    def test_another_process_waits_and_leaves_nothing_behind(self, tmp_path: Path) -> None:
        process = self.hold(tmp_path / "model", 1.0)
        started = time.monotonic()
        save(tmp_path / "model")
        assert time.monotonic() - started > 0.5
        assert process.wait(10) == 0
        assert [path.name for path in tmp_path.iterdir()] == ["model"]

    def test_a_lock_of_a_killed_process_is_free(self, tmp_path: Path) -> None:
        process = self.hold(tmp_path / "model", 60)
        process.kill()
        process.wait(10)
        save(tmp_path / "model")

    def test_waiting_ends(self, tmp_path: Path) -> None:
        process = self.hold(tmp_path / "model", 60)
        try:
            with (
                pytest.raises(MaskMatchError, match="is being written by another process"),
                locked(tmp_path / "model", seconds=0.2),
            ):
                pass
        finally:
            process.kill()
            process.wait(10)

    def test_a_thread_may_ask_twice_and_other_threads_wait(self, tmp_path: Path) -> None:
        order: list[int] = []

        def work(number: int) -> None:
            with locked(tmp_path / "model"), locked(tmp_path / "model"):
                order.append(number)
                time.sleep(0.01)
                order.append(number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert order[::2] == order[1::2]

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
    def test_a_forked_process_does_not_hold_it(self, tmp_path: Path) -> None:
        with locked(tmp_path / "model"):
            child = os.fork()
            if child == 0:
                time.sleep(5)
                os._exit(0)
        try:
            save(tmp_path / "model")  # would wait for the child
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)

    @pytest.mark.skipif(sys.platform == "win32", reason="there is no flock")
    def test_a_file_system_without_locks_still_saves(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        import fcntl

        def fail(*_: object) -> None:
            raise OSError(95, "Operation not supported")

        monkeypatch.setattr(fcntl, "flock", fail)
        monkeypatch.setattr("maskmatch.files.locks._warned", False)
        save(tmp_path / "model")
        assert "has no locks" in caplog.text

    def test_a_lock_file_that_cannot_be_removed_harms_nobody(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        unlink = Path.unlink

        def fail(self: Path, **options: bool) -> None:
            if self.name.endswith(".lock"):
                raise PermissionError(1, "Operation not permitted")
            unlink(self, **options)

        monkeypatch.setattr(Path, "unlink", fail)
        save(tmp_path / "model")
        save(tmp_path / "model")

    @pytest.mark.parametrize("folder", ["/", "a\0b"])
    def test_what_cannot_be_a_folder(self, folder: str) -> None:
        with pytest.raises(MaskMatchError, match="cannot be"):
            save(Path(folder))
