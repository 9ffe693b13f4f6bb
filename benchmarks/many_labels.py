"""What many labels cost: the time of a training step, the accuracy of sampled labels, and search among a million.

Steps: the median time of a training step (32 texts) with full and sampled label encoding, all alternating, for label
sets whose names are drawn from the words of real texts. Accuracy: naics1065 (1,063 labels), one shot a label, the bare
encoder (the default's adapter has learned from this set), on dev. Search: the time to predict real texts, with their
encoding; label vectors are mixtures of real ones with noise, as encoding a million names would take long.
"""

from __future__ import annotations

import itertools
import statistics
import time
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import normalize

from benchmarks.common import finished_cells, label_names, load_split, mean_and_sd, parser, shots, write_results
from benchmarks.material import make_names, words_of
from maskmatch import LabelSet, MaskMatcher
from maskmatch.encoder import EMBEDDED_MODEL

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from maskmatch.data import Examples

DATASET = "naics1065"
BATCH = 32
REPEATS = 7
STEP_LABELS = (10, 100, 256, 1000, 10_000)
MOST_FULL = 1000
"""Beyond so many labels, the states of a step that reads all of them do not fit into the memory of a small machine."""
SEEDS = (0, 1, 2)
WAYS = ("full", "sampled")
SEARCH_LABELS = (10, 10_000, 100_000, 300_000, 1_000_000)
SEARCH_TEXTS = 256
NOISE = 0.5
Cell = dict[str, Any]


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--again", action="store_true", help="run finished cells once more")
    arguments.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    options = arguments.parse_args()
    cells = finished_cells("many_labels", options.again)
    for part in options.parts:
        for cell in PARTS[part](options, [cell for cell in cells if cell["part"] == part]):
            cells.append({"part": part, **cell})
            print(cells[-1], flush=True)
            _write(cells)


def _steps(options: Namespace, finished: list[Cell]) -> list[Cell]:
    if finished:
        return []
    texts = load_split(options.data, DATASET, "train").texts
    cases: dict[tuple[int, str], _Case] = {}
    for labels, way in itertools.product(STEP_LABELS, WAYS):
        if way == "sampled" or labels <= MOST_FULL:
            cases[labels, way] = _Case(texts, labels, way)
    seconds: dict[tuple[int, str], list[float]] = {key: [] for key in cases}
    for repeat in range(REPEATS + 1):
        for key, case in cases.items():  # alternating, so that a busy moment hits all
            taken = case.step(repeat)
            if repeat:  # the first step sets things up
                seconds[key].append(taken)
    return [
        {"labels": labels, "way": way, "seconds": round(statistics.median(taken), 4), "repeats": len(taken)}
        for (labels, way), taken in seconds.items()
    ]


class _Case:
    """A model in training with so many labels."""

    def __init__(self, texts: Sequence[Any], labels: int, way: str) -> None:
        names = _names(texts, labels)
        matcher = MaskMatcher.from_pretrained(EMBEDDED_MODEL, labels=names)
        assert matcher.labels is not None
        rows = [names[row % labels] for row in range(BATCH * (REPEATS + 1))]
        few = [texts[row % len(texts)] for row in range(len(rows))]
        self._data = matcher._scorer.training_data(few, rows, matcher.labels, label_encoding=way)  # type: ignore[arg-type]
        self._model = matcher._scorer.model(matcher.labels).train()
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=2e-4, fused=True)

    def step(self, number: int) -> float:
        started = time.perf_counter()
        batch = self._data.batch(range(BATCH * number, BATCH * (number + 1)))
        self._model(**batch)["loss"].backward()
        self._optimizer.step()
        self._optimizer.zero_grad()
        return time.perf_counter() - started


def _accuracy(options: Namespace, finished: list[Cell]) -> Iterator[Cell]:
    train, dev = (load_split(options.data, DATASET, split) for split in ("train", "dev"))
    for seed, way in itertools.product(SEEDS, WAYS):
        if not any((cell["seed"], cell["way"]) == (seed, way) for cell in finished):
            yield _accuracy_of(train, dev, seed, way)


