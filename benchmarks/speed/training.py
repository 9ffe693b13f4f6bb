"""Training from a few shots: seconds and accuracy of maskmatch, SetFit, a bare loop and tf-idf, on the same encoder.

maskmatch trains for shares of its usual epochs, each a whole run of its own, since its learning rate falls over the
length of a run: so it can be told in how much of SetFit's time it reaches SetFit's accuracy. Its short runs learn at
twice the usual rate. Runs of the peers come in turns, each turn with other shots and another seed; long ones have fewer
turns, and ways are compared by those turns that both have. Accuracy is computed here, from what they predict.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.common import label_names, load_split, shots
from benchmarks.peers.table import OURS
from maskmatch.encoder import DEFAULT_MODEL, EMBEDDED_MODEL
from maskmatch.studies.learned_from import LEARNED_FROM

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.speed.session import Session
    from benchmarks.speed.sizes import Sizes

ENCODERS = {"maskmatch": EMBEDDED_MODEL, "maskmatch, default encoder": DEFAULT_MODEL}
"""What our ways are called, with the encoder that they start from: the one that SetFit has, or with the adapter.

On a dataset that the adapter has learned from, only the first is measured.
"""


LONG_TURNS = 3
"""How often a run that is neither short nor very long is measured."""

FOR_COST = ("bare loop",)
"""Peers that are there to tell what training costs at least: their long runs are measured once."""

SHORT, HASTE = 0.5, 2.0
"""Runs of less than this share learn at so many times the usual rate."""

HURRIES = {"maskmatch, in a hurry": 1.0, "maskmatch, in less of a hurry": 1.33}
"""Few steps of many texts, so that labels are read less often, at a higher rate and without dropout: so many epochs.
Chosen by dev rows of clinc150; the page says so."""

IN_A_HURRY = {"batch_size": 128, "rate": 3.0, "dropout": False}


@dataclass(frozen=True)
class Way:
    """A way to train.

    Attributes:
        name: What it is called.
        peer: Who trains.
        options: Its settings.
        share: The share of maskmatch's usual epochs.
    """

    name: str
    peer: str
    options: Mapping[str, Any] = field(default_factory=dict)
    share: float | None = None


def ways(dataset: str, sizes: Sizes, folder: str) -> list[Way]:
    """All ways of a dataset, those of maskmatch between those of the others."""
    ours = [
        Way(name, OURS, {"model": model, "share": share, "rate": HASTE if share < SHORT else 1.0}, share)
        for name, model in ENCODERS.items()
        for share in sizes.shares
        if model == EMBEDDED_MODEL or dataset not in LEARNED_FROM
    ]
    ours += [
        Way(name, OURS, {"model": EMBEDDED_MODEL, "epochs": epochs, **IN_A_HURRY}) for name, epochs in HURRIES.items()
    ]
    others = [
        Way(f"SetFit, {number} iterations", "SetFit", {"model": folder, "num_iterations": number})
        for number in sizes.iterations[sizes.datasets.index(dataset)]
    ]
    others += [Way(f"bare loop, {way}", "bare loop", {"model": folder, "way": way}) for way in ("head", "names")]
    others.append(Way("tf-idf + logistic regression", "tf-idf"))
    mixed: list[Way] = []
    while ours or others:
        mixed += [*ours[:2], *others[:1]]
        ours, others = ours[2:], others[1:]
    return mixed


def measure(session: Session) -> dict[str, Any]:
    """All runs, and a table of them."""
    cells = [cell for dataset in session.sizes.datasets for cell in _dataset(session, dataset)]
    return {"shots": session.sizes.shots, "table": table_of(cells), "cells": cells}


def _dataset(session: Session, dataset: str) -> Iterator[dict[str, Any]]:
    sizes = session.sizes
    train, test = (load_split(session.data, dataset, split) for split in ("train", "test"))
    names = label_names(train)
    assert test.labels is not None
    texts, truth = list(test.texts[: sizes.test_texts]), list(test.labels[: sizes.test_texts])
    turns: dict[tuple[str, float | None], int] = {}
    for turn in range(sizes.repeats):
        few = shots(train, sizes.shots, turn)
        assert few.labels is not None
        rows = {"texts": list(few.texts), "labels": list(few.labels), "names": names}
        for way in ways(dataset, sizes, session.encoder):
            if turn >= turns.get((way.name, way.share), sizes.repeats):
                continue
            cell = session.kept.measured(
                f"training-{dataset}",
                {"way": asdict(way), "shots": sizes.shots, "turn": turn, "texts": len(texts)},
                lambda way=way, rows=rows, turn=turn: _run(  # type: ignore[misc]
                    session, way, {**rows, "seed": turn}, texts, truth
                ),
            )
            found: dict[str, Any] = {
                "dataset": dataset,
                "way": way.name,
                "share": way.share,
                "peer": way.peer,
                "turn": turn,
            }
            found |= {"labels": len(names), "measured": cell["measured"], **cell["found"]}
            told = ", ".join(str(found.get(name)) for name in ("dataset", "way", "share", "seconds", "accuracy"))
            print(f"  {told}", file=sys.stderr, flush=True)
            if found["seconds"] > sizes.short_seconds:
                once = found["seconds"] > sizes.long_seconds or way.peer in FOR_COST
                turns[way.name, way.share] = 1 if once else LONG_TURNS
            yield found


def _run(
    session: Session, way: Way, rows: Mapping[str, Any], texts: Sequence[Any], truth: Sequence[Any]
) -> dict[str, Any]:
    settings = {**rows, **way.options}
    session.crew.ask(way.peer, "prepare", name="training", kind="training", settings=settings)
    run = session.crew.ask(way.peer, "run", name="training")
    predicted = session.crew.ask(way.peer, "predict", name="training", texts=list(texts))
    session.crew.ask(way.peer, "drop", name="training")
    right = sum(str(ours) == str(true) for ours, true in zip(predicted["labels"], truth, strict=True))
    return {
        "seconds": float(f"{run['seconds']:.4g}"),
        "steps": run.get("steps"),
        "peak_megabytes": round(run["peak_megabytes"], 1),
        "accuracy": round(right / len(truth), 4),
        "prediction_seconds": round(predicted["seconds"], 3),
    }


def table_of(cells: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each dataset, way and share: medians of seconds and memory, the mean of the accuracy."""
    rows = []
    for dataset, way, share in dict.fromkeys((cell["dataset"], cell["way"], cell["share"]) for cell in cells):
        found = [cell for cell in cells if (cell["dataset"], cell["way"], cell["share"]) == (dataset, way, share)]
        accuracies = [cell["accuracy"] for cell in found]
        rows.append(
            {
                "dataset": dataset,
                "labels": found[0]["labels"],
                "way": way,
                "share": share,
                "peer": found[0]["peer"],
                "runs": len(found),
                "seconds": statistics.median(cell["seconds"] for cell in found),
                "steps": found[0]["steps"],
                "accuracy": round(statistics.mean(accuracies), 4),
                "accuracies": accuracies,
                "accuracy_sd": round(statistics.stdev(accuracies), 4) if len(found) > 1 else None,
                "peak_megabytes": round(statistics.median(cell["peak_megabytes"] for cell in found), 1),
            }
        )
    return rows


def gain(row: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """How much more accurate one way is than another, over the turns that both have had."""
    pairs = zip(row["accuracies"], other["accuracies"], strict=False)
    return round(float(statistics.mean(one - two for one, two in pairs)), 4)


def time_to_reach(
    table: Sequence[Mapping[str, Any]], dataset: str, target: Mapping[str, Any], way: str = "maskmatch"
) -> dict[str, Any] | None:
    """The quickest of maskmatch's runs from one encoder that is at least as accurate as another way."""
    names = {way, *(HURRIES if ENCODERS.get(way) == EMBEDDED_MODEL else ())}
    found = [dict(row) for row in table if row["dataset"] == dataset and row["way"] in names and gain(row, target) >= 0]
    return min(found, key=lambda row: float(row["seconds"]), default=None)
