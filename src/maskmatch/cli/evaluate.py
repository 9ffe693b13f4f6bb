"""``maskmatch evaluate``: evaluate a classifier on labelled rows, or how well labels can be added to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskmatch.cli import evaluated, options
from maskmatch.cli.groups import Options, SettingsOf
from maskmatch.config.settings import Declared, declared
from maskmatch.config.training import TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from maskmatch.data import Examples
    from maskmatch.label_tools.leave_out import LeftOutReport


def _training_settings() -> list[Declared]:
    """The settings of training that are no options of evaluate already."""
    return [each for each in declared(TrainingConfig) if each.name not in ("batch_size", "checkpoints", "resume")]


def evaluate(
    *,
    folder: Annotated[
        str | None,
        typer.Argument(
            metavar="FOLDER",
            help="The folder of a saved classifier or of an export, or a hub id; or label names, separated by commas, "
            "or a file of labels, to evaluate names alone. Leave it out with --labels.",
        ),
    ] = None,
    test: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="Labelled rows: CSV, TSV, JSON, JSONL or Parquet, also gzipped."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="Evaluate these label names, separated by commas, or a file of labels, without training."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A folder for report.html, report.json, report.txt, predictions.csv and mistakes.csv.",
        ),
    ] = None,
    tables: evaluated.EvaluatedTables,
    metric: Annotated[
        str | None, typer.Option(help="The metric of the score, e.g. macro-f1; default: the task's.")
    ] = None,
    leave_labels_out: Annotated[
        float | None,
        typer.Option(
            help="Train without this share of the labels, add them afterwards, and evaluate; needs --train.",
        ),
    ] = None,
    train: Annotated[str | None, typer.Option(help="Labelled rows to train on, with --leave-labels-out.")] = None,
    shots: Annotated[int | None, typer.Option(help="Draw this many training rows per label.", min=1)] = None,
    draws: Annotated[int, typer.Option(help="How many times labels are drawn to be left out.", min=1)] = 3,
    reference: Annotated[
        bool, typer.Option("--reference", help="With --leave-labels-out: also train on all labels, to compare.")
    ] = False,
    training: Annotated[Options, SettingsOf(_training_settings, panel=options.TRAINING, optional=True)],
    classifier: options.Classifier,
    batch_size: options.BatchSize = 32,
    reading: options.LabelledReading,
    json: options.AsJson = False,
) -> None:
    """Evaluate a classifier: the task's metric, accuracy, F1, calibration, metrics per label, the worst confusions."""
    from maskmatch.evaluation import find_metric

    source, test, classifier = _source(folder, test, labels, classifier)
    tables.check(test, output)
    if metric is not None:
        find_metric(metric)  # before anything is loaded
    if output is not None and output.exists() and not output.is_dir():
        raise typer.BadParameter(f"{output} is a file; give a folder.", param_hint="--output")
    if output is not None and options.holds_classifier(output):
        raise typer.BadParameter(f"{output} holds a classifier; give another folder.", param_hint="--output")
    with_it = {"--train": train, "--shots": shots, "--reference": reference or None, **_flags(training)}
    without = {"--output": output, "--metric": metric, **tables.given}
    _check_leave_out(leave_labels_out, with_it, without, named=labels is not None or options.names_labels(source))
    config_, load = options.predictor_or_names(source, classifier, named=None if labels is None else True)
    fields, how_read = config_.fields, {"multi_label": config_.multi_label}
    rows = options.load_rows(test, fields, reading, **how_read, keep_rows=tables.wanted or output is not None)
    if leave_labels_out is not None and train is not None:
        few = _draw(options.load_rows(train, fields, reading, **how_read), shots)
        with options.wrong_usage():
            config = TrainingConfig(**training)
        how = {"share": leave_labels_out, "draws": draws, "reference": reference, "training": config}
        options.print_result(_leave_out(source, classifier, few, rows, how), json)
        return
    matcher = load()
    report = matcher.evaluate(rows.texts, rows.labels, metric=metric, data=test, batch_size=batch_size)
    if output is not None:
        report.save(output)
    written = tables.write(matcher, rows, output, config_.multi_label)
    if output is not None:
        options.note(f"report saved in {output}")
    for line in written:
        options.note(line)
    options.print_result(report, json)


def _flags(settings: Options) -> dict[str, Any]:
    """Settings by the names of their options."""
    return {f"--{name.replace('_', '-')}": value for name, value in settings.items()}


def _check_leave_out(
    share: float | None, with_it: Mapping[str, Any], without: Mapping[str, Any], *, named: bool
) -> None:
    """Raise unless labels can be left out of training, or nothing that belongs to it is given.

    Args:
        share: The share of labels to leave out.
        with_it: The options that need it.
        without: The options that do not go with it.
        named: Whether label names are given.
    """
    for name, value in (with_it if share is None else without).items():
        if value is not None:
            goes = "goes" if share is None else "does not go"
            raise typer.BadParameter(f"it {goes} with --leave-labels-out.", param_hint=name)
    if share is None:
        return
    if not 0 < share < 1:
        raise typer.BadParameter(f"{share:g} is not between 0 and 1.", param_hint="--leave-labels-out")
    if with_it["--train"] is None:
        raise typer.BadParameter("--leave-labels-out and --train need each other.", param_hint="--train")
    if not named:
        raise typer.BadParameter(
            "with --leave-labels-out a new classifier is trained: give label names, or a file of labels, such as "
            "`maskmatch labels show FOLDER` writes.",
            param_hint="FOLDER",
        )


def _source(
    folder: str | None, test: str | None, labels: str | None, classifier: options.Classifier
) -> tuple[str, str, options.Classifier]:
    """What is evaluated, the test rows, and the classifier. With --labels, the only argument is the file of rows."""
    if folder is None:
        missing = "FOLDER" if labels is None else "FILE"
        raise typer.BadParameter(
            f"Missing argument: the {'classifier' if labels is None else 'labelled rows'}.", param_hint=missing
        )
    if labels is None:
        if test is None:
            raise typer.BadParameter(
                "Missing argument: the labelled rows; before them the classifier, or its labels with --labels.",
                param_hint="FILE",
            )
        return folder, test, classifier
    if test is None:
        return labels, folder, classifier
    if classifier.model is not None:
        raise typer.BadParameter(f"{folder} is a classifier already; leave it out.", param_hint="--model")
    return labels, test, replace(classifier, model=folder)


def _draw(rows: Examples, shots: int | None) -> Examples:
    """Some rows per label, or all."""
    if shots is None:
        return rows
    from maskmatch.data import Examples, draw_shots

    assert rows.labels is not None
    places = draw_shots(rows.labels, shots, 0)
    return Examples([rows.texts[row] for row in places], [rows.labels[row] for row in places])


def _leave_out(
    labels: str, classifier: options.Classifier, train: Examples, test: Examples, how: dict[str, Any]
) -> LeftOutReport:
    """Leave labels out of training: those of a list, of a file or of a saved classifier."""
    from maskmatch.label_tools.leave_out import leave_labels_out

    given = {"model": classifier.model, "device": classifier.device, **classifier.settings}
    options_of_both: dict[str, Any] = {**how, **given, "labels": options.label_names(labels)}
    return leave_labels_out((train.texts, train.labels), (test.texts, test.labels), **options_of_both)
