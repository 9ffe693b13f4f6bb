"""``maskmatch labels expand``: further phrases and examples for labels, into a file to look at and edit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskmatch.cli import options

if TYPE_CHECKING:
    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.matcher import MaskMatcher

LabelsArgument = Annotated[
    str, typer.Argument(metavar="LABELS", help="A file of labels, names with commas, or the folder of a classifier.")
]
UnlabelledFile = Annotated[str | None, typer.Option("--texts", metavar="FILE", help="Texts; labels are not looked at.")]


def expand(
    *,
    labels: LabelsArgument,
    texts: UnlabelledFile = None,
    train: Annotated[str | None, typer.Option(metavar="FILE", help="Labelled rows, for typical words.")] = None,
    words: Annotated[str | None, typer.Option(metavar="FILE", help="Words or phrases of your own, one a line.")] = None,
    source: options.PhraseSources = None,
    phrases: Annotated[int, typer.Option(help="The most phrases a label and source.", min=0)] = 5,
    examples: Annotated[int, typer.Option(help="The most examples a label.", min=0)] = 20,
    keep_shared: Annotated[
        bool, typer.Option("--keep-shared", help="Keep phrases that come nearer to another label.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A label file to write: .csv, .tsv or .jsonl.")
    ] = None,
    classifier: options.Classifier,
    reading: options.LabelledReading,
    json: options.AsJson = False,
) -> None:
    """Find phrases and examples for labels; edit the file, and give it to --labels."""
    from maskmatch.label_tools.expansion import expand_labels
    from maskmatch.label_tools.expansion.files import check_file_name

    if output is not None:
        check_file_name(output)
    config = config_for(labels, classifier)
    fields, several = config.input_fields, config.multi_label
    unlabelled = load_texts(texts, fields, reading)
    rows = None if train is None else options.load_rows(train, fields, reading, multi_label=several)
    listed = load_texts(words, ("text",), options.Reading(encoding=reading.encoding))
    expansion = expand_labels(
        load_with_labels(labels, classifier),
        sources=None if source is None else [each.value for each in source],
        texts=unlabelled,
        train=None if rows is None else (rows.texts, rows.labels),
        words=listed,
        phrases=phrases,
        examples=examples,
        drop_shared=not keep_shared,
    )
    if output is not None:
        options.note(f"written to {expansion.save(output)}; look through it, then use it with --labels {output}")
    options.print_result(expansion, json)


def config_for(labels: str, classifier: options.Classifier) -> MatcherConfig:
    """The config of the classifier, found without loading it."""
    options.refuse_export(labels)
    return options.config_of(labels if os.path.isdir(labels) else classifier.model, classifier.settings)


def load_with_labels(labels: str, classifier: options.Classifier) -> MaskMatcher:
    """A classifier with the labels of a file or a list, or the saved classifier of a folder with its own."""
    from maskmatch.storage.layout import is_saved

    options.refuse_export(labels)
    folder = os.path.expanduser(labels)
    if os.path.isdir(folder) and is_saved(Path(folder)):
        if classifier.model is not None:
            raise typer.BadParameter(f"{labels} is a classifier already; leave it out.", param_hint="--model")
        return classifier.load(None, model=labels)
    return classifier.load(options.label_names(labels), method=classifier.untrained_method())


def load_texts(source: str | None, fields: tuple[str, ...], reading: options.Reading) -> list[Any] | None:
    """The texts of a file, without labels; skipped rows are reported on standard error."""
    if source is None:
        return None
    from maskmatch.data import load_examples

    given = {name: value for name, value in reading.options().items() if not name.startswith("label_")}
    examples = load_examples(source, fields, want_label=False, **given)
    options.report_skipped(examples.skipped, source)
    return list(examples.texts)
