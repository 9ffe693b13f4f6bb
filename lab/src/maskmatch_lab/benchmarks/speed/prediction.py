"""Prediction: seconds per text of maskmatch with torch and with exports, and of the peers, all in turns.

On test texts of banking77 with its 77 labels. A cross-encoder and GLiClass encode each text with all labels, so they
get fewer texts. The first answer is the time from the start of a process to its first prediction.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.model.encoder import DEFAULT_MODEL
from maskmatch_lab.benchmarks.common import label_names, load_split
from maskmatch_lab.benchmarks.peers.process import PeerError
from maskmatch_lab.benchmarks.peers.table import OURS
from maskmatch_lab.benchmarks.speed.rounds import Work, alternate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from maskmatch_lab.benchmarks.speed.session import Session
    from maskmatch_lab.benchmarks.speed.sizes import Sizes

DATASET = "banking77"
TEXT = "My card is gone!"
TORCH, ONNX, INT8, INT8_SHORTEST = (
    "maskmatch",
    "maskmatch, ONNX",
    "maskmatch, ONNX int8",
    "maskmatch, ONNX int8, shortest prompt",
)
OUR_WAYS = {
    TORCH: {"runtime": "torch"},
    ONNX: {"runtime": "onnx"},
    INT8: {"runtime": "int8"},
    INT8_SHORTEST: {"runtime": "int8", "prompt": "{text} {mask}"},
}
"""The words of the task's prompt are a quarter of the tokens of a short text, so one way has a prompt without words."""

EMBEDDING = "sentence-transformers, embedding only"
COSINE = "sentence-transformers, cosine to labels"
FIRST = {
    "maskmatch predict EXPORT": "the command, on an export in 8 bits",
    "maskmatch": "a process of its own, by torch",
    "sentence-transformers": "a process of its own",
}


def measure(session: Session) -> dict[str, Any]:
    """Seconds per text, zero-shot accuracy where it is meaningful, seconds to the first answer."""
    test = load_split(session.data, DATASET, "test")
    assert test.labels is not None
    order = random.Random(0).sample(range(len(test.texts)), len(test.texts))  # the file is sorted by label
    texts = [test.texts[row] for row in order[: session.sizes.prediction_texts]]
    names = label_names(test)
    works = works_of(session.sizes, session.encoder, texts, names)
    settings = {"works": [asdict(work) for work in works], "sizes": session.sizes.to_dict()}
    cell = session.kept.measured("prediction", settings, lambda: _round(session, works))
    judged = order[: session.sizes.test_texts]
    rows, truth = [test.texts[row] for row in judged], [test.labels[row] for row in judged]
    accuracy = session.kept.measured("prediction-accuracy", settings, lambda: _accuracy(session, works, rows, truth))
    first = session.kept.measured("prediction-first-answer", settings, lambda: _first_answers(session, names))
    return {
        "dataset": DATASET,
        "labels": len(names),
        "accuracy_texts": len(rows),
        "measured": cell["measured"],
        "points": cell["found"],
        "accuracy": accuracy["found"],
        "first_answer": first["found"],
    }


def works_of(sizes: Sizes, encoder: str, texts: Sequence[Any], names: Sequence[str]) -> list[Work]:
    """All ways to predict."""
    count = len(texts)
    few, fewer = texts[: sizes.prompt_texts], texts[: sizes.cross_texts]
    same = {"names": list(names), "model": encoder}
    ours = {"texts": list(texts), "names": list(names), "model": DEFAULT_MODEL, "task": "intent"}
    works = [
        Work(EMBEDDING, "sentence-transformers", "prediction", {"texts": list(texts), "model": encoder}, count),
        *(Work(name, OURS, "prediction", {**ours, **way}, count) for name, way in OUR_WAYS.items()),
        Work(COSINE, "sentence-transformers", "prediction", {"texts": list(texts), **same}, count),
        Work("bare loop, encoder only", "bare loop", "prediction", {"texts": list(texts), **same}, count),
        Work("SetFit", "SetFit", "prediction", {"texts": list(texts), **same}, count),
        Work("tf-idf + logistic regression", "tf-idf", "prediction", {"texts": list(texts), **same}, count),
        Work("cross-encoder, untrained", "cross-encoder", "prediction", {"texts": fewer, **same}, len(fewer)),
    ]
    works += [
        Work(name, "GLiClass", "prediction", {"texts": few, "shape": shape, **same}, len(few))
        for name, shape in (("GLiClass, untrained", "its own"), ("GLiClass, untrained, same encoder", "same encoder"))
    ]
    return works


def _round(session: Session, works: Sequence[Work]) -> list[dict[str, Any]]:
    points = alternate(session.crew, works, session.sizes.repeats, session.sizes.limit)
    return [point.to_dict() for point in points]


def _accuracy(session: Session, works: Sequence[Work], texts: Sequence[Any], truth: Sequence[Any]) -> dict[str, float]:
    """The zero-shot accuracy of the ways that can predict without training."""
    accuracies = {}
    for work in works:
        if work.curve not in (*OUR_WAYS, COSINE):
            continue
        session.crew.ask(work.peer, "prepare", name="once", kind=work.kind, settings=dict(work.settings))
        labels = session.crew.ask(work.peer, "predict", name="once", texts=list(texts))["labels"]
        session.crew.ask(work.peer, "drop", name="once")
        accuracies[work.curve] = round(sum(a == str(b) for a, b in zip(labels, truth, strict=True)) / len(truth), 4)
    return accuracies


def _first_answers(session: Session, names: Sequence[str]) -> dict[str, Any]:
    """Seconds from the start of a process to its first prediction, in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in FIRST}
    one = {"texts": [TEXT], "names": list(names)}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "export"
        settings = {"folder": str(folder), "names": list(names), "int8": True}
        session.crew.ask(OURS, "prepare", name="export", kind="export", settings=settings)
        session.crew.ask(OURS, "run", name="export")
        session.crew.ask(OURS, "drop", name="export")
        for _ in range(session.sizes.repeats + 1):
            seconds["maskmatch predict EXPORT"].append(_command(folder))
            seconds["maskmatch"].append(_fresh(session, OURS, {**one, "task": "intent"}))
            seconds["sentence-transformers"].append(
                _fresh(session, "sentence-transformers", {**one, "model": session.encoder})
            )
    return {
        name: {"how": FIRST[name], "seconds": round(statistics.median(taken[1:]), 3), "runs": [*map(_short, taken[1:])]}
        for name, taken in seconds.items()
    }


def _command(folder: Path) -> float:
    started = time.perf_counter()
    command = [sys.executable, "-m", "maskmatch", "predict", str(folder), "--text", TEXT]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise PeerError(f"maskmatch predict failed: {done.stderr.strip()[-300:]}")
    return time.perf_counter() - started


def _fresh(session: Session, peer: str, settings: Mapping[str, Any]) -> float:
    started = time.perf_counter()
    process = session.crew.start(peer)
    try:
        process.ask("prepare", name="first", kind="prediction", settings=dict(settings))
        process.ask("run", name="first")
        return time.perf_counter() - started
    finally:
        process.close()


def _short(seconds: float) -> float:
    return round(seconds, 3)