def _accuracy_of(train: Examples, dev: Examples, seed: int, way: str) -> Cell:
    few = shots(train, 1, seed)
    matcher = MaskMatcher.from_pretrained(EMBEDDED_MODEL, labels=label_names(train))
    matcher.fit(few.texts, few.labels, seed=seed, label_encoding=way)
    assert matcher.training_ is not None
    report = matcher.evaluate(dev.texts, dev.labels)
    return {
        "seed": seed,
        "way": way,
        "accuracy": round(report.accuracy, 4),
        "steps": matcher.training_.steps,
        "seconds": matcher.training_.seconds,
    }


def _search(options: Namespace, finished: list[Cell]) -> list[Cell]:
    if finished:
        return []
    train, dev = (load_split(options.data, DATASET, split) for split in ("train", "dev"))
    texts = dev.texts[:SEARCH_TEXTS]
    real = MaskMatcher.from_pretrained(labels=label_names(train))
    assert real.labels is not None
    base = real._scorer.label_vectors(real.labels)[0][:, 0]  # (labels, masks, dim)
    cases = {
        (labels, kind): _searching(base, _names(train.texts, labels), kind)
        for labels in SEARCH_LABELS
        for kind in ("exact", "approximate")
        if kind == "exact" or labels >= 10_000
    }
    seconds: dict[tuple[int, str], list[float]] = {key: [] for key in cases}
    predicted: dict[tuple[int, str], list[Any]] = {}
    for repeat in range(REPEATS + 1):
        for key, matcher in cases.items():
            started = time.perf_counter()
            predicted[key] = matcher.predict(texts)
            if repeat:
                seconds[key].append(time.perf_counter() - started)
    found = []
    for (labels, kind), taken in seconds.items():
        pairs = zip(predicted[labels, kind], predicted[labels, "exact"], strict=True)
        report = cases[labels, kind].search_
        found.append(
            {
                "labels": labels,
                "search": kind,
                "seconds": round(statistics.median(taken), 4),
                "repeats": len(taken),
                "recall": round(sum(ours == exact for ours, exact in pairs) / len(texts), 4),
                "recall_when_built": round(report.recall, 4),
                "probability_error_when_built": round(report.probability_error, 4),
                "build_seconds": round(report.seconds, 1),
            }
        )
    return found


def _searching(base: torch.Tensor, names: list[str], kind: str) -> MaskMatcher:
    """A classifier with these labels, whose vectors are mixtures of two real ones with noise."""
    generator = torch.Generator().manual_seed(0)
    flat = normalize(base.mean(dim=1), dim=-1)
    vectors = torch.empty(len(names), 1, flat.shape[1])
    for start in range(0, len(names), 50_000):
        count = min(50_000, len(names) - start)
        one, other = (flat[torch.randint(len(flat), (count,), generator=generator)] for _ in range(2))
        share = torch.rand(count, 1, generator=generator)
        noise = torch.randn(count, flat.shape[1], generator=generator) * NOISE / flat.shape[1] ** 0.5
        vectors[start : start + count, 0] = share * one + (1 - share) * other + noise
    matcher = MaskMatcher.from_pretrained(labels=LabelSet.of(names), search=kind)  # type: ignore[arg-type]
    assert matcher.labels is not None
    scorer = matcher._scorer
    model = scorer.model(matcher.labels)
    texts = scorer.label_texts(matcher.labels)
    weights, key = scorer._weights_version(model), scorer.label_vector_key(texts)
    scorer._store.keep(texts, vectors, weights=weights, key=key)
    _ = matcher.search_  # built here, and timed by itself
    return matcher


def _names(texts: Sequence[Any], count: int) -> list[str]:
    """Distinct names of two to five words that occur in texts."""
    return make_names(words_of(texts), count)


def _write(cells: list[Cell]) -> None:
    parts: dict[str, list[Cell]] = {part: [cell for cell in cells if cell["part"] == part] for part in PARTS}
    accuracy = {
        way: mean_and_sd([cell["accuracy"] for cell in parts["accuracy"] if cell["way"] == way])
        for way in WAYS
        if any(cell["way"] == way for cell in parts["accuracy"])
    }
    write_results("many_labels", {"dataset": DATASET, "batch_size": BATCH, "accuracy": accuracy, "cells": cells})


PARTS: dict[str, Any] = {"steps": _steps, "accuracy": _accuracy, "search": _search}


if __name__ == "__main__":
    main()
