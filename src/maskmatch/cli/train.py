"""``maskmatch train``: train a classifier on labelled rows and save it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from maskmatch.cli import options
from maskmatch.cli.groups import Options, SettingsOf
from maskmatch.config.settings import declared
from maskmatch.config.training import CALIBRATED_ON, TrainingConfig

if TYPE_CHECKING:
    from maskmatch.data import Examples
    from maskmatch.labels import LabelSet
    from maskmatch.matcher import MaskMatcher


@dataclass(frozen=True)
class Draw:
    """Which rows to train on."""

    shots: Annotated[int | None, typer.Option(help="Draw this many rows per label.", min=1)] = None
    fraction: Annotated[float | None, typer.Option(help="Draw this part of the rows of each label.")] = None

    def __post_init__(self) -> None:
        if self.shots is not None and self.fraction is not None:
            raise typer.BadParameter("give --shots or --fraction, not both.", param_hint="--fraction")
        if self.fraction is not None:
            from maskmatch.data import draw_fraction

            with options.wrong_usage("--fraction"):
                draw_fraction(("a", "b"), self.fraction, seed=0)

    def of(self, rows: Examples, seed: int) -> Examples:
        """The drawn rows."""
        from maskmatch.data import Examples, draw_fraction, draw_shots

        assert rows.labels is not None
        if self.shots is not None:
            drawn = draw_shots(rows.labels, self.shots, seed)
        elif self.fraction is not None:
            drawn = draw_fraction(rows.labels, self.fraction, seed)
        else:
            return rows
        options.note(f"drew {len(drawn)} of {len(rows)} rows")
        return Examples([rows.texts[row] for row in drawn], [rows.labels[row] for row in drawn])


def train(
    *,
    train: options.LabelledFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to save the classifier in.")],
    dev: Annotated[str | None, typer.Option(help="Labelled rows to choose the best checkpoint by.")] = None,
    unlabeled: Annotated[
        str | None, typer.Option(help="A file of unlabelled texts to adapt to after training.")
    ] = None,
    self_training: options.SelfTraining = False,
    out_of_scope_rows: Annotated[
        bool,
        typer.Option(
            "--out-of-scope-rows",
            help="Rows with an empty label are texts that no label fits; they make the novelty score better.",
        ),
    ] = False,
    draw: Draw,
    labels: Annotated[str | None, typer.Option(help="Label names, or a file of labels with descriptions.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a saved classifier that has other labels.")
    ] = False,
    classifier: options.Classifier,
    training: Annotated[Options, SettingsOf(lambda: declared(TrainingConfig), panel=options.TRAINING)],
    reading: options.LabelledReading,
    json: options.AsJson = False,
) -> None:
    """Train a classifier and save it."""
    if classifier.settings.get("threshold") is not None and dev is not None:
        raise typer.BadParameter("the dev data decides on the threshold; give one of them.", param_hint="--threshold")
    if self_training and unlabeled is None:
        raise typer.BadParameter("it needs unlabelled texts; give --unlabeled.", param_hint="--self-training")
    with options.wrong_usage():
        config = TrainingConfig(**training)

    output = output.expanduser()
    names = None if labels is None else options.label_names(labels)
    own = options.config_of(classifier.model, classifier.settings)
    fields, several = own.fields, own.multi_label
    reading.check_separator(classifier.settings.get("multi_label"))
    all_rows = options.load_rows(train, fields, reading, multi_label=several, empty_labels=out_of_scope_rows)
    rows, others = all_rows.split_empty_labels()
    several = several or isinstance((rows.labels or [None])[0], list)
    rows = draw.of(rows, config.seed)
    if others:
        options.note(f"{len(others)} rows have no label: texts out of scope")
    dev_rows = None if dev is None else options.load_rows(dev, fields, reading, multi_label=several)
    more = None if unlabeled is None else options.Texts(file=unlabeled).chunks(fields, reading.without_labels())

    from maskmatch.storage.layout import check_target

    check_target(output)  # before the work, not after it
    matcher = classifier.load(names)
    if not overwrite:
        _check_same_labels(output, matcher.labels, rows)
    dev_pair = None if dev_rows is None else (dev_rows.texts, dev_rows.labels)
    texts = None if more is None else (text for chunk in more for text in chunk.texts)
    matcher.fit(
        [*rows.texts, *others],
        [*(rows.labels or ()), *([None] * len(others))],
        dev=dev_pair,
        unlabeled=texts,
        self_training=self_training,
        out_of_scope_rows=out_of_scope_rows,
        training=config,
    )
    matcher.save_pretrained(output, overwrite=overwrite)
    _print_summary(matcher, output, json)


def _check_same_labels(output: Path, labels: LabelSet | None, rows: Examples) -> None:
    """Raise if the folder holds a classifier with other labels, which the new one would replace."""
    from maskmatch.labels.targets import has_several, label_set_of, row_labels
    from maskmatch.storage.layout import check_same_labels

    if labels is None:  # those of the rows
        assert rows.labels is not None
        several = has_several(rows.labels)
        labels = label_set_of(row_labels(rows, None, several), rows.label_names, several)
    check_same_labels(output, labels)


def _print_summary(matcher: MaskMatcher, output: Path, json: bool) -> None:
    summary = matcher.training_
    assert summary is not None
    if json:
        adapted = {} if matcher.adaptation_ is None else {"adaptation": asdict(matcher.adaptation_)}
        options.print_json({"folder": str(output), **asdict(summary), **adapted})
        return
    from maskmatch.evaluation.display import counted

    lines = [
        f"trained on {counted(summary.texts, 'text')} with {counted(summary.labels, 'label')}: "
        f"{counted(summary.steps, 'step')} in {summary.seconds:.0f} s"
    ]
    if summary.dev is not None:
        lines.append("on dev: " + ", ".join(f"{name} {value:.4f}" for name, value in summary.dev.items()))
    if summary.calibrated_on is not None:
        lines.append(f"probabilities are calibrated {CALIBRATED_ON[summary.calibrated_on]}")
    if matcher.adaptation_ is not None and matcher.adaptation_.adapted:
        lines.append(str(matcher.adaptation_))
    lines += [*summary.notes, f"saved in {output}"]
    typer.echo("\n".join(lines))
