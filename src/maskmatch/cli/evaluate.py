"""``maskmatch evaluate``: evaluate a classifier on labelled rows, or how well labels can be added to it."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskmatch.cli import options
from maskmatch.cli.groups import Options, SettingsOf
from maskmatch.config.settings import Declared, declared
from maskmatch.config.training import TrainingConfig

if TYPE_CHECKING:
    from maskmatch.data import Examples
    from maskmatch.label_tools.leave_out import LeftOutReport


def _training_settings() -> list[Declared]:
    """The settings of training that are no options of evaluate already."""
    return [each for each in declared(TrainingConfig) if each.name not in ("batch_size", "checkpoints", "resume")]


def evaluate(
    *,
    folder: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER",
            help="The folder of a saved classifier or of an export, or a hub id; or label names, separated by commas, "
            "or a file of labels, to evaluate names alone.",
        ),
    ],
    test: options.LabelledFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A folder for report.html, report.json and report.txt."),
    ] = None,
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

    if metric is not None:
        find_metric(metric)  # before anything is loaded
    if output is not None and output.exists() and not output.is_dir():
        raise typer.BadParameter(f"{output} is a file; give a folder.", param_hint="--output")
    if leave_labels_out is not None and not 0 < leave_labels_out < 1:
        raise typer.BadParameter(f"{leave_labels_out:g} is not between 0 and 1.", param_hint="--leave-labels-out")
    if (leave_labels_out is None) != (train is None):
        missing = "--train" if train is None else "--leave-labels-out"
        raise typer.BadParameter("--leave-labels-out and --train need each other.", param_hint=missing)
    if leave_labels_out is not None and not options.names_labels(folder):
        raise typer.BadParameter(
            "with --leave-labels-out a new classifier is trained: give label names, or a file of labels, such as "
            "`maskmatch labels show FOLDER` writes.",
            param_hint="FOLDER",
        )
    if leave_labels_out is None and training:
        raise typer.BadParameter("it goes with --leave-labels-out.", param_hint=f"--{next(iter(training))}")
    if leave_labels_out is None and (shots is not None or reference):
        raise typer.BadParameter(
            "it goes with --leave-labels-out.", param_hint="--reference" if reference else "--shots"
        )
    if leave_labels_out is not None and (output is not None or metric is not None):
        hint = "--output" if output is not None else "--metric"
        raise typer.BadParameter("it does not go with --leave-labels-out.", param_hint=hint)
    fields, load = options.predictor_or_names(folder, classifier)
    rows = options.load_rows(test, fields, reading)
    if leave_labels_out is not None and train is not None:
        few = _draw(options.load_rows(train, fields, reading), shots)
        with options.wrong_usage():
            config = TrainingConfig(**training)
        how = {"share": leave_labels_out, "draws": draws, "reference": reference, "training": config}
        options.print_result(_leave_out(folder, classifier, few, rows, how), json)
        return
    matcher = load()
    report = matcher.evaluate(rows.texts, rows.labels, metric=metric, data=test, batch_size=batch_size)
    if output is not None:
        report.save(output)
        options.note(f"report saved in {output}")
    options.print_result(report, json)


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
