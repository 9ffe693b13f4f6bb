"""``maskmatch predict``: classify with a trained classifier; also what ``classify`` prints with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskmatch.cli import options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from maskmatch.data import Examples
    from maskmatch.predictor import Predictor


def predict(
    *,
    folder: options.PredictingFolder,
    texts: options.Texts,
    threshold: options.Threshold = None,
    search: options.Search = None,
    device: options.Device = None,
    top_k: options.TopK = 3,
    batch_size: options.BatchSize = 32,
    reading: options.Reading,
    json: options.AsJson = False,  # taken by every command; here the output is JSON lines anyway
) -> None:
    """Classify texts; prints one JSON object a line: label, probability, top_k (or labels, if there may be several)."""
    matcher = options.load_predictor(folder, threshold=threshold, device=device, search=search)
    print_predictions(matcher, texts.chunks(matcher.config.fields, reading), top_k, batch_size)


def print_predictions(matcher: Predictor, chunks: Iterable[Examples], top_k: int, batch_size: int) -> None:
    """Print predictions as JSON lines, in the order of the texts, a chunk at a time."""
    threshold = matcher.config.threshold if matcher.config.multi_label else None
    filled = (chunk for chunk in chunks if chunk.texts)
    for chunk, lists in matcher.stream(filled, top_k, threshold=threshold, batch_size=batch_size):
        rows = range(len(chunk)) if chunk.row_numbers is None else chunk.row_numbers
        for row, pairs in zip(rows, lists, strict=True):
            options.print_json({"row": row, **_answer(matcher, pairs, top_k)}, indent=None)


def _answer(matcher: Predictor, pairs: list[Any], top_k: int) -> dict[str, Any]:
    ranked = [{"label": label, "probability": round(value, 6)} for label, value in pairs]
    if matcher.config.multi_label:
        chosen = [label for label, value in pairs if value >= matcher.config.threshold]
        return {"labels": chosen, "top_k": ranked[:top_k]}
    return {**ranked[0], "top_k": ranked}
