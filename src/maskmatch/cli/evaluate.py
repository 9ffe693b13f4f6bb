"""``maskmatch evaluate``: measure a classifier on labelled rows."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from maskmatch.cli import options


def evaluate(
    *,
    folder: Annotated[str, typer.Argument(help="The folder of a saved classifier or of an export, or a hub id.")],
    test: Annotated[str, typer.Argument(help="Labelled rows: CSV, TSV, JSON, JSONL or Parquet, also gzipped.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A folder for report.html, report.json and report.txt."),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="What the score is, e.g. macro-f1; the task's usual metric if left out.")
    ] = None,
    threshold: options.Threshold = None,
    device: options.Device = None,
    batch_size: options.BatchSize = 32,
    text_field: options.TextField = None,
    label_field: options.LabelField = None,
    field: options.Field = None,
    encoding: options.Encoding = "utf-8",
    format: options.Format = None,  # noqa: A002
    skip_bad_rows: options.SkipBadRows = False,
    json: options.AsJson = False,
) -> None:
    """Measure a classifier: the task's metric, accuracy, F1, calibration, a table of labels, the worst confusions."""
    from maskmatch.evaluation import find_metric

    if metric is not None:
        find_metric(metric)  # before anything is loaded
    reading = options.reading_options(
        text_field=text_field,
        label_field=label_field,
        field=field,
        encoding=encoding,
        format=format,
        skip_bad_rows=skip_bad_rows,
    )
    matcher = options.load_predictor(folder, threshold=threshold, device=device)
    rows = options.load_rows(test, matcher.config.prompt.fields, reading)
    report = matcher.evaluate(rows.texts, rows.labels, metric=metric, data=test, batch_size=batch_size)
    if output is not None:
        report.save(output)
        options.tell(f"report saved in {output}")
    if json:
        options.print_json(report.to_dict())
    else:
        typer.echo(str(report))
