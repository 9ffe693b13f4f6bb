"""Data as it comes: labels of which one has far more rows than the others, and texts longer than the encoder reads.

python -m maskmatch_lab.benchmarks.real_world --data FOLDER
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import f1_score

from maskmatch import MaskMatcher
from maskmatch_lab.benchmarks.common import finished_cells, load_split, parser, shots, write_results

if TYPE_CHECKING:
    from pathlib import Path

    from maskmatch.data import Examples

SKEWED = {"agnews": "topic", "banking77": "intent", "newsgroups20": "topic"}
MANY_ROWS, FEW_ROWS, TEST_ROWS = 200, 5, 500
PARTS = ("skewed", "long", "weights")
NAMES, FEW, DEFAULT = "names", f"{FEW_ROWS} rows of each label", "default"
"""What skewed rows are compared with, and the default way to train on them."""

WAYS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "all rows": {"max_skew": 0.0},
    "class weights": {"max_skew": 0.0, "class_weight": "balanced"},
    "logit adjustment": {"max_skew": 0.0, "logit_adjustment": 1.0},
}
"""How skewed rows are trained on, by name. All but the default are measured on one draw."""

LONG: dict[str, dict[str, Any]] = {
    "the first 256 tokens": {},
    "the first 512 tokens": {"max_length": 512},
    "windows of 256 tokens": {"long_texts": "windows"},
}
LONG_TEXTS = ("posts", "joined posts")
WORDS, JOINED_TEXTS, POSTS = 2_000, 200, 500
SEEDS = (10, 11, 12)
"""Draws that no setting was chosen on."""


def main() -> None:
    """Run the cells that are not finished."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="the parts to run")
    arguments.add_argument("--seeds", type=int, default=len(SEEDS), help="how many seeds")
    options = arguments.parse_args()
    cells = finished_cells("real_world")
    for seed in SEEDS[: options.seeds]:
        for part in options.only:
            for key in plans(part, seed):
                if any(key.items() <= cell.items() for cell in cells):
                    continue
                measured = (
                    _long(options.data, **_named(key)) if part == "long" else [_skewed(options.data, **_named(key))]
                )
                cells += [{**key, **figures} for figures in measured]
                print(*cells[-len(measured) :], sep="\n", flush=True)
                write_results("real_world", {"cells": cells})


def plans(part: str, seed: int) -> list[dict[str, Any]]:
    """What is measured of a part for a seed."""
    if part == "long":
        return [
            {"part": part, "regime": regime, "way": way, "seed": seed}
            for regime in ("names", "5 shots")
            for way in LONG
        ]
    ways: tuple[str, ...] = (NAMES, FEW, DEFAULT)
    if part == "weights":
        ways = tuple(way for way in WAYS if way != DEFAULT) if seed == SEEDS[0] else ()
    return [{"part": part, "dataset": name, "way": way, "seed": seed} for name in SKEWED for way in ways]


def _named(key: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in key.items() if name != "part"}


def _skewed(data: Path, dataset: str, way: str, seed: int) -> dict[str, Any]:
    """Train on many rows of one label and few of each other; the test rows are as they are, macro-F1 counts labels."""
    train, test = (load_split(data, dataset, split) for split in ("train", "test"))
    rng = random.Random(seed)
    by_label: dict[Any, list[Any]] = defaultdict(list)
    for text, label in zip(train.texts, train.labels or (), strict=True):
        by_label[label].append(text)
    names = sorted(by_label)
    large = rng.choice([name for name in names if len(by_label[name]) >= 0.75 * MANY_ROWS])
    texts, labels = [], []
    for name in names:
        some = rng.sample(by_label[name], min(len(by_label[name]), MANY_ROWS))
        some = some[: MANY_ROWS if name == large and way != FEW else FEW_ROWS]
        texts += some
        labels += [name] * len(some)
    matcher = MaskMatcher.from_pretrained(labels=names, task=SKEWED[dataset], verbose=False)
    if way != NAMES:
        matcher.fit(texts, labels, seed=seed, calibrate=False, **WAYS.get(way, {}))
    rows = _some(test, TEST_ROWS, seed)
    predicted = matcher.predict([text for text, _ in rows])
    truth = [label for _, label in rows]
    summary = matcher.training_
    return {
        "large": large,
        "rows": len(texts),
        "macro_f1": round(float(f1_score(truth, predicted, average="macro")), 4),
        "accuracy": round(float(np.mean([one == other for one, other in zip(truth, predicted, strict=True)])), 4),
        "steps": 0 if summary is None else summary.steps,
        "seconds": 0 if summary is None else summary.seconds,
    }


def _long(data: Path, regime: str, way: str, seed: int) -> list[dict[str, Any]]:
    """Classify long texts: newsgroup posts, and posts of one group joined to texts of 2,000 words."""
    train, test = (load_split(data, "newsgroups20", split) for split in ("train", "test"))
    names = sorted(set(train.labels or ()))
    matcher = MaskMatcher.from_pretrained(labels=names, task="topic", verbose=False, **LONG[way])
    if regime != "names":
        few = shots(train, 5, seed)
        matcher.fit(few.texts, few.labels, seed=seed, calibrate=False)
    summary = matcher.training_
    measured = []
    for texts in LONG_TEXTS:
        rows = _some(test, POSTS, seed) if texts == "posts" else joined_posts(test, seed)
        predicted = matcher.predict([text for text, _ in rows])
        right = [one == label for one, (_, label) in zip(predicted, rows, strict=True)]
        measured.append(
            {
                "dataset": texts,
                "rows": len(rows),
                "accuracy": round(float(np.mean(right)), 4),
                "truncated": matcher.cut_,
                "steps": 0 if summary is None else summary.steps,
            }
        )
    return measured


def _some(rows: Examples, count: int, seed: int) -> list[tuple[Any, Any]]:
    pairs = list(zip(rows.texts, rows.labels or (), strict=True))
    return random.Random(seed).sample(pairs, min(count, len(pairs)))


def joined_posts(rows: Examples, seed: int) -> list[tuple[str, Any]]:
    """Posts of one group, joined until they have 2,000 words; as many texts of each group."""
    by_label: dict[Any, list[str]] = defaultdict(list)
    for text, label in zip(rows.texts, rows.labels or (), strict=True):
        by_label[label].append(str(text))
    joined: list[tuple[str, Any]] = []
    rng = random.Random(seed)
    for label, posts in sorted(by_label.items()):
        rng.shuffle(posts)
        left = list(posts)
        for _ in range(JOINED_TEXTS // len(by_label)):
            words: list[str] = []
            while left and len(words) < WORDS:
                words += left.pop().split()
            joined.append((" ".join(words[:WORDS]), label))
    return joined


if __name__ == "__main__":
    main()
