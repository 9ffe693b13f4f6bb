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
    novelty: options.Novelty = False,
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
    print_predictions(matcher.pipeline, chunks, top_k, batch_size, none_label, novelty=novelty)


def print_predictions(
    pipeline: Pipeline,
    chunks: Iterable[Examples],
    top_k: int,
    batch_size: int,
    none_label: str | None = None,
    *,
    novelty: bool = False,
) -> None:
    """Print predictions as JSON lines, in the order of the texts, chunk by chunk."""
    from maskmatch.prediction.answers import DIGITS, json_answer

    several = pipeline.config.multi_label
    threshold = pipeline.least_threshold() if several else None
    filled = (chunk for chunk in chunks if chunk.texts)
    for chunk, _, lists, far in pipeline.stream(filled, top_k, batch_size, threshold=threshold, novelty=novelty):
        rows = range(len(chunk)) if chunk.row_numbers is None else chunk.row_numbers
        for place, (row, ranked) in enumerate(zip(rows, lists, strict=True)):
            applying = pipeline.applying(ranked) if several else None
            answer = json_answer(ranked, top_k, applying, abstain=pipeline.config.abstain, none_label=none_label)
            more = {} if far is None else {"novelty": round(float(far[place]), DIGITS)}
            options.print_json({"row": row, **answer, **more}, indent=None)
