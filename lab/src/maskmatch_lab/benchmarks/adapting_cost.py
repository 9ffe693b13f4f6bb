"""The cost of adapting to unlabelled texts: time relative to encoding them, memory for a long stream, size on disk.

Encoding and adapting take turns in one process. The texts of the stream are made up: words in random order.
"""

from __future__ import annotations

import random
import statistics
import time
from typing import TYPE_CHECKING

from maskmatch import MaskMatcher
from maskmatch_lab.benchmarks.common import label_names, load_split, parser, write_results
from maskmatch_lab.comparison.measuring import MemoryWatch

if TYPE_CHECKING:
    from collections.abc import Iterator

DATASET, TASK = "banking77", "intent"
TEXTS, REPEATS = 4000, 5
STREAMED, SHORT = 1_000_000, 20_000
WORDS = "card money account bank transfer app pay back top up rate fee cash atm pin late wrong new old"


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    train = load_split(options.data, DATASET, "train")
    texts = random.Random(0).sample(list(train.texts), TEXTS)
    matcher = MaskMatcher.from_pretrained(labels=label_names(train), task=TASK, verbose=False)
    _ = matcher.pipeline  # encodes the labels
    encoding: list[float] = []
    adapting: list[float] = []
    for _ in range(REPEATS):
        for taken, call in ((encoding, matcher.text_states), (adapting, matcher.adapt)):
            started = time.perf_counter()
            call(texts)
            taken.append(time.perf_counter() - started)
            print(taken[-1], flush=True)
    assert matcher.bank.adaptation is not None
    kept = sum(array.nbytes for array in matcher.bank.adaptation.to_arrays().values())
    ratios = [one / other for one, other in zip(adapting, encoding, strict=True)]
    memory = {}
    for count in (SHORT, STREAMED):
        watch = MemoryWatch()
        started = time.perf_counter()
        matcher.adapt(_stream(count), force=True)
        memory[count] = watch.rise
        print(count, watch.rise, time.perf_counter() - started, flush=True)
    result = {
        "dataset": DATASET,
        "texts": TEXTS,
        "repeats": REPEATS,
        "encoding_seconds": round(statistics.median(encoding), 2),
        "adapting_seconds": round(statistics.median(adapting), 2),
        "ratio": {"median": round(statistics.median(ratios), 3), "all": [round(ratio, 3) for ratio in ratios]},
        "streamed": STREAMED,
        "stream_megabytes": memory[STREAMED],
        "short_stream_megabytes": memory[SHORT],
        "kept_megabytes": round(kept / 2**20, 2),
    }
    write_results("adapting_cost", result)


def _stream(count: int) -> Iterator[str]:
    """So many different texts, one at a time."""
    chance, words = random.Random(0), WORDS.split()
    for number in range(count):
        yield f"{' '.join(chance.choices(words, k=8))} {number}"


if __name__ == "__main__":
    main()
