"""``maskmatch predict``: classify with a trained classifier; also what ``classify`` prints with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskmatch.cli import options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from maskmatch.data import Examples
    from maskmatch.predictor import Predictor


def predict(
    *,
    folder: Annotated[str, typer.Argument(help="The folder of a saved classifier or of an export, or a hub id.")],
    file: Annotated[str | None, typer.Argument(help="A file of texts, or - for standard input.")] = None,
    text: Annotated[list[str] | None, typer.Option(help="A text; may be given several times.")] = None,
    threshold: options.Threshold = None,
    device: options.Device = None,
    top_k: options.TopK = 3,
    batch_size: options.BatchSize = 32,
    text_field: options.TextField = None,
    field: options.Field = None,
    encoding: options.Encoding = "utf-8",
    format: options.Format = None,  # noqa: A002
    skip_bad_rows: options.SkipBadRows = False,
    json: options.AsJson = False,  # taken by every command; here the output is JSON lines anyway
) -> None:
    """Classify texts; prints one JSON object a line: label, probability, top_k (or labels, if there may be several)."""
    reading = options.reading_options(
        text_field=text_field,
        field=field,
        encoding=encoding,
        format=format,
        skip_bad_rows=skip_bad_rows,
    )
    matcher = options.load_predictor(folder, threshold=threshold, device=device)
    chunks = options.text_chunks(file, text, matcher.config.prompt.fields, reading)
    print_predictions(matcher, chunks, top_k, batch_size)


def print_predictions(matcher: Predictor, chunks: Iterable[Examples], top_k: int, batch_size: int) -> None:
    """Print predictions as JSON lines, in the order of the texts, a chunk at a time."""
    count = len(matcher.labels or ()) if matcher.config.multi_label else top_k
    for chunk, lists in matcher.stream((chunk for chunk in chunks if chunk.texts), count, batch_size=batch_size):
        rows = range(len(chunk)) if chunk.row_numbers is None else chunk.row_numbers
        for row, pairs in zip(rows, lists, strict=True):
            options.print_json({"row": row, **_answer(matcher, pairs, top_k)}, indent=None)


def _answer(matcher: Predictor, pairs: list[Any], top_k: int) -> dict[str, Any]:
    ranked = [{"label": label, "probability": round(value, 6)} for label, value in pairs]
    if matcher.config.multi_label:
        chosen = [label for label, value in pairs if value >= matcher.config.threshold]
        return {"labels": chosen, "top_k": ranked[:top_k]}
    return {**ranked[0], "top_k": ranked}
