"""Calibration, abstaining and labels that are added later: expected calibration error, log loss, accuracy of answers.

Names alone; 5 shots without dev rows, with dev rows, and with a quarter of the labels left out of training and added
afterwards; answers that are right as often as asked, on ten datasets; several labels per text.
Each finished cell is kept, so that a run that was stopped resumes.

    python -m maskmatch_lab.benchmarks.calibration --data FOLDER [--only few_shot]
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch import MaskMatcher, MaskMatchError
from maskmatch.config.tasks import TASKS
from maskmatch.data import Examples
from maskmatch.evaluation.calibration import expected_calibration_error, reliability_bins
from maskmatch.model.encoder import DEFAULT_MODEL, EMBEDDED_MODEL
from maskmatch_lab.benchmarks.common import finished_cells, label_names, load_split, parser, shots, write_results

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

SIX = {
    "banking77": "intent",
    "trec50": "question",
    "agnews": "topic",
    "newsgroups20": "topic",
    "sst2": "sentiment",
    "crossner_typing": "entity-typing",
}
MORE = {"trec6": "question", "sst5": "sentiment", "goemotions": "emotion", "clinc150": "intent"}
TEN = {**SIX, "trec6": "question", "clinc150": "intent", "snips": "intent", "semeval2010_re": "relation"}
SEVERAL = "goemotions_multi"
LEFT_OUT = ("banking77", "trec50", "clinc150")
SEEN_BY_ADAPTER = ("clinc150",)
"""Where labels are left out of the encoder without adapter: the adapter has learned from train rows of all labels."""

SHOTS, SHARE, BINS = 5, 0.25, 15
SEEDS = (0, 1, 2)
TEST_ROWS, DEV_ROWS = 1500, 1000
LONG, LONG_ROWS = "newsgroups20", (1000, 500)
"""The dataset with long texts, and how many of its test and dev rows are used."""
RIGHT = {"zero-shot": 0.9, "5 shots": 0.95}
TRAIN_ROWS, SEVERAL_ROWS, HIGH = 1000, 500, 0.9
FAST: dict[str, Any] = {"batch_size": 128, "dropout": False, "epochs": 2.0, "calibrate": False}
"""How classifiers are trained whose answers are chosen on dev rows: the better they are, the more they answer."""


def main() -> None:
    """Run the cells that are not finished."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--seeds", type=int, default=len(SEEDS), help="how many seeds")
    parts: dict[str, tuple[Sequence[str], Sequence[int], Callable[[Path, str, int], dict[str, Any]]]] = {
        "zero_shot": ([*SIX, *MORE], (0,), zero_shot),
        "few_shot": (list(SIX), SEEDS, few_shot),
        "left_out": (LEFT_OUT, SEEDS, left_out),
        "left_out_semantic": (LEFT_OUT, SEEDS[:1], partial(left_out, method="semantic-matching")),
        "abstain": (list(TEN), SEEDS[:1], abstain),
        "several": ([SEVERAL], SEEDS, several),
    }
    arguments.add_argument("--only", choices=tuple(parts), help="one part only")
    options = arguments.parse_args()
    cells = finished_cells("calibration")
    plans = [
        (part, seed, name, run)
        for part, (names, seeds, run) in parts.items()
        if options.only in (None, part)
        for seed in seeds[: options.seeds]
        for name in names
    ]
    for part, seed, name, run in sorted(plans, key=lambda plan: (plan[1], plan[2] == LONG)):  # long texts last
        key = {"part": part, "dataset": name, "seed": seed}
        if any(key.items() <= cell.items() for cell in cells):
            continue
        cells.append({**key, **run(options.data, name, seed)})
        print(cells[-1], flush=True)
        write_results("calibration", {"shots": SHOTS, "bins": BINS, "means": means(cells), "cells": cells})


def zero_shot(data: Path, name: str, _: int) -> dict[str, Any]:
    """Names alone, with the calibration of the package."""
    rows = _rows(data, name)
    matcher = MaskMatcher.from_pretrained(labels=rows["labels"], task=rows["task"])
    found = {"calibrated": _figures(matcher, rows["test"]), "rows": len(rows["test"])}
    abstention = _abstention(matcher, rows, RIGHT["zero-shot"])
    matcher.bank.learn(calibration=None)
    return {"uncalibrated": _figures(matcher, rows["test"]), **found, "abstention": abstention}


