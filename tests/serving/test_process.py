"""The server as a process: signals, workers, slow clients, settings."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest

from maskmatch.serving import Client, ServerError
from server_tools import ServerProcess, metric
from toy_data import TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Tiny = Callable[[str], Path]

ALLOWED = "access-control-allow-origin"


class TestProcess:
    def test_sigterm_drains(self, exported: Path) -> None:
        answers: list[Any] = []
        with ServerProcess(str(exported), "--port", "0") as server:
            texts = [f"{text} {number}" for number in range(30) for text in TEXTS]

            def ask() -> None:
                answers.append(httpx.post(f"{server.url}/v1/classify", json={"texts": texts}, timeout=60))

            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            _wait_until_accepted(server, len(threads))
            assert server.stop() == 0
            for thread in threads:
                thread.join()
        assert [answer.status_code for answer in answers] == [200] * 4
        assert all(len(answer.json()["results"]) == len(texts) for answer in answers)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.url}/health")

    def test_a_client_that_sends_slowly_holds_up_nobody(self, exported: Path) -> None:
        with ServerProcess(str(exported), "--port", "0", "--timeout", "2") as server:
            address = urlsplit(server.url)
            slow = [socket.create_connection((address.hostname or "", address.port or 0)) for _ in range(20)]
            for each in slow:
                each.sendall(b"POST /v1/classify HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
            with Client(server.url) as client:
                assert client.predict(TEXTS[:1])
            slow[0].settimeout(20)
            assert b"408" in slow[0].recv(4096)
            for each in slow:
                each.close()
            with Client(server.url) as client:
                assert client.predict(TEXTS[:1])

    def test_a_killed_worker_is_replaced(self, exported: Path) -> None:
        free = socket.create_server(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        with ServerProcess(str(exported), "--port", str(port), "--workers", "2") as server:
            with Client(server.url) as client:
                _wait_until_ready(server)
                expected = client.predict(TEXTS)
                children = _children(server.process.pid)
                os.kill(children[-1], signal.SIGKILL)
                for _ in range(40):
                    try:
                        assert client.predict(TEXTS) == expected
                    except ServerError as error:
                        if error.status:  # else the connection of the killed worker
                            raise
                    time.sleep(0.1)
            assert server.stop() == 0

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["nowhere"], "nowhere"),
            (["--task", "unknown"], "no task"),
            (["--port", "70000"], "port"),
            (["--token-file", "nowhere"], "token file"),
        ],
    )
    def test_wrong_usage_gets_a_sentence(self, arguments: list[str], sentence: str) -> None:
        with pytest.raises(AssertionError, match="did not start") as caught:
            ServerProcess(*arguments)
        assert sentence in str(caught.value)
        assert "Traceback" not in str(caught.value)

    def test_settings_by_environment(self, exported: Path) -> None:
        with ServerProcess(
            str(exported), "--log-format", "json", MASKMATCH_SERVE_PORT="0", MASKMATCH_SERVE_MAX_TEXTS="1"
        ) as server:
            assert httpx.post(f"{server.url}/v1/classify", json={"texts": ["a", "b"]}).status_code == 413
            assert server.stop() == 0
        logged = json.loads(next(line for line in server.log if line.startswith("{")))
        assert (logged["status"], logged["endpoint"]) == (413, "/v1/classify")


def _children(pid: int) -> list[int]:
    """The worker processes of a supervisor; the first child of multiprocessing tracks resources."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                command = file.read()
        except OSError:
            continue
        if parent == pid and b"spawn_main" in command:
            found.append(int(entry))
    return sorted(found)


def _wait_until_accepted(server: ServerProcess, requests: int) -> None:
    """Wait until so many requests are in progress, besides the one that asks; or until they were all answered."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        text = httpx.get(f"{server.url}/metrics").text
        if metric(text, "maskmatch_requests_in_progress") > requests:
            return
        time.sleep(0.01)


def _wait_until_ready(server: ServerProcess) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{server.url}/ready").status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise AssertionError(f"not ready: {server.log}")


def test_the_embedded_default_needs_labels_in_each_request(tmp_path: Path) -> None:
    """The first start makes an int8 export of the default; the second one finds it."""
    for _ in range(2):
        with ServerProcess("--port", "0", "--task", "intent", MASKMATCH_CACHE=str(tmp_path)) as server:
            with Client(server.url) as client:
                with pytest.raises(ServerError, match="no labels"):
                    client.predict(["My card is gone!"])
                labels = ["refund not received", "card swallowed", "exchange rate"]
                assert client.predict(["The machine kept my card."], labels) == ["card swallowed"]
                with pytest.raises(ServerError, match="write token"):
                    client.edit_labels("*", add=["parcel"])
            assert server.stop() == 0
    assert len([folder for folder in tmp_path.iterdir() if folder.is_dir() and folder.name.startswith("default-")]) == 1


def test_origins_that_are_listed_may_read(exported: Path) -> None:
    with ServerProcess(str(exported), "--port", "0", "--cors", "https://a.example, https://b.example") as server:
        for origin, allowed in (("https://b.example", "https://b.example"), ("https://c.example", None)):
            asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
            assert httpx.options(f"{server.url}/v1/classify", headers=asked).headers.get(ALLOWED) == allowed
            answer = httpx.post(f"{server.url}/v1/classify", json={"texts": TEXTS[:1]}, headers={"Origin": origin})
            assert answer.status_code == 200
            assert answer.headers.get(ALLOWED) == allowed


@pytest.mark.parametrize("form", ["json", "human"])
def test_texts_are_logged_if_asked(exported: Path, form: str) -> None:
    with ServerProcess(str(exported), "--port", "0", "--log-texts", "--log-format", form) as server:
        httpx.post(f"{server.url}/v1/classify", json={"texts": ["my card\nstatus=500"]})
        assert server.stop() == 0
        lines = [line for line in server.log if "my card" in line]
    assert len(lines) == 1
    assert "status=500" in lines[0]  # in the same line: no text can write a line of its own
    if form == "json":
        assert json.loads(lines[0])["content"] == ["my card\nstatus=500"]
