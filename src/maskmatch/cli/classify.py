"""``maskmatch classify``: zero-shot, with nothing but label names."""

from __future__ import annotations

from typing import Annotated

import typer

from maskmatch.cli import options  # noqa: TC001 - typer reads the annotations
from maskmatch.cli.predict import print_predictions


def classify(
    *,
    labels: Annotated[str, typer.Option(help="Label names with commas between them, or a file of labels.")],
    texts: options.Texts,
    classifier: options.Classifier,
    search: options.Search = None,
    top_k: options.TopK = 3,
    batch_size: options.BatchSize = 32,
    reading: options.Reading,
    json: options.AsJson = False,  # taken by every command; here the output is JSON lines anyway
) -> None:
    """Classify texts by label names alone, nothing trained; prints one JSON object a line."""
    from maskmatch.label_files import load_labels

    matcher = classifier.load(load_labels(labels), search=search, method=classifier.untrained_method())
    print_predictions(matcher, texts.chunks(matcher.config.fields, reading), top_k, batch_size)
