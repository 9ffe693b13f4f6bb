"""Few-shot training: time and accuracy of maskmatch, SetFit, a bare loop and tf-idf, on the same encoder.

maskmatch trains for several shares of its usual epochs, each in a run of its own, because its learning rate decays over
the length of a run. This shows in what share of SetFit's time it reaches SetFit's accuracy. Short runs use twice the
usual rate. The runs of the peers alternate, each turn with other shots and another seed. Long runs have fewer turns,
and two ways are compared by the turns that both have. Accuracy is computed here, from the predictions.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from maskmatch.model.encoder import DEFAULT_MODEL, EMBEDDED_MODEL
from maskmatch_lab.benchmarks.common import label_names, load_split, shots
from maskmatch_lab.benchmarks.peers.table import OURS
from maskmatch_lab.studies.learned_from import LEARNED_FROM

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from maskmatch_lab.benchmarks.speed.session import Session
    from maskmatch_lab.benchmarks.speed.sizes import Sizes

ENCODERS = {"maskmatch": EMBEDDED_MODEL, "maskmatch, default encoder": DEFAULT_MODEL}
"""The names of our ways and their encoders: the same as SetFit's, or with the adapter.

On a dataset that the adapter was trained on, only the first is measured.
"""


LONG_TURNS = 3
"""The number of turns of a run that is neither short nor very long."""

FOR_COST = ("bare loop",)
"""Peers that show the minimal cost of training: their long runs are measured once."""

SHORT, HASTE = 0.5, 2.0
"""Runs with less than the first share of the usual epochs multiply the usual rate by the second."""

HURRIES = {"maskmatch, in a hurry": 1.0, "maskmatch, in less of a hurry": 1.33}
"""Epochs of runs with few large batches, which encode labels less often, with a higher rate and without dropout.
They were chosen on dev rows of clinc150; the page says so."""

IN_A_HURRY = {"batch_size": 128, "rate": 3.0, "dropout": False}


@dataclass(frozen=True)
class Way:
    """A way to train.

    Attributes:
        name: Its name.
        peer: The peer that trains.
        options: Its settings.
        share: The share of maskmatch's usual epochs.
    """

    name: str
    peer: str
    options: Mapping[str, Any] = field(default_factory=dict)
    share: float | None = None


def ways(dataset: str, sizes: Sizes, folder: str) -> list[Way]:
    """All ways of a dataset, with those of maskmatch and of the peers mixed."""
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
            row: dict[str, Any] = {
                "dataset": dataset,
                "way": way.name,
                "share": way.share,
                "peer": way.peer,
                "turn": turn,
            }
            row |= {"labels": len(names), "measured": cell["measured"], **cell["found"]}
            line = ", ".join(str(row.get(name)) for name in ("dataset", "way", "share", "seconds", "accuracy"))
            print(f"  {line}", file=sys.stderr, flush=True)
            if row["seconds"] > sizes.short_seconds:
                once = row["seconds"] > sizes.long_seconds or way.peer in FOR_COST
                turns[way.name, way.share] = 1 if once else LONG_TURNS
            yield row


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
    """A row for each dataset, way and share: medians of time and memory, the mean of the accuracy."""
    rows = []
    for dataset, way, share in dict.fromkeys((cell["dataset"], cell["way"], cell["share"]) for cell in cells):
        own = [cell for cell in cells if (cell["dataset"], cell["way"], cell["share"]) == (dataset, way, share)]
        accuracies = [cell["accuracy"] for cell in own]
        rows.append(
            {
                "dataset": dataset,
                "labels": own[0]["labels"],
                "way": way,
                "share": share,
                "peer": own[0]["peer"],
                "runs": len(own),
                "seconds": statistics.median(cell["seconds"] for cell in own),
                "steps": own[0]["steps"],
                "accuracy": round(statistics.mean(accuracies), 4),
                "accuracies": accuracies,
                "accuracy_sd": round(statistics.stdev(accuracies), 4) if len(own) > 1 else None,
                "peak_megabytes": round(statistics.median(cell["peak_megabytes"] for cell in own), 1),
            }
        )
    return rows


def gain(row: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """The accuracy of one way minus that of another, over the turns that both have."""
    pairs = zip(row["accuracies"], other["accuracies"], strict=False)
    return round(float(statistics.mean(one - two for one, two in pairs)), 4)


def time_to_reach(
    table: Sequence[Mapping[str, Any]], dataset: str, target: Mapping[str, Any], way: str = "maskmatch"
) -> dict[str, Any] | None:
    """The fastest run of maskmatch with one encoder that is at least as accurate as another way."""
    names = {way, *(HURRIES if ENCODERS.get(way) == EMBEDDED_MODEL else ())}
    rows = [dict(row) for row in table if row["dataset"] == dataset and row["way"] in names and gain(row, target) >= 0]
    return min(rows, key=lambda row: float(row["seconds"]), default=None)
