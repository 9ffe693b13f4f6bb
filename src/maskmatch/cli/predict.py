"""``maskmatch predict``: classify with a trained classifier; ``classify`` prints with it, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskmatch.cli import options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from maskmatch.data import Examples
    from maskmatch.prediction.pipeline import Pipeline


def predict(
    *,
    folder: options.PredictingFolder,
    texts: options.Texts,
    threshold: options.Threshold = None,
    abstain: options.Abstain = None,
    none_label: options.NoneLabel = None,
    search: options.Search = None,
    device: options.Device = None,
    verify: options.Verify = True,
    top_k: options.TopK = 3,
    batch_size: options.BatchSize = 32,
    reading: options.Reading,
    json: options.AsJson = False,  # taken by every command; here the output is JSON lines anyway
) -> None:
    """Classify texts; prints one JSON object per line: label, probability, top_k (or labels, if several may apply)."""
    options.saved_classifier(folder)
    chunks = texts.chunks(options.config_of(folder, {}).fields, reading)
    matcher = options.load_predictor(
        folder, threshold=threshold, abstain=abstain, device=device, search=search, verify=verify
    )
    print_predictions(matcher.pipeline, chunks, top_k, batch_size, none_label)


def print_predictions(
    pipeline: Pipeline, chunks: Iterable[Examples], top_k: int, batch_size: int, none_label: str | None = None
) -> None:
    """Print predictions as JSON lines, in the order of the texts, chunk by chunk."""
    from maskmatch.prediction.pipeline import json_answer

    threshold = pipeline.config.threshold if pipeline.config.multi_label else None
    filled = (chunk for chunk in chunks if chunk.texts)
    for chunk, _, lists in pipeline.stream(filled, top_k, batch_size, threshold=threshold):
        rows = range(len(chunk)) if chunk.row_numbers is None else chunk.row_numbers
        for row, ranked in zip(rows, lists, strict=True):
            answer = json_answer(ranked, top_k, threshold, abstain=pipeline.config.abstain, none_label=none_label)
            options.print_json({"row": row, **answer}, indent=None)
