"""The server under load: right answers or refusals, whatever clients send and whichever process dies."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

from maskmatch import ExportedMatcher
from maskmatch.testing.server import ServerProcess
from maskmatch_lab.torture.material import CLOSE, LABELS, TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from maskmatch_lab.torture.campaign import Tally
    from maskmatch_lab.torture.material import Material

CLIENTS = 16
BROKEN: tuple[dict[str, Any], ...] = (
    {"top_k": 0},
    {"abstain": 2},
    {"threshold": 0.5},
    {"unknown": 1},
    {"labels": ["one"]},
    {"labels": ["same", "same"]},
    {"model": "other"},
    {"texts": 3},
)
PATIENCE = 30.0
"""How many seconds it may take until a killed worker is replaced."""

LATE = 10.0
"""How many seconds a request may take beside slow clients."""

OVERLOAD_SECONDS, MOST_GROWTH_MB = 60.0, 40.0
READ, WRITE = {"Authorization": "Bearer reader"}, {"Authorization": "Bearer writer"}
Answer = dict[str, Any]


def traffic(material: Material, tally: Tally) -> None:
    """Good and broken requests of many clients; every answer is that of predict for the same texts."""
    matcher = ExportedMatcher.from_pretrained(material.export, verbose=False)
    texts = _texts(200)
    expected = dict(zip(texts, matcher.top_k(texts, 1), strict=True))

    def ask(client: httpx.Client, rng: random.Random) -> tuple[str, str | None]:
        some = rng.choices(texts, k=rng.choice([1, 1, 1, 2, 5, 20]))
        if rng.random() < 0.2:
            answer = client.post("/v1/classify", json={"texts": some, **rng.choice(BROKEN)})
            return "refused", None if answer.status_code in (404, 422) else f"{answer.status_code}: {answer.text}"
        blank = rng.random() < 0.2
        given = [*some, "  "] if blank else some
        answer = client.post("/v1/classify", json={"texts": given, "top_k": 1})
        if answer.status_code != 200:
            return "answered", f"{answer.status_code}: {answer.text}"
        results = answer.json()["results"]
        if blank and "blank" not in results.pop().get("error", ""):
            return "answered", "a blank text was answered"
        return "answered", _difference(some, results, expected)

    with running_server(material, material.room("traffic")) as server:
        _with_clients(server, tally, ask)


def edits(material: Material, tally: Tally) -> None:
    """Labels are edited while others classify: every answer is that of the old or of the new labels."""
    texts = _texts(40)
    known = []
    for labels in (LABELS, [*LABELS, "parcel", "station"]):
        matcher = ExportedMatcher.from_pretrained(material.export, verbose=False)
        if len(labels) > len(LABELS):
            matcher.add_labels(labels[len(LABELS) :])
        known.append(dict(zip(texts, matcher.top_k(texts, 1), strict=True)))
    done = threading.Event()

    def ask(client: httpx.Client, rng: random.Random) -> tuple[str, str | None]:
        some = rng.choices(texts, k=3)
        answer = client.post("/v1/classify", json={"texts": some, "top_k": 1})
        if answer.status_code != 200:
            return "answered", f"{answer.status_code}: {answer.text}"
        wrong = [_difference(some, answer.json()["results"], expected) for expected in known]
        return "old or new labels", None if None in wrong else str(wrong)

    with running_server(material, material.room("edits")) as server:

        def edit() -> None:
            with httpx.Client(base_url=server.url, headers={**WRITE, "If-Match": "*"}, timeout=60) as client:
                while not done.is_set():
                    client.patch("/v1/labels", json={"add": ["parcel", "station"]}).raise_for_status()
                    client.patch("/v1/labels", json={"remove": ["parcel", "station"]}).raise_for_status()
                    tally.figures["edits"] = tally.figures.get("edits", 0) + 2

        with ThreadPoolExecutor(1) as pool:
            editing = pool.submit(edit)
            try:
                _with_clients(server, tally, ask)
            finally:
                done.set()
            with tally.guarded("edits"):
                editing.result()


def overload(material: Material, tally: Tally) -> None:
    """More texts than it can classify: each request is answered rightly or refused at once, and memory stays flat."""
    texts = _texts(200)
    matcher = ExportedMatcher.from_pretrained(material.export, verbose=False)
    expected = dict(zip(texts, matcher.top_k(texts, 1), strict=True))
    seconds = OVERLOAD_SECONDS * min(1.0, tally.wanted / 20_000)
    lock = threading.Lock()

    with running_server(material, material.room("overload"), "--queue", "64") as server:

        def ask(seed: int) -> None:
            rng, until = random.Random(seed), time.monotonic() + seconds
            with httpx.Client(base_url=server.url, headers=READ, timeout=60) as client:
                while time.monotonic() < until:
                    some = rng.choices(texts, k=20)
                    answer = client.post("/v1/classify", json={"texts": some, "top_k": 1})
                    outcome, wrong = "answered", None
                    if answer.status_code == 503:
                        outcome, wrong = "refused", None if "retry-after" in answer.headers else "no Retry-After"
                    elif answer.status_code != 200:
                        wrong = f"{answer.status_code}: {answer.text}"
                    else:
                        wrong = _difference(some, answer.json()["results"], expected)
                    with lock:
                        tally.tries += 1
                        tally.ended(outcome, unless=wrong)

        with ThreadPoolExecutor(CLIENTS) as pool:
            first = [pool.submit(ask, number) for number in range(CLIENTS)]
            time.sleep(seconds / 3)  # what is cached is there by now
            before = _megabytes(server.process.pid)
            for each in first:
                each.result()
        after = _megabytes(server.process.pid)
        tally.figures.update(seconds=round(seconds, 1), megabytes_before=before, megabytes_after=after)
        if after - before > MOST_GROWTH_MB:
            tally.fail(f"the server has grown from {before} to {after} MB")


def label_sets(material: Material, tally: Tally) -> None:
    """Each request brings labels of its own: the cache is bounded, so memory stays flat."""

    def ask(client: httpx.Client, rng: random.Random) -> tuple[str, str | None]:
        names = [f"{word} {rng.randrange(10**9)}" for word in ("refund", "card", "rate")]
        answer = client.post("/v1/classify", json={"texts": TEXTS[:1], "labels": names, "top_k": 3})
        if answer.status_code == 503:
            return "refused", None
        found = {each["label"] for each in answer.json()["results"][0]["top_k"]} if answer.status_code == 200 else set()
        return "answered", None if found == set(names) else f"{answer.status_code}: {answer.text}"

    with running_server(material, material.room("label-sets"), "--label-sets", "32") as server:
        sizes: list[float] = []
        for _ in range(2):
            _with_clients(server, tally, ask, tally.wanted // 2, clients=4)
            sizes.append(_megabytes(server.process.pid))
        tally.figures.update(megabytes_before=sizes[0], megabytes_after=sizes[1])
        if sizes[1] - sizes[0] > MOST_GROWTH_MB:
            tally.fail(f"the server has grown from {sizes[0]} to {sizes[1]} MB")


def killed_workers(material: Material, tally: Tally) -> None:
    """One of two workers is killed under load: requests are answered rightly or lose their connection."""
    matcher = ExportedMatcher.from_pretrained(material.export, verbose=False)
    expected = dict(zip(TEXTS, matcher.top_k(TEXTS, 1), strict=True))
    for _ in tally.trials():
        with running_server(material, material.room("killed"), "--workers", "2", "--port", str(_free_port())) as server:
            _until_ready(server)
            stop = threading.Event()
            with ThreadPoolExecutor(4) as pool:
                asking = [pool.submit(_ask_until, stop, server, expected) for _ in range(4)]
                time.sleep(0.3)
                os.kill(_workers(server.process.pid)[-1], signal.SIGKILL)
                time.sleep(1.0)
                stop.set()
                found = [each.result() for each in asking]
            deadline = time.monotonic() + PATIENCE
            while len(_workers(server.process.pid)) < 2 and time.monotonic() < deadline:
                time.sleep(0.1)
            replaced = len(_workers(server.process.pid)) == 2
            wrong = [each for difference, _ in found for each in difference]
            lost = sum(lost for _, lost in found)
            tally.figures["lost connections"] = tally.figures.get("lost connections", 0) + lost
            tally.ended("replaced", unless=wrong[0] if wrong else None if replaced else "it was not replaced")
            server.stop()


def _ask_until(
    stop: threading.Event, server: ServerProcess, expected: dict[str, list[tuple[Any, float]]]
) -> tuple[list[str], int]:
    """Ask again and again: what is wrong with the answers, and how many connections were lost."""
    wrong, lost = [], 0
    while not stop.is_set():
        try:
            answer = httpx.post(
                f"{server.url}/v1/classify", json={"texts": TEXTS, "top_k": 1}, headers=READ, timeout=60
            )
        except httpx.TransportError:
            lost += 1
            continue
        difference = answer.text if answer.status_code != 200 else None
        difference = difference or _difference(TEXTS, answer.json()["results"], expected)
        wrong += [] if difference is None else [difference]
    return wrong, lost


def stopped(material: Material, tally: Tally) -> None:
    """SIGTERM under load: what was accepted is answered, new connections are refused, and it exits with 0."""
    for rng in tally.trials():
        with running_server(material, material.room("stopped")) as server:
            with ThreadPoolExecutor(8) as pool:
                asking = [pool.submit(_ask_until_it_stops, server) for _ in range(8)]
                time.sleep(0.2 + rng.random() / 2)
                code = server.stop()
                found = [status for each in asking for status in each.result()]
            time.sleep(0.1)  # until its last lines are read
            logged = [line for line in server.log if "endpoint=/v1/classify" in line]
            cut = [line for line in logged if not any(f"status={status} " in line for status in (200, 503))]
            tally.figures["answered"] = tally.figures.get("answered", 0) + found.count(200)
            reason = f"exit code {code}" if code else cut[0] if cut else None
            if reason is None and len(logged) != len(found):
                reason = f"{len(logged)} requests were accepted, {len(found)} were answered"
            tally.ended("stopped", unless=reason)


def _ask_until_it_stops(server: ServerProcess) -> list[int]:
    """Ask again and again: the statuses of the answers. A connection may be closed before a request is accepted."""
    statuses: list[int] = []
    with httpx.Client(base_url=server.url, headers=READ, timeout=60) as client:
        while True:
            try:
                statuses.append(client.post("/v1/classify", json={"texts": _texts(50)}).status_code)
            except httpx.TransportError:
                return statuses


def slow_clients(material: Material, tally: Tally) -> None:
    """Clients that send slowly, or never read: others are answered in the meantime."""
    with running_server(material, material.room("slow"), "--timeout", "5") as server:
        address = urlsplit(server.url)
        head = "POST /v1/classify HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer reader\r\n"
        head += "Content-Type: application/json\r\nContent-Length: "
        slow: list[socket.socket] = []
        for rng in tally.trials():
            each = socket.create_connection((address.hostname or "", address.port or 0))
            if rng.random() < 0.5:
                each.sendall(f"{head}1000\r\n\r\n{{".encode())
            else:  # it asks for much, and never reads
                each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                body = b'{"texts":[' + b",".join([b'"refund"'] * 500) + b'],"top_k":3}'
                each.sendall(f"{head}{len(body)}\r\n\r\n".encode() + body)
            slow.append(each)
            started = time.monotonic()
            answer = httpx.post(f"{server.url}/v1/classify", json={"texts": TEXTS}, headers=READ, timeout=60)
            late = time.monotonic() - started > LATE
            refused = answer.status_code == 503 and "retry-after" in answer.headers  # they have filled the queue
            wrong = None if answer.status_code == 200 or refused else answer.text
            tally.ended("refused" if refused else "answered", unless="late" if late else wrong)
        for each in slow:
            each.close()
        if server.stop():
            tally.fail("it did not exit with 0")


@contextmanager
def running_server(material: Material, room: Path, *options: str) -> Iterator[ServerProcess]:
    """A server of an export of its own, with tokens."""
    folder = shutil.copytree(material.export, room / "bank")
    (room / "tokens").write_text("reader\nwrite writer\n", encoding="utf-8")
    port = () if "--port" in options else ("--port", "0")
    with ServerProcess(str(folder), *port, "--token-file", str(room / "tokens"), *options) as server:
        yield server


def _with_clients(
    server: ServerProcess,
    tally: Tally,
    ask: Callable[[httpx.Client, random.Random], tuple[str, str | None]],
    tries: int | None = None,
    clients: int = CLIENTS,
) -> None:
    """Let several clients make the tries of a part, each with a connection of its own."""
    trials, lock = tally.trials(tries), threading.Lock()

    def work() -> None:
        with httpx.Client(base_url=server.url, headers=READ, timeout=60) as client:
            while True:
                with lock:
                    rng = next(trials, None)
                if rng is None:
                    return
                try:
                    outcome, wrong = ask(client, rng)
                except httpx.HTTPError as error:
                    outcome, wrong = "failed", f"{type(error).__name__}: {error}"
                with lock:
                    tally.ended(outcome, unless=wrong)

    with ThreadPoolExecutor(clients) as pool:
        for each in [pool.submit(work) for _ in range(clients)]:
            each.result()


def _difference(
    texts: Sequence[str], results: Sequence[Answer], expected: dict[str, list[tuple[Any, float]]]
) -> str | None:
    """What is wrong with answers; None: nothing."""
    if len(results) != len(texts):
        return f"{len(results)} answers for {len(texts)} texts"
    for text, answer in zip(texts, results, strict=True):
        (label, probability), *_ = expected[text]
        if answer.get("label") != label or abs(answer["probability"] - probability) > CLOSE:
            return f"{text!r}: {answer} instead of {label!r}, {probability}"
    return None


def _texts(count: int) -> list[str]:
    return [f"{TEXTS[number % len(TEXTS)]} {number}" for number in range(count)]


def _megabytes(pid: int) -> float:
    """The memory of a process itself, without files that it maps."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(round(int(line.split()[1]) / 1024, 1) for line in file if line.startswith("RssAnon:"))


def _workers(pid: int) -> list[int]:
    """The worker processes of a server."""
    found = []
    for entry in (name for name in os.listdir("/proc") if name.isdigit()):
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


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def _until_ready(server: ServerProcess) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{server.url}/ready").status_code == 200 and len(_workers(server.process.pid)) == 2:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise AssertionError(f"not ready: {server.log}")
