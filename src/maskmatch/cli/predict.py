"""``maskmatch predict``: classify with a trained classifier; also what ``classify`` prints with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskmatch.cli import options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from maskmatch.classifier import MaskMatcher
    from maskmatch.data import Examples


def predict(
    *,
    folder: options.SavedFolder,
    texts: options.Texts,
    threshold: options.Threshold = None,
    search: options.Search = None,
    device: options.Device = None,
    top_k: options.TopK = 3,
    batch_size: options.BatchSize = 64,
    reading: options.Reading,
    json: options.AsJson = False,  # taken by every command; here the output is JSON lines anyway
) -> None:
    """Classify texts; prints one JSON object a line: label, probability, top_k (or labels, if there may be several)."""
    from maskmatch import MaskMatcher

    matcher = MaskMatcher.from_pretrained(
        options.saved_classifier(folder),
        threshold=threshold,
        search=None if search is None else search.value,
        device=device,
    )
    print_predictions(matcher, texts.chunks(matcher.config.prompt.fields, reading), top_k, batch_size)


def print_predictions(matcher: MaskMatcher, chunks: Iterable[Examples], top_k: int, batch_size: int) -> None:
    """Print predictions as JSON lines, in the order of the texts, a chunk at a time."""
    for chunk in chunks:
        if not chunk.texts:
            continue
        rows = range(len(chunk)) if chunk.row_numbers is None else chunk.row_numbers
        if matcher.config.multi_label:
            lists = matcher.top_k(chunk.texts, len(matcher.labels or ()), batch_size=batch_size)
        else:
            lists = matcher.top_k(chunk.texts, top_k, batch_size=batch_size)
        for row, pairs in zip(rows, lists, strict=True):
            options.print_json({"row": row, **_answer(matcher, pairs, top_k)}, indent=None)


def _answer(matcher: MaskMatcher, pairs: list[Any], top_k: int) -> dict[str, Any]:
    ranked = [{"label": label, "probability": round(value, 6)} for label, value in pairs]
    if matcher.config.multi_label:
        chosen = [label for label, value in pairs if value >= matcher.config.threshold]
        return {"labels": chosen, "top_k": ranked[:top_k]}
    return {**ranked[0], "top_k": ranked}
