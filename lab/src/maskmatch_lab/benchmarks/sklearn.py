"""scikit-learn: the time of a grid search beside the same trainings done by hand, on few texts.

A grid of two prompts and three learning rates, in three folds of 200 texts, in one process. By hand, each training
loads its classifier; the results also have the ratio to the trainings and predictions alone, without the loading. Both
take turns, and must find the same accuracies.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import GridSearchCV, ParameterGrid, StratifiedKFold

from maskmatch import MaskMatcher
from maskmatch.sklearn import MaskMatchClassifier, clear_cache
from maskmatch_lab.benchmarks.common import label_names, load_split, parser, shots, write_results

if TYPE_CHECKING:
    from collections.abc import Mapping

DATASET = "trec6"
TEXTS = 200
FOLDS = 3
REPEATS = 5
EPOCHS = 3
GRID = {
    "prompt": ["{text} It is about {mask}.", "{mask}: {text}"],
    "learning_rate": [1e-4, 2e-4, 4e-4],
}
FIXED: dict[str, Any] = {"task": "question", "calibrate": False}


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--texts", type=int, default=TEXTS, help="how many texts")
    arguments.add_argument("--repeats", type=int, default=REPEATS, help="how many times each way")
    arguments.add_argument("--epochs", type=float, default=EPOCHS, help="epochs of each training")
    options = arguments.parse_args()
    train = load_split(options.data, DATASET, "train")
    rows = shots(train, -(-options.texts // len(label_names(train))), 0)
    assert rows.labels is not None
    order = np.random.default_rng(0).permutation(len(rows))[: options.texts]
    texts, labels = [rows.texts[row] for row in order], [rows.labels[row] for row in order]
    _train({"learning_rate": 1e-4}, texts, labels, label_names(train), options.epochs)  # libraries warm up
    runs = [_round(texts, labels, options.epochs, first=number % 2) for number in range(options.repeats)]
    for run in runs:
        print(run, flush=True)
    median = {name: round(statistics.median(run[name] for run in runs), 3) for name in runs[0]}
    write_results(
        "sklearn",
        {
            "dataset": DATASET,
            "texts": len(order),
            "folds": FOLDS,
            "settings": len(ParameterGrid(GRID)),
            "epochs": options.epochs,
            "repeats": options.repeats,
            "time_ratio": median["ratio"],
            "time_ratio_without_loading": median["ratio_without_loading"],
            "medians": median,
            "runs": runs,
        },
    )


def _round(texts: list[Any], labels: list[Any], epochs: float, *, first: int) -> dict[str, float]:
    """A grid search, and the same by hand; each is the first in every other round."""
    if first:
        by_hand, loading, expected = _by_hand(texts, labels, epochs)
    searched, accuracies = _search(texts, labels, epochs)
    if not first:
        by_hand, loading, expected = _by_hand(texts, labels, epochs)
    if not np.allclose(accuracies, expected):
        raise SystemExit(f"The grid search has the accuracies {accuracies}, and by hand they are {expected}.")
    return {
        "grid_search_seconds": round(searched, 2),
        "by_hand_seconds": round(by_hand, 2),
        "loading_seconds": round(loading, 2),
        "ratio": round(searched / by_hand, 3),
        "ratio_without_loading": round(searched / (by_hand - loading), 3),
    }


def _search(texts: list[Any], labels: list[Any], epochs: float) -> tuple[float, list[float]]:
    clear_cache()  # the search loads the encoder, once
    estimator = MaskMatchClassifier(epochs=epochs, **FIXED)
    search = GridSearchCV(estimator, GRID, cv=StratifiedKFold(FOLDS), refit=False, error_score="raise")
    started = time.perf_counter()
    search.fit(texts, labels)
    seconds = time.perf_counter() - started
    return seconds, list(search.cv_results_["mean_test_score"])


def _by_hand(texts: list[Any], labels: list[Any], epochs: float) -> tuple[float, float, list[float]]:
    """Seconds, those of them that went into loading, and the mean accuracy of each setting."""
    folds = [[part.tolist() for part in fold] for fold in StratifiedKFold(FOLDS).split(texts, labels)]
    names = sorted(set(labels))
    accuracies: list[float] = []
    loading = 0.0
    started = time.perf_counter()
    for setting in ParameterGrid(GRID):
        right = []
        for kept, out in folds:
            matcher, seconds = _train(
                setting, [texts[row] for row in kept], [labels[row] for row in kept], names, epochs
            )
            loading += seconds
            found = matcher.predict([texts[row] for row in out])
            right.append(np.mean([one == labels[row] for one, row in zip(found, out, strict=True)]))
        accuracies.append(float(np.mean(right)))
    return time.perf_counter() - started, loading, accuracies


def _train(
    setting: Mapping[str, Any], texts: list[Any], labels: list[Any], names: list[str], epochs: float
) -> tuple[MaskMatcher, float]:
    """A trained classifier, and the seconds of its loading."""
    started = time.perf_counter()
    matcher = MaskMatcher.from_pretrained(labels=names, task=FIXED["task"], prompt=setting.get("prompt"), verbose=False)
    loading = time.perf_counter() - started
    rate, calibrate = setting["learning_rate"], FIXED["calibrate"]
    return matcher.fit(texts, labels, learning_rate=rate, epochs=epochs, calibrate=calibrate), loading


if __name__ == "__main__":
    main()