def few_shot(data: Path, name: str, seed: int) -> dict[str, Any]:
    """Five rows per label: without dev rows, then calibrated on dev rows."""
    rows = _rows(data, name)
    matcher = _trained(rows, rows["labels"], seed)
    without_dev = _figures(matcher, rows["test"])
    calibration = matcher.bank.calibration
    assert calibration is not None
    assert matcher.training_ is not None
    matcher.calibrate(rows["dev"].texts, rows["dev"].labels)
    with_dev = _figures(matcher, rows["test"])
    abstention = _abstention(matcher, rows, RIGHT["5 shots"])
    matcher.bank.learn(calibration=None)
    return {
        "rows": len(rows["test"]),
        "uncalibrated": _figures(matcher, rows["test"]),
        "without_dev": without_dev,
        "with_dev": with_dev,
        "abstention": abstention,
        "temperature": round(calibration.temperature, 3),
        "rows_of_folds": calibration.rows,
        "training_seconds": matcher.training_.seconds,
    }


def left_out(data: Path, name: str, seed: int, method: str = "mask-matching") -> dict[str, Any]:
    """A quarter of the labels left out of training and added afterwards, beside names alone and training on all."""
    rows = _rows(data, name)
    names, model = rows["labels"], EMBEDDED_MODEL if name in SEEN_BY_ADAPTER else DEFAULT_MODEL
    unseen = set(random.Random(seed).sample(names, round(SHARE * len(names))))
    matcher = _trained(rows, [each for each in names if each not in unseen], seed, method, model)
    matcher.add_labels(sorted(unseen))
    test = rows["test"]
    whole = _trained(rows, names, seed, method, model, calibrate=False)
    plain = MaskMatcher.from_pretrained(model, names, task=rows["task"], method=method)
    accuracies = {
        "added_later": _by_group(matcher.predict(test.texts), test, unseen),
        "names_alone": _by_group(plain.predict(test.texts), test, unseen),
        "trained_on_all": _by_group(whole.predict(test.texts), test, unseen),
    }
    return {"rows": len(test), "left_out": len(unseen), **accuracies, "calibrated": _figures(matcher, test)}


def abstain(data: Path, name: str, seed: int) -> dict[str, Any]:
    """A classifier of 1,000 rows that answers if it is right in 95 % of its answers, as chosen on dev rows."""
    rows = _rows(data, name)
    train = _some(rows["train"], TRAIN_ROWS)
    matcher = MaskMatcher.from_pretrained(labels=rows["labels"], task=rows["task"], verbose=False)
    matcher.fit(train.texts, train.labels, seed=seed, learning_rate=3 * matcher.config.method.learning_rate, **FAST)
    figures = _figures(matcher, rows["test"])
    return {"rows": len(rows["test"]), "figures": figures, "abstention": _abstention(matcher, rows, RIGHT["5 shots"])}


def several(data: Path, name: str, seed: int) -> dict[str, Any]:
    """Several labels per text, 500 rows without dev rows: not calibrated, and calibrated on folds."""
    train, test = (load_split(data, name, split) for split in ("train", "test"))
    assert train.labels is not None
    some = np.random.default_rng(seed).permutation(len(train))[:SEVERAL_ROWS].tolist()
    texts, labels = [train.texts[row] for row in some], [train.labels[row] for row in some]
    names = sorted({label for row in train.labels for label in row})
    found: dict[str, Any] = {"rows": len(test)}
    for way, calibrate in (("uncalibrated", False), ("without_dev", True)):
        matcher = MaskMatcher.from_pretrained(labels=names, task="emotion", multi_label=True, verbose=False)
        matcher.fit(texts, labels, seed=seed, calibrate=calibrate)
        found[way] = _several_figures(matcher, test)
    return found


