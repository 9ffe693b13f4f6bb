"""``maskmatch labels check``: what may be wrong with label names, before training and after."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from maskmatch.cli import options
from maskmatch.cli.expand import LabelsArgument, UnlabelledFile, config_for, load_texts, load_with_labels


def check(
    *,
    labels: LabelsArgument,
    texts: UnlabelledFile = None,
    test: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Labelled rows: what is taken for what; edits of labels are tried on them."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A web page to write, with the map of labels: .html.")
    ] = None,
    improved: Annotated[
        Path | None,
        typer.Option(help="A label file to write, .json: the labels with all edits that helped; needs --test."),
    ] = None,
    classifier: options.Classifier,
    reading: options.LabelledReading,
    json: options.AsJson = False,
) -> None:
    """Look for names that say little, are too close to one another, or that no text comes near."""
    from maskmatch.label_tools.check import check_labels
    from maskmatch.labels.files import save_labels

    options.check_page(output)
    if improved is not None and improved.suffix.lower() != ".json":
        raise typer.BadParameter(f"{improved} does not end in .json.", param_hint="--improved")
    if improved is not None and test is None:
        raise typer.BadParameter("edits can only be tried on labelled rows; give --test.", param_hint="--improved")
    config = config_for(labels, classifier)
    fields, several = config.input_fields, config.multi_label
    unlabelled = load_texts(texts, fields, reading)
    rows = None if test is None else options.load_rows(test, fields, reading, multi_label=several)
    report = check_labels(
        load_with_labels(labels, classifier),
        texts=unlabelled,
        test=None if rows is None else (rows.texts, rows.labels),
    )
    if output is not None:
        options.note(f"written to {report.save(output)}")
    if improved is not None:
        assert report.improved is not None
        save_labels(report.improved, improved)
        options.note(f"written to {improved}; use it with --labels {improved}")
    options.print_result(report, json)
