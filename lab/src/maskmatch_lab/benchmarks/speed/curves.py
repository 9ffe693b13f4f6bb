"""Cost curves: a training step, prediction and memory over the number of labels and over the length of texts.

Label names are made of words of real texts, and texts of a given length of their running words. All points of a picture
are measured in turns. Memory is the peak of a separate process that runs one step or one prediction.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from maskmatch.model.encoder import EMBEDDED_MODEL
from maskmatch_lab.benchmarks.common import load_split
from maskmatch_lab.benchmarks.material import make_texts, words_of
from maskmatch_lab.benchmarks.peers.process import PeerError
from maskmatch_lab.benchmarks.peers.table import OURS
from maskmatch_lab.benchmarks.speed.rounds import Work, alternate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from maskmatch_lab.benchmarks.speed.session import Session
    from maskmatch_lab.benchmarks.speed.sizes import Sizes

DATASET = "banking77"
MOST_COUNTED = 1000
"""The largest number of labels for a logistic regression (tf-idf, SetFit), with one row per label."""

EXACT = "maskmatch, exact search"
OURS_AUTO = "maskmatch"
SEARCHES = {"exact": "exact", "by an index": "approximate"}
FULL, SAMPLED = "maskmatch, all labels read", "maskmatch, labels sampled"


def measure(session: Session) -> dict[str, Any]:
    """All curves, and the share of peak performance."""
    texts = load_split(session.data, DATASET, "train").texts
    build: dict[str, Callable[[Sizes, str, Sequence[Any]], list[Work]]] = {
        "step_labels": step_labels,
        "prediction_labels": prediction_labels,
        "step_length": step_length,
        "prediction_length": prediction_length,
        "search": search,
    }
    curves: dict[str, Any] = {}
    for name, works_of in build.items():
        works = works_of(session.sizes, session.encoder, texts)
        cell = session.kept.measured(
            f"curves-{name}",
            {"sizes": session.sizes.to_dict(), "works": [asdict(work) for work in works]},
            lambda works=works: _round(session, works),  # type: ignore[misc]
        )
        curves[name] = {"measured": cell["measured"], "points": cell["found"]}
        if name != "search":
            curves[f"{name}_memory"] = {"points": _memories(session, name, works, cell["found"])}
    curves["peak"] = _share_of_peak(session, texts)
    return curves


def step_labels(sizes: Sizes, encoder: str, texts: Sequence[Any]) -> list[Work]:
    """Training steps over the number of labels."""
    batch, words = list(texts[: sizes.batch]), words_of(texts)
    common = {"texts": batch, "words": words}
    ours = {**common, "model": EMBEDDED_MODEL}
    works = []
    for labels in sizes.labels:
        mixed = labels > sizes.most_read
        works.append(Work(OURS_AUTO, OURS, "step", {**ours, "labels": labels, "mixed": mixed}, 1, labels))
        same = {**common, "labels": labels, "model": encoder}
        if labels <= sizes.most_head:
            works.append(Work("bare loop, head", "bare loop", "step", {**same, "way": "head"}, 1, labels))
        if labels <= sizes.most_read:
            works.append(_setfit(sizes, same, labels))
        if labels <= sizes.most_full:
            full = {**ours, "labels": labels, "label_encoding": "full"}
            works.append(Work(FULL, OURS, "step", full, 1, labels))
            works.append(Work(SAMPLED, OURS, "step", {**full, "label_encoding": "sampled"}, 1, labels))
            works.append(Work("bare loop, names", "bare loop", "step", {**same, "way": "names"}, 1, labels))
            works.append(_gliclass(sizes, same, labels))
    return works


def prediction_labels(sizes: Sizes, encoder: str, texts: Sequence[Any]) -> list[Work]:
    """Prediction over the number of labels, in seconds per text."""
    words, rows = words_of(texts), list(texts[: sizes.curve_texts])
    works = []
    for labels in sizes.labels:
        mixed = labels > sizes.most_read
        made = {"words": words, "labels": labels, "mixed": mixed}
        ours = {"texts": rows, **made}
        works += [
            Work(name, OURS, "prediction", {**ours, "search": search}, len(rows), labels, search, rows)
            for name, search in ((OURS_AUTO, "auto"), (EXACT, "exact"))
        ]
        works += _others(sizes, encoder, rows, made, labels)
    return works


def step_length(sizes: Sizes, encoder: str, texts: Sequence[Any]) -> list[Work]:
    """Training steps over the length of texts."""
    words, labels = words_of(texts), sizes.length_labels
    works = []
    for length in sizes.lengths:
        common = {"texts": make_texts(texts, length, sizes.batch), "words": words, "labels": labels}
        same = {**common, "model": encoder}
        works.append(Work(OURS_AUTO, OURS, "step", {**common, "model": EMBEDDED_MODEL}, 1, length))
        works += [
            Work(f"bare loop, {way}", "bare loop", "step", {**same, "way": way}, 1, length) for way in ("head", "names")
        ]
        works.append(_setfit(sizes, same, length))
        works.append(_gliclass(sizes, same, length))
    return works


def prediction_length(sizes: Sizes, encoder: str, texts: Sequence[Any]) -> list[Work]:
    """Prediction over the length of texts, in seconds per text."""
    words, labels = words_of(texts), sizes.length_labels
    works = []
    for length in sizes.lengths:
        rows: list[Any] = make_texts(texts, length, sizes.length_texts)
        made = {"words": words, "labels": labels}
        works += [
            Work(name, OURS, "prediction", {"texts": rows, **made, "runtime": runtime}, len(rows), length)
            for name, runtime in ((OURS_AUTO, "torch"), ("maskmatch, ONNX int8", "int8"))
        ]
        works += _others(sizes, encoder, rows, made, length)
    return works


def search(sizes: Sizes, _: str, texts: Sequence[Any]) -> list[Work]:
    """The search over labels alone, in seconds per text: from which number of labels on an index is faster."""
    words, rows = words_of(texts), list(texts[: sizes.curve_texts])
    return [
        Work(name, OURS, "search", {**settings, "search": kind}, len(rows), labels, kind)
        for labels in sizes.searched
        for settings in [{"texts": rows, "words": words, "labels": labels}]
        for name, kind in SEARCHES.items()
    ]


def _others(sizes: Sizes, encoder: str, rows: Sequence[Any], made: dict[str, Any], size: int) -> list[Work]:
    few, fewer = rows[: sizes.prompt_texts], rows[: sizes.cross_texts]
    same = {**made, "model": encoder}
    ways = {"sentence-transformers": "sentence-transformers", "bare loop, encoder only": "bare loop"}
    if made["labels"] <= MOST_COUNTED:
        ways |= {"SetFit": "SetFit", "tf-idf + logistic regression": "tf-idf"}
    works = [Work(name, peer, "prediction", {"texts": rows, **same}, len(rows), size) for name, peer in ways.items()]
    works.append(
        Work("cross-encoder, untrained", "cross-encoder", "prediction", {"texts": fewer, **same}, len(fewer), size)
    )
    works.append(Work("GLiClass, untrained", "GLiClass", "prediction", {"texts": few, **same}, len(few), size))
    return works


def _setfit(sizes: Sizes, settings: dict[str, Any], size: int) -> Work:
    steps = sizes.setfit_steps
    return Work("SetFit, 16 pairs", "SetFit", "step", {**settings, "steps": steps}, steps, size)


def _gliclass(sizes: Sizes, settings: dict[str, Any], size: int) -> Work:
    few = settings["texts"][: sizes.prompt_batch]
    return Work("GLiClass, untrained", "GLiClass", "step", {**settings, "texts": few}, len(few) / sizes.batch, size)


def _round(session: Session, works: Sequence[Work]) -> list[dict[str, Any]]:
    points = alternate(session.crew, works, session.sizes.repeats, session.sizes.limit)
    exact = {point.work.size: point.answers for point in points if point.work.curve == EXACT}
    rows = []
    for point in points:
        row = point.to_dict()
        right = exact.get(point.work.size)
        if point.work.curve == OURS_AUTO and point.answers and right:
            same = sum(ours == other for ours, other in zip(point.answers, right, strict=True))
            row["recall"] = round(same / len(right), 4)
        rows.append(row)
    return rows


def _memories(
    session: Session, name: str, works: Sequence[Work], points: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The peak memory of a separate process for each measured point."""
    rows = []
    sizes = session.sizes.memory_labels if name.endswith("_labels") else session.sizes.memory_lengths
    for work, point in zip(works, points, strict=True):
        # An export is made in the same process, so its memory would include that of torch.
        exported = work.settings.get("runtime", "torch") != "torch"
        if "ended" in point or work.size not in sizes or exported:
            continue
        row: dict[str, Any] = {"way": work.curve, "peer": work.peer, "size": work.size}
        try:
            cell = session.kept.measured(
                f"curves-{name}-memory",
                {"work": asdict(work), "sizes": session.sizes.to_dict()},
                lambda work=work: _memory(session, work),  # type: ignore[misc]
            )
        except PeerError as error:  # not cached: it may succeed another time
            rows.append({**row, "ended": str(error)})
        else:
            rows.append({**row, **cell["found"]})
    return rows


