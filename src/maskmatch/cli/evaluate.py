"""``maskmatch evaluate``: measure a classifier on labelled rows."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from maskmatch.cli import options


def evaluate(
    *,
    folder: options.PredictingFolder,
    test: options.LabelledFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A folder for report.html, report.json and report.txt."),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="The metric of the score, e.g. macro-f1; default: the task's.")
    ] = None,
    threshold: options.Threshold = None,
    abstain: options.Abstain = None,
    device: options.Device = None,
    verify: options.Verify = True,
    batch_size: options.BatchSize = 32,
    reading: options.LabelledReading,
    json: options.AsJson = False,
) -> None:
    """Evaluate a classifier: the task's metric, accuracy, F1, calibration, metrics per label, the worst confusions."""
    from maskmatch.evaluation import find_metric

    if metric is not None:
        find_metric(metric)  # before anything is loaded
    if output is not None and output.exists() and not output.is_dir():
        raise typer.BadParameter(f"{output} is a file; give a folder.", param_hint="--output")
    options.saved_classifier(folder)
    rows = options.load_rows(test, options.config_of(folder, {}).fields, reading)
    matcher = options.load_predictor(folder, threshold=threshold, abstain=abstain, device=device, verify=verify)
    report = matcher.evaluate(rows.texts, rows.labels, metric=metric, data=test, batch_size=batch_size)
    if output is not None:
        report.save(output)
        options.note(f"report saved in {output}")
    if json:
        options.print_json(report.to_dict())
    else:
        typer.echo(str(report))
