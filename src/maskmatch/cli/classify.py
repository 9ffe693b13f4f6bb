"""``maskmatch classify``: zero-shot, with nothing but label names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maskmatch.cli import options  # noqa: TC001 - typer reads the annotations
from maskmatch.cli.predict import print_predictions


def classify(
    *,
    labels: Annotated[str, typer.Option(help="Label names with commas between them, or a file of labels.")],
    texts: options.Texts,
    classifier: options.Classifier,
    search: options.Search = None,
    top_k: options.TopK = 3,
    batch_size: options.BatchSize = 32,
    reading: options.Reading,
    json: options.AsJson = False,  # taken by every command; here the output is JSON lines anyway
) -> None:
    """Classify texts by label names alone, nothing trained; prints one JSON object a line."""
    from maskmatch.label_files import load_labels

    matcher = classifier.load(load_labels(labels), search=search, method=_untrained_method(classifier))
    print_predictions(matcher, texts.chunks(matcher.config.fields, reading), top_k, batch_size)


def _untrained_method(classifier: options.Classifier) -> str | None:
    """The method, if it is not to be the task's or the saved classifier's own.

    A method that compares the sides of a pair has to learn what their distance says. Before, a pair is read as a whole.
    """
    from maskmatch.methods import find_method
    from maskmatch.saving import is_saved
    from maskmatch.tasks import find_task

    folder = None if classifier.model is None else Path(classifier.model)
    bare = folder is None or (folder.is_dir() and not is_saved(folder))  # a hub id may be that of a classifier
    if classifier.method is not None or classifier.task is None or not bare:
        return classifier.method
    return "mask-matching" if find_method(find_task(classifier.task).method).reads_pairs else None