def _memory(session: Session, work: Work) -> dict[str, Any]:
    process = session.crew.start(work.peer)
    try:
        process.ask("prepare", name="once", kind=work.kind, settings=dict(work.settings))
        return {"megabytes": round(process.ask("run", name="once")["peak_megabytes"], 1)}
    finally:
        process.close()


def _share_of_peak(session: Session, texts: Sequence[Any]) -> dict[str, Any]:
    """Operations per second of a training step and of large matrix products, in turns."""
    sizes = session.sizes
    batch, words = list(texts[: sizes.batch]), words_of(texts)
    settings = {"texts": batch, "words": words, "labels": sizes.length_labels}
    works = [
        Work("matrix products", "bare loop", "matrix products", {}),
        Work("maskmatch", OURS, "step", {**settings, "model": EMBEDDED_MODEL}),
        Work("bare loop, names", "bare loop", "step", {**settings, "model": session.encoder, "way": "names"}),
    ]

    def measured() -> dict[str, Any]:
        points = {point["way"]: point for point in _round(session, works)}
        counting = {**settings, "model": EMBEDDED_MODEL}
        session.crew.ask(OURS, "prepare", name="count", kind="operations", settings=counting)
        operations = session.crew.ask(OURS, "run", name="count")["operations"]
        session.crew.ask(OURS, "drop", name="count")
        peak = points["matrix products"]["operations"] / points["matrix products"]["seconds"]
        ours = operations / points["maskmatch"]["seconds"]
        return {
            "labels": sizes.length_labels,
            "operations_a_step": operations,
            "peak_gigaflops": round(peak / 1e9, 2),
            "training_gigaflops": round(ours / 1e9, 2),
            "share": round(ours / peak, 4),
            "step_seconds": {name: points[name]["seconds"] for name in points if name != "matrix products"},
        }

    return dict(session.kept.measured("curves-peak", {"sizes": sizes.to_dict()}, measured)["found"])
