"""Out of scope: how well the novelty score tells texts that no label fits, beside other scores, in one run.

clinc150 with its out-of-scope rows, from the encoder without adapter, since the adapter has learned from its train
rows; and banking77 with 27 of its intents left out, whose texts are near to the others.

    python -m maskmatch_lab.benchmarks.out_of_scope --data FOLDER
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from maskmatch import MaskMatcher
from maskmatch.model.encoder import DEFAULT_MODEL, EMBEDDED_MODEL
from maskmatch_lab.benchmarks.common import finished_cells, label_names, load_split, parser, shots, write_results

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from maskmatch.data import Examples

LEFT_OUT = 27
SEEDS = (0, 1, 2)
TEXTS_FOR_PROBE = 15_000
ALL_ROWS: dict[str, Any] = {"batch_size": 128, "dropout": False, "epochs": 2.0, "learning_rate": 6e-4}
"""How all rows are trained on: in few large steps, which takes minutes instead of half an hour."""


def main() -> None:
    """Run the cells that are not finished; the long one last."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--seeds", type=int, default=len(SEEDS), help="how many seeds")
    arguments.add_argument("--all-data", action="store_true", help="also train on all rows, which takes some minutes")
    options = arguments.parse_args()
    seeds = SEEDS[: options.seeds]
    cells = finished_cells("out_of_scope")
    plans = [("clinc150", "names", method, 0) for method in ("semantic-matching", "mask-matching")]
    plans += [("banking77", "names", "mask-matching", seed) for seed in seeds]
    plans += [(name, "5 shots", "mask-matching", seed) for seed in seeds for name in ("clinc150", "banking77")]
    plans.append(("clinc150", "5 shots and 100 texts out of scope", "mask-matching", 0))
    if options.all_data:
        plans.append(("clinc150", "all", "mask-matching", 0))
    for name, regime, method, seed in plans:
        key = {"dataset": name, "regime": regime, "method": method, "seed": seed}
        if any(key.items() <= cell.items() for cell in cells):
            continue
        cells.append({**key, **_cell(options.data, name, regime, method, seed)})
        print(cells[-1], flush=True)
        write_results("out_of_scope", {"left_out": LEFT_OUT, "cells": cells})


def _cell(data: Path, name: str, regime: str, method: str, seed: int) -> dict[str, Any]:
    train, test = (load_split(data, name, split) for split in ("train", "test"))
    names = label_names(train)
    if name == "clinc150":
        model, inside = EMBEDDED_MODEL, test.texts
        outside, known = _texts(data, name, "oos_test"), _texts(data, name, "oos_train")
    else:
        model, known = DEFAULT_MODEL, []
        left = set(random.Random(seed).sample(names, LEFT_OUT))
        names = [each for each in names if each not in left]
        pairs = list(zip(test.texts, test.labels or (), strict=True))
        inside, outside = ([text for text, label in pairs if (label in left) == out] for out in (False, True))
    matcher = MaskMatcher.from_pretrained(model, names, task="intent", method=method, verbose=False)
    rows = _training_rows(train, names, regime, seed)
    if rows is not None:
        others = known if regime.endswith("out of scope") else []
        labels = [*rows[1], *([None] * len(others))]
        how = ALL_ROWS if regime == "all" else {}
        matcher.fit([*rows[0], *others], labels, seed=seed, calibrate=False, out_of_scope_rows=bool(others), **how)
    texts = [*inside, *outside]
    truth = np.repeat([0, 1], [len(inside), len(outside)])
    scores = {"novelty": matcher.novelty(texts), "maximum probability": -matcher.predict_proba(texts).max(axis=1)}
    if rows is not None:
        scores["logistic regression on embeddings"] = _probe(rows, texts)
    figures = {kind: round(float(roc_auc_score(truth, score)), 4) for kind, score in scores.items()}
    return {"labels": len(names), "inside": len(inside), "outside": len(outside), "auroc": figures}


def _training_rows(train: Examples, names: list[str], regime: str, seed: int) -> tuple[list[Any], list[Any]] | None:
    if regime == "names":
        return None
    rows = train if regime == "all" else shots(train, 5, seed)
    known = set(names)
    kept = [(text, label) for text, label in zip(rows.texts, rows.labels or (), strict=True) if label in known]
    return [text for text, _ in kept], [label for _, label in kept]


def _probe(rows: tuple[list[Any], list[Any]], texts: list[Any]) -> NDArray[np.float64]:
    """The negative maximum probability of a logistic regression on the mean-pooled vectors of the bare encoder."""
    reader = MaskMatcher.from_pretrained(EMBEDDED_MODEL, ["any", "other"], method="semantic-matching", verbose=False)
    first, second = (_unit(reader.text_states(part)) for part in (rows[0][:TEXTS_FOR_PROBE], texts))
    probe = LogisticRegression(C=10, max_iter=300).fit(first, rows[1][:TEXTS_FOR_PROBE])
    return np.asarray(-probe.predict_proba(second).max(axis=1))


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    flat = vectors.reshape(len(vectors), -1)
    return np.asarray(flat / np.linalg.norm(flat, axis=1, keepdims=True))


def _texts(data: Path, name: str, split: str) -> list[Any]:
    return load_split(data, name, split).texts


if __name__ == "__main__":
    main()
