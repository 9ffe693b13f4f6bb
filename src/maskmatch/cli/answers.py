"""Answers for texts, chunk by chunk, and how they are printed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from maskmatch.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from maskmatch.data import Examples
    from maskmatch.prediction.pipeline import Pipeline

    Answers = Iterator[tuple[Examples, list[dict[str, Any]]]]
    """Chunks of texts with an answer per text: label, probability, top_k, …"""

    Answering = Callable[[Iterable[Examples]], Answers]


def answers_of(
    pipeline: Pipeline,
    chunks: Iterable[Examples],
    top_k: int,
    batch_size: int,
    none_label: str | None = None,
    *,
    novelty: bool = False,
) -> Answers:
    """The answers of a classifier, in the order of the texts; the next chunk is read meanwhile."""
    from maskmatch.prediction.answers import json_answers

    threshold = pipeline.least_threshold() if pipeline.config.multi_label else None
    last: list[Examples] = []
    filled = _with_texts(chunks, last)
    for chunk, _, lists, far in pipeline.stream(filled, top_k, batch_size, threshold=threshold, novelty=novelty):
        yield chunk, json_answers(pipeline, lists, far, top_k, none_label=none_label)
    for chunk in last:
        yield chunk, []


def _with_texts(chunks: Iterable[Examples], last: list[Examples]) -> Iterator[Examples]:
    """The chunks that have texts. Rows of others, all of them skipped, go with the next chunk, or into ``last``."""
    waiting = None
    for chunk in chunks:
        if waiting is not None and waiting.table is not None and chunk.table is not None:
            joined = replace(chunk, table=waiting.table + chunk.table)
        else:
            joined = chunk
        waiting = None if joined.texts else joined
        if joined.texts:
            yield joined
    if waiting is not None:
        last.append(waiting)


def print_answers(answers: Answers) -> None:
    """Print answers as JSON lines, in the order of the texts, chunk by chunk."""
    for chunk, found in answers:
        rows = range(len(chunk)) if chunk.row_numbers is None else chunk.row_numbers
        for row, answer in zip(rows, found, strict=True):
            options.print_json({"row": row, **answer}, indent=None)