def means(cells: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The means that are reported: over the draws of each dataset, then over datasets, which may differ in draws."""
    found: dict[str, Any] = {}
    for part, names in (
        ("zero_shot", ("uncalibrated", "calibrated")),
        ("few_shot", _WAYS),
        ("left_out", ("calibrated",)),
    ):
        own = [cell for cell in cells if cell["part"] == part and (part == "left_out" or cell["dataset"] in SIX)]
        for way in names:
            values: dict[str, list[float]] = {}
            for cell in own:
                values.setdefault(cell["dataset"], []).append(cell[way]["ece"])
            if values:
                found[f"{part}, {way}"] = round(float(np.mean([np.mean(each) for each in values.values()])), 4)
    return found


_WAYS = ("uncalibrated", "without_dev", "with_dev")


def _trained(
    rows: dict[str, Any],
    labels: Sequence[str],
    seed: int,
    method: str = "mask-matching",
    model: str = DEFAULT_MODEL,
    **training: Any,
) -> MaskMatcher:
    few = shots(rows["train"], SHOTS, seed)
    assert few.labels is not None
    known = set(labels)
    kept = [row for row, label in enumerate(few.labels) if label in known]
    matcher = MaskMatcher.from_pretrained(model, list(labels), task=rows["task"], method=method, verbose=False)
    return matcher.fit([few.texts[row] for row in kept], [few.labels[row] for row in kept], seed=seed, **training)


def _rows(data: Path, name: str) -> dict[str, Any]:
    task = {**SIX, **MORE, **TEN}[name]
    train, test, dev = (load_split(data, name, split, TASKS[task].fields) for split in ("train", "test", "dev"))
    most = LONG_ROWS if name == LONG else (TEST_ROWS, DEV_ROWS)
    return {
        "task": task,
        "labels": sorted({*label_names(train), *label_names(test)}),  # a rare label may have test rows alone
        "train": train,
        "test": _some(test, most[0]),
        "dev": _some(dev, most[1]),
    }


def _some(rows: Examples, most: int) -> Examples:
    assert rows.labels is not None
    places = np.sort(np.random.default_rng(0).permutation(len(rows))[:most]).tolist()
    return Examples([rows.texts[row] for row in places], [rows.labels[row] for row in places])


def _figures(matcher: MaskMatcher, rows: Examples) -> dict[str, float]:
    """Accuracy, expected calibration error and log loss on rows."""
    assert rows.labels is not None
    probabilities: NDArray[Any] = matcher.predict_proba(rows.texts).astype(np.float64)
    place = {label: number for number, label in enumerate(matcher.bank.known_labels)}
    truth = np.array([place[label] for label in rows.labels])
    right = probabilities.argmax(axis=1) == truth
    error = expected_calibration_error(reliability_bins(probabilities.max(axis=1), right, BINS))
    loss = -np.log(np.maximum(probabilities[np.arange(len(truth)), truth], 1e-12)).mean()
    return {"accuracy": round(float(right.mean()), 4), "ece": round(error, 4), "log_loss": round(float(loss), 4)}


def _several_figures(matcher: MaskMatcher, rows: Examples) -> dict[str, Any]:
    """Calibration error over all labels of all texts, how many probabilities above 0.9 hold, and micro-F1."""
    probabilities: NDArray[Any] = matcher.predict_proba(rows.texts).astype(np.float64)
    truth = np.array([[label in own for label in matcher.bank.known_labels] for own in rows.labels or ()])
    high = probabilities > HIGH
    return {
        "ece": round(expected_calibration_error(reliability_bins(probabilities, truth, BINS)), 4),
        "high": int(high.sum()),
        "high_that_hold": round(float(truth[high].mean()), 4) if high.any() else None,
        "micro_f1": round(matcher.evaluate(rows.texts, rows.labels).score, 4),
    }


def _abstention(matcher: MaskMatcher, rows: dict[str, Any], right: float) -> dict[str, Any]:
    """The accuracy of answers above a probability that was chosen on dev rows."""
    dev, test = rows["dev"], rows["test"]
    try:
        chosen = matcher.choose_abstention(dev.texts, dev.labels, right=right)
    except MaskMatchError as error:
        return {"right": right, "threshold": None, "reason": str(error)}
    answers = matcher.predict(test.texts, abstain=chosen.threshold)
    answered = [answer == label for answer, label in zip(answers, test.labels, strict=True) if answer is not None]
    return {
        "right": right,
        "threshold": round(chosen.threshold, 4),
        "answered": len(answered),
        "accuracy": round(float(np.mean(answered)), 4) if answered else None,
    }


def _by_group(predicted: Sequence[Any], test: Examples, unseen: set[str]) -> dict[str, float]:
    """The accuracy on texts of labels that were seen in training, and of the others."""
    groups: dict[str, list[bool]] = {"seen": [], "unseen": []}
    for guess, label in zip(predicted, test.labels or (), strict=True):
        groups["unseen" if label in unseen else "seen"].append(guess == label)
    return {name: round(float(np.mean(values)), 4) for name, values in groups.items()}


if __name__ == "__main__":
    main()
