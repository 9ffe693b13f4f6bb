"""``maskmatch train``: train a classifier on labelled rows and save it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from maskmatch.cli import options

if TYPE_CHECKING:
    from maskmatch.classifier import MaskMatcher
    from maskmatch.data import Examples

RUN = "Training"


def train(
    *,
    train: Annotated[str, typer.Argument(help="Labelled rows: CSV, TSV, JSON, JSONL or Parquet, also gzipped.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to save the classifier in.")],
    dev: Annotated[str | None, typer.Option(help="Labelled rows to choose the best weights by.")] = None,
    task: options.TaskName = None,
    method: options.MethodName = None,
    model: options.ModelName = None,
    shots: Annotated[int | None, typer.Option(help="Draw this many rows a label.", min=1)] = None,
    fraction: Annotated[float | None, typer.Option(help="Draw this part of the rows of each label.")] = None,
    seed: options.Seed = 0,
    prompt: options.InputPrompt = None,
    label_prompt: options.LabelPrompt = None,
    labels: Annotated[str | None, typer.Option(help="Label names, or a file of labels with descriptions.")] = None,
    similarity: Annotated[str | None, typer.Option(help="cosine or dot.")] = None,
    max_length: options.MaxLength = None,
    multi_label: options.MultiLabel = None,
    threshold: options.Threshold = None,
    device: options.Device = None,
    epochs: Annotated[float | None, typer.Option(help="Passes over the rows.", rich_help_panel=RUN)] = None,
    learning_rate: Annotated[float, typer.Option(help="The peak rate.", rich_help_panel=RUN)] = 2e-4,
    batch_size: Annotated[int, typer.Option(help="Texts a step.", min=1, rich_help_panel=RUN)] = 32,
    hold: Annotated[
        float, typer.Option(help="How much vectors are held where they were before training.", rich_help_panel=RUN)
    ] = 0.0,
    label_encoding: Annotated[
        options.LabelEncodingName,
        typer.Option(help="Whether a step reads all labels, or those that matter to it.", rich_help_panel=RUN),
    ] = options.LabelEncodingName.auto,
    patience: Annotated[
        int | None, typer.Option(help="Stop after so many looks at dev without a gain.", rich_help_panel=RUN)
    ] = None,
    checkpoints: Annotated[
        Path | None, typer.Option(help="A folder for checkpoints, to resume from.", rich_help_panel=RUN)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last checkpoint.", rich_help_panel=RUN)
    ] = False,
    text_field: options.TextField = None,
    label_field: options.LabelField = None,
    field: options.Field = None,
    encoding: options.Encoding = "utf-8",
    format: options.Format = None,  # noqa: A002
    skip_bad_rows: options.SkipBadRows = False,
    json: options.AsJson = False,
) -> None:
    """Train a classifier and save it."""
    if shots is not None and fraction is not None:
        raise typer.BadParameter("give --shots or --fraction, not both.", param_hint="--fraction")
    if threshold is not None and dev is not None:
        raise typer.BadParameter("the dev data decides on the threshold; give one of them.", param_hint="--threshold")
    reading = options.reading_options(
        text_field=text_field,
        label_field=label_field,
        field=field,
        encoding=encoding,
        format=format,
        skip_bad_rows=skip_bad_rows,
    )

    from maskmatch import MaskMatcher, TrainingConfig
    from maskmatch.label_files import load_labels
    from maskmatch.saving import check_target

    output = output.expanduser()
    check_target(output)  # before the work, not after it
    config = TrainingConfig(
        epochs=epochs,
        learning_rate=learning_rate,
        batch_size=batch_size,
        hold=hold,
        label_encoding=label_encoding.value,
        seed=seed,
        patience=patience,
        checkpoints=checkpoints,
        resume=resume,
    )
    matcher = MaskMatcher.from_pretrained(
        model,
        labels=None if labels is None else load_labels(labels),
        task=task,
        prompt=prompt,
        label_prompt=label_prompt,
        method=method,
        similarity=similarity,  # type: ignore[arg-type]  # checked there
        max_length=max_length,
        multi_label=multi_label,
        threshold=threshold,
        device=device,
    )
    fields = matcher.config.prompt.fields
    rows = _drawn(options.load_rows(train, fields, reading), shots, fraction, seed)
    dev_rows = None if dev is None else options.load_rows(dev, fields, reading)
    dev_pair = None if dev_rows is None else (dev_rows.texts, dev_rows.labels)
    matcher.fit(rows.texts, rows.labels, dev=dev_pair, training=config)
    matcher.save_pretrained(output)
    _print_summary(matcher, output, json)


def _drawn(rows: Examples, shots: int | None, fraction: float | None, seed: int) -> Examples:
    from maskmatch.data import Examples, draw_fraction, draw_shots

    assert rows.labels is not None
    if shots is None and fraction is None:
        return rows
    if shots is not None:
        drawn = draw_shots(rows.labels, shots, seed)
    else:
        assert fraction is not None
        drawn = draw_fraction(rows.labels, fraction, seed)
    options.tell(f"drew {len(drawn)} of {len(rows)} rows")
    return Examples([rows.texts[row] for row in drawn], [rows.labels[row] for row in drawn])


def _print_summary(matcher: MaskMatcher, output: Path, json: bool) -> None:
    summary = matcher.training_
    assert summary is not None
    if json:
        options.print_json({"folder": str(output), **asdict(summary)})
        return
    lines = [
        f"trained on {summary.texts} texts with {summary.labels} labels: {summary.steps} steps in "
        f"{summary.seconds:.0f} s"
    ]
    if summary.dev is not None:
        lines.append("on dev: " + ", ".join(f"{name} {value:.4f}" for name, value in summary.dev.items()))
    lines += [*summary.notes, f"saved in {output}"]
    typer.echo("\n".join(lines))
