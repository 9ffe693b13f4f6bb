"""``maskmatch train``: train a classifier on labelled rows and save it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from maskmatch.cli import options
from maskmatch.training_config import MAX_TOKENS

if TYPE_CHECKING:
    from maskmatch.classifier import MaskMatcher
    from maskmatch.data import Examples
    from maskmatch.training_config import TrainingConfig


@dataclass(frozen=True)
class Draw:
    """Which of the rows to train on."""

    shots: Annotated[int | None, typer.Option(help="Draw this many rows a label.", min=1)] = None
    fraction: Annotated[float | None, typer.Option(help="Draw this part of the rows of each label.")] = None

    def __post_init__(self) -> None:
        if self.shots is not None and self.fraction is not None:
            raise typer.BadParameter("give --shots or --fraction, not both.", param_hint="--fraction")
        if self.fraction is not None:
            from maskmatch.data import draw_fraction

            with options.wrong_usage("--fraction"):
                draw_fraction(("a", "b"), self.fraction, seed=0)

    def of(self, rows: Examples, seed: int) -> Examples:
        """The rows that are drawn."""
        from maskmatch.data import Examples, draw_fraction, draw_shots

        assert rows.labels is not None
        if self.shots is not None:
            drawn = draw_shots(rows.labels, self.shots, seed)
        elif self.fraction is not None:
            drawn = draw_fraction(rows.labels, self.fraction, seed)
        else:
            return rows
        options.tell(f"drew {len(drawn)} of {len(rows)} rows")
        return Examples([rows.texts[row] for row in drawn], [rows.labels[row] for row in drawn])


@dataclass(frozen=True)
class Training:
    """How to train."""

    epochs: options.Epochs = None
    learning_rate: Annotated[
        float | None,
        typer.Option(help="The peak rate; what suits the method if left out.", rich_help_panel=options.TRAINING),
    ] = None
    batch_size: options.StepSize = 32
    max_tokens: Annotated[
        int,
        typer.Option(help="Tokens of texts a step at most.", min=1, rich_help_panel=options.TRAINING),
    ] = MAX_TOKENS
    hold: Annotated[
        float,
        typer.Option(
            help="How much vectors are held where they were before training.", rich_help_panel=options.TRAINING
        ),
    ] = 0.0
    label_encoding: options.WhichLabels = "auto"
    example_share: Annotated[
        float | None,
        typer.Option(
            help="The share that a label's training texts have in its vector, if there are many; 0: its name alone.",
            rich_help_panel=options.TRAINING,
        ),
    ] = None
    dropout: Annotated[
        bool | None,
        typer.Option(
            "--dropout/--no-dropout",
            help="Whether the encoder is trained with dropout; what suits the method if left out.",
            rich_help_panel=options.TRAINING,
        ),
    ] = None
    patience: Annotated[
        int | None,
        typer.Option(help="Stop after so many looks at dev without a gain.", rich_help_panel=options.TRAINING),
    ] = None
    checkpoints: options.Checkpoints = None
    resume: options.Resume = False

    def config(self, seed: int) -> TrainingConfig:
        """The same as the library takes it."""
        from maskmatch.training_config import TrainingConfig

        with options.wrong_usage():
            return TrainingConfig(**vars(self), seed=seed)


def train(
    *,
    train: options.LabelledFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to save the classifier in.")],
    dev: Annotated[str | None, typer.Option(help="Labelled rows to choose the best weights by.")] = None,
    draw: Draw,
    seed: options.Seed = 0,
    labels: Annotated[str | None, typer.Option(help="Label names, or a file of labels with descriptions.")] = None,
    classifier: options.Classifier,
    similarity: Annotated[str | None, typer.Option(help="cosine or dot.")] = None,
    training: Training,
    reading: options.LabelledReading,
    json: options.AsJson = False,
) -> None:
    """Train a classifier and save it."""
    if classifier.threshold is not None and dev is not None:
        raise typer.BadParameter("the dev data decides on the threshold; give one of them.", param_hint="--threshold")

    from maskmatch.label_files import load_labels
    from maskmatch.saving import check_target

    output = output.expanduser()
    check_target(output)  # before the work, not after it
    config = training.config(seed)
    matcher = classifier.load(None if labels is None else load_labels(labels), similarity=similarity)
    fields = matcher.config.fields
    rows = draw.of(options.load_rows(train, fields, reading), seed)
    dev_rows = None if dev is None else options.load_rows(dev, fields, reading)
    dev_pair = None if dev_rows is None else (dev_rows.texts, dev_rows.labels)
    matcher.fit(rows.texts, rows.labels, dev=dev_pair, training=config)
    matcher.save_pretrained(output)
    _print_summary(matcher, output, json)


def _print_summary(matcher: MaskMatcher, output: Path, json: bool) -> None:
    summary = matcher.training_
    assert summary is not None
    if json:
        options.print_json({"folder": str(output), **asdict(summary)})
        return
    from maskmatch.evaluation.display import counted

    lines = [
        f"trained on {counted(summary.texts, 'text')} with {counted(summary.labels, 'label')}: "
        f"{counted(summary.steps, 'step')} in {summary.seconds:.0f} s"
    ]
    if summary.dev is not None:
        lines.append("on dev: " + ", ".join(f"{name} {value:.4f}" for name, value in summary.dev.items()))
    lines += [*summary.notes, f"saved in {output}"]
    typer.echo("\n".join(lines))
