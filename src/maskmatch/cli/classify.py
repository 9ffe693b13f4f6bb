"""``maskmatch classify``: zero-shot, with nothing but label names."""

from __future__ import annotations

from typing import Annotated

import typer

from maskmatch.cli import options
from maskmatch.cli.predict import print_predictions


def classify(
    *,
    labels: Annotated[str, typer.Option(help="Label names with commas between them, or a file of labels.")],
    file: Annotated[str | None, typer.Argument(help="A file of texts, or - for standard input.")] = None,
    text: Annotated[list[str] | None, typer.Option(help="A text; may be given several times.")] = None,
    task: options.TaskName = None,
    prompt: options.InputPrompt = None,
    label_prompt: options.LabelPrompt = None,
    method: options.MethodName = None,
    model: options.ModelName = None,
    max_length: options.MaxLength = None,
    multi_label: options.MultiLabel = None,
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
    """Classify texts by label names alone, nothing trained; prints one JSON object a line."""
    from maskmatch import MaskMatcher
    from maskmatch.label_files import load_labels

    reading = options.reading_options(
        text_field=text_field,
        field=field,
        encoding=encoding,
        format=format,
        skip_bad_rows=skip_bad_rows,
    )
    matcher = MaskMatcher.from_pretrained(
        model,
        labels=load_labels(labels),
        task=task,
        prompt=prompt,
        label_prompt=label_prompt,
        method=method,
        max_length=max_length,
        multi_label=multi_label,
        threshold=threshold,
        device=device,
    )
    chunks = options.text_chunks(file, text, matcher.config.prompt.fields, reading)
    print_predictions(matcher, chunks, top_k, batch_size)
