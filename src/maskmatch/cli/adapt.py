"""``maskmatch adapt``: adapt a classifier, or label names alone, to unlabelled texts, and save it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from maskmatch.cli import options
from maskmatch.errors import MaskMatchError
from maskmatch.labels.adaptation import MAX_TEXTS


def adapt(
    *,
    source: Annotated[
        str,
        typer.Argument(
            metavar="MODEL_OR_LABELS",
            help="The folder of a saved classifier; or label names, separated by commas, or a file of labels.",
        ),
    ],
    texts: Annotated[str, typer.Argument(metavar="TEXTS", help="A file of unlabelled texts, or - for standard input.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to save the classifier in.")],
    dev: Annotated[str | None, typer.Option(help="Labelled rows that decide whether to adapt.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Adapt even if that will probably do harm.")] = False,
    max_texts: Annotated[int, typer.Option(help="How many texts to use at most, drawn at random.", min=1)] = MAX_TEXTS,
    seed: Annotated[int, typer.Option(help="The seed of the draw.")] = 0,
    self_training: options.SelfTraining = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace another classifier.")] = False,
    classifier: options.Classifier,
    reading: options.LabelledReading,
    json: options.AsJson = False,
) -> None:
    """Learn from unlabelled texts, in seconds, without training unless you ask for it; saves the adapted classifier."""
    from maskmatch.storage.layout import is_saved

    if options.is_export(source):
        raise MaskMatchError(f"{source} is an export; adapt the classifier that it was made from, and export it again.")
    saved = is_saved(options.folder_path(source))
    if saved and classifier.model is not None:
        raise typer.BadParameter(f"{source} is a classifier with an encoder of its own.", param_hint="--model")
    names = None if saved else options.label_names(source)
    if names is not None and len(names) < 2:
        raise MaskMatchError(
            f"{source!r} is the only label; give at least two names, separated by commas, a file of labels, or the "
            "folder of a classifier."
        )
    output = output.expanduser()
    if is_saved(output) and not overwrite and not (saved and output.resolve() == options.folder_path(source).resolve()):
        raise MaskMatchError(
            f"{output} holds a classifier already; choose another folder, or replace it with --overwrite."
        )
    model = source if saved else classifier.model
    config = options.config_of(model, classifier.settings)
    chunks = options.Texts(file=texts).chunks(config.fields, reading.without_labels())
    dev_rows = None if dev is None else options.load_rows(dev, config.fields, reading, multi_label=config.multi_label)
    from maskmatch.storage.layout import check_target

    check_target(output)  # before the work, not after it
    if saved:
        matcher = classifier.load(None, model=source)
    else:
        matcher = classifier.load(names, method=classifier.untrained_method())
    matcher.adapt(
        (text for chunk in chunks for text in chunk.texts),
        dev=None if dev_rows is None else (dev_rows.texts, dev_rows.labels),
        force=force,
        max_texts=max_texts,
        seed=seed,
        self_training=self_training,
    )
    matcher.save_pretrained(output, overwrite=overwrite)
    assert matcher.adaptation_ is not None
    if json:
        options.print_json({"folder": str(output), **asdict(matcher.adaptation_)})
        return
    if matcher.adaptation_.adapted:  # otherwise a warning has said so
        typer.echo(str(matcher.adaptation_))
    typer.echo(f"saved in {output}" + ("" if matcher.adaptation_.adapted else ", not adapted"))
