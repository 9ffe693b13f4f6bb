"""What the tests of comparisons share: a small dataset, and settings that take no time."""

from __future__ import annotations

import gzip
import json
import random
from typing import TYPE_CHECKING, Any

from maskmatch_lab.comparison import Splits, Variant

if TYPE_CHECKING:
    from pathlib import Path

WORDS = {
    "refund": ["refund", "parcel", "pending", "sent back"],
    "card lost": ["card", "lost", "block", "station"],
    "exchange rate": ["exchange", "rate", "money", "question"],
}
QUICK = {"epochs": 1, "batch_size": 16}


def rows(count: int, seed: int) -> tuple[list[str], list[str]]:
    """Texts of words that belong to their labels; every label occurs."""
    rng = random.Random(seed)
    labels = [list(WORDS)[number % len(WORDS)] for number in range(count)]
    return [
        f"{rng.choice(WORDS[label])} and {rng.choice(WORDS[label])} it is {rng.random():.3f}" for label in labels
    ], labels


def toy_splits(name: str = "toy", count: int = 12, seed: int = 0) -> Splits:
    return Splits.of(name, "intent", rows(count, seed), rows(9, seed + 1), rows(6, seed + 2))


def quick(*names: str) -> list[Variant]:
    """Methods that train for a moment."""
    return [Variant(name, name, training=QUICK) for name in names]


def write_dataset(home: Path, zipped: bool = True, **splits: tuple[list[Any], list[Any]]) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    for split, (texts, labels) in splits.items():
        lines = "".join(
            json.dumps({"text": text, "label": label}) + "\n" for text, label in zip(texts, labels, strict=True)
        )
        if zipped:
            (home / f"{split}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
        else:
            (home / f"{split}.jsonl").write_text(lines, encoding="utf-8")
    return home


def all_splits(home: Path, zipped: bool = True) -> Path:
    return write_dataset(home, zipped, train=rows(12, 0), dev=rows(6, 2), test=rows(9, 1))
