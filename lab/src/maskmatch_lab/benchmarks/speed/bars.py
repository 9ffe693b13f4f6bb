"""Targets of maskmatch, as ratios within one run, and whether they are reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from maskmatch_lab.benchmarks.speed import curves, prediction
from maskmatch_lab.benchmarks.speed.training import ENCODERS, gain, time_to_reach

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Sense = Literal["at most", "at least", "above"]
SHARES_OF_TIME = {"banking77": 1 / 6, "clinc150": 1 / 12}
"""The share of SetFit's time in which its accuracy has to be reached."""


def of_part(part: str, result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The targets of a part, with the measured values."""
    return {"training": _training, "prediction": _prediction, "curves": _curves}[part](result)


def _bar(what: str, value: float | None, sense: Sense, bar: float) -> dict[str, Any]:
    met = None
    if value is not None:
        met = {"at most": value <= bar, "at least": value >= bar, "above": value > bar}[sense]
    rounded = None if value is None else float(f"{value:.4g}")
    return {"what": what, "value": rounded, "sense": sense, "bar": round(bar, 4), "met": met}


def _training(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    table: Sequence[Mapping[str, Any]] = result["table"]
    rows = []
    for dataset, bar in SHARES_OF_TIME.items():
        setfit = [row for row in table if row["dataset"] == dataset and row["peer"] == "SetFit"]
        for way in ENCODERS:
            whole = [row for row in table if (row["dataset"], row["way"], row["share"]) == (dataset, way, 1.0)]
            if not whole or not setfit:
                continue
            for row in setfit:
                quickest = time_to_reach(table, dataset, row, way)
                value = None if quickest is None else quickest["seconds"] / row["seconds"]
                what = f"{dataset}, {way}: time to reach the accuracy of {row['way']}, as a share of its time"
                reached = _bar(what, value, "at most", bar)
                rows.append(reached if quickest is not None else {**reached, "met": False, "note": "not reached"})
            what = f"{dataset}, {way}: final accuracy minus that of the best SetFit run"
            rows.append(_bar(what, min(gain(whole[0], row) for row in setfit), "above", 0.0))
    return rows


def _prediction(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    seconds = {point["way"]: point.get("seconds") for point in result["points"]}
    rows = []
    for way, bar in ((prediction.TORCH, 1.0), (prediction.INT8, 2.0), (prediction.INT8_SHORTEST, 2.0)):
        ours, theirs = seconds.get(way), seconds.get(prediction.EMBEDDING)
        what = f"texts per second of {way}, as a multiple of sentence-transformers' encode"
        rows.append(_bar(what, theirs / ours if ours and theirs else None, "at least", bar))
    accuracy = result["accuracy"]
    for way in (prediction.INT8, prediction.INT8_SHORTEST):
        lost = accuracy[prediction.TORCH] - accuracy[way] if way in accuracy else None
        rows.append(_bar(f"loss in accuracy of {way} against torch", lost, "at most", 0.005))
    first = result["first_answer"]["maskmatch predict EXPORT"]["seconds"]
    rows.append(_bar("seconds from start to the first answer on an export", first, "at most", 1.5))
    return rows


def overhead(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The target of ``maskmatch_lab.benchmarks.overhead``."""
    what = "time of a whole training run, as a multiple of the bare loop over the same token batches"
    return [_bar(what, result["time_ratio"], "at most", 1.15)]


def many_labels(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The target of ``maskmatch_lab.benchmarks.many_labels``."""
    means = [result["accuracy"].get(way, {}).get("mean") for way in ("full", "sampled")]
    lost = None if None in means else means[0] - means[1]
    what = f"loss in accuracy on {result['dataset']} with sampled labels instead of all"
    return [_bar(what, lost, "at most", 0.005)]


def _curves(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    most = [point for point in result["prediction_labels"]["points"] if point["size"] == 1_000_000]
    recall = next((point["recall"] for point in most if "recall" in point), None)
    return [
        _bar(
            "training step with 10,000 labels, as a multiple of that with 100",
            ratio(result["step_labels"]["points"], 10_000, 100),
            "at most",
            1.5,
        ),
        _bar(
            "prediction with 1,000,000 labels, as a multiple of that with 10",
            ratio(result["prediction_labels"]["points"], 1_000_000, 10),
            "at most",
            1.5,
        ),
        _bar("recall@1 with 1,000,000 labels", recall, "at least", 0.99),
        _bar(
            "speed of training, as a share of the machine's matrix products", result["peak"]["share"], "at least", 0.5
        ),
    ]


def ratio(points: Sequence[Mapping[str, Any]], size: int, base: int) -> float | None:
    """The time of maskmatch at one size, as a multiple of that at another; None if it was not measured."""
    seconds = {point["size"]: point.get("seconds") for point in points if point["way"] == curves.OURS_AUTO}
    one, other = seconds.get(size), seconds.get(base)
    return one / other if one and other else None
