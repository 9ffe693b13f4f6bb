"""How fast prediction is: texts a second against sentence-transformers, which embeds the same texts without a prompt.

The default classifier with the 77 labels of banking77 reads 1,000 test texts by torch, by an export, and by one in
8 bits; sentence-transformers encodes them with the same encoder. All in one process, alternating; ratios of medians.
The accuracy is that of names alone. The first answer is the time of a whole `maskmatch predict EXPORT --text …`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common import label_names, load_split, parser, write_results
from maskmatch import ExportedMatcher, MaskMatcher, export
from maskmatch.encoder import EMBEDDED_MODEL, find_model

if TYPE_CHECKING:
    from collections.abc import Callable

TEXTS = 1000
REPEATS = 7


def main() -> None:
    from sentence_transformers import SentenceTransformer

    options = parser(__doc__ or "").parse_args()
    test = load_split(options.data, "banking77", "test")
    texts: list[Any] = test.texts[:TEXTS]
    matcher = MaskMatcher.from_pretrained(labels=label_names(test), task="intent", device="cpu")
    reference = SentenceTransformer(str(find_model(EMBEDDED_MODEL)[0]), device="cpu")
    with tempfile.TemporaryDirectory() as scratch:
        folders = {"onnx": Path(scratch) / "onnx", "onnx int8": Path(scratch) / "int8"}
        parity = {name: export(matcher, folder, int8="int8" in name) for name, folder in folders.items()}
        predictors = {"torch": matcher, **{name: ExportedMatcher.from_pretrained(f) for name, f in folders.items()}}
        first = [_first_answer(folders["onnx int8"]) for _ in range(REPEATS)]
        ways: dict[str, Callable[[], Any]] = {"sentence-transformers": lambda: reference.encode(texts)}
        ways |= {name: lambda each=each: each.top_k(texts, 1) for name, each in predictors.items()}  # type: ignore[misc]
        seconds = _alternating(ways)
        accuracy = {name: each.evaluate(test.texts, test.labels).accuracy for name, each in predictors.items()}
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    write_results(
        "prediction",
        {
            "texts": len(texts),
            "repeats": REPEATS,
            "texts_a_second": {name: round(len(texts) / found, 1) for name, found in medians.items()},
            "times_sentence_transformers": {
                name: round(medians["sentence-transformers"] / medians[name], 2) for name in predictors
            },
            "accuracy": {name: round(found, 4) for name, found in accuracy.items()},
            "parity": {name: found.to_dict() for name, found in parity.items()},
            "seconds_to_first_answer": round(statistics.median(first), 2),
            "seconds": seconds,
        },
    )


def _alternating(ways: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """The seconds of each way, in turns, after one turn to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(REPEATS + 1):
        for name, run in ways.items():
            started = time.perf_counter()
            run()
            if turn:
                seconds[name].append(round(time.perf_counter() - started, 3))
    return seconds


def _first_answer(folder: Path) -> float:
    started = time.perf_counter()
    command = [sys.executable, "-m", "maskmatch", "predict", str(folder), "--text", "My card is gone!"]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
