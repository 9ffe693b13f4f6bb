"""``maskmatch labels diff``: which predictions change when labels change."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from maskmatch.cli import options
from maskmatch.cli.expand import config_for, load_with_labels


def diff(
    *,
    old: Annotated[
        str,
        typer.Argument(
            metavar="OLD",
            help="The folder of a saved classifier; or label names, separated by commas, or a file of labels.",
        ),
    ],
    new: Annotated[
        str,
        typer.Argument(
            metavar="NEW",
            help="Label names, or a file of labels, such as `labels show` prints; or a classifier, for its labels.",
        ),
    ],
    texts: Annotated[str, typer.Argument(metavar="TEXTS", help="A file of texts, or - for standard input.")],
    truth: Annotated[
        bool, typer.Option("--truth", help="The texts have true labels: compare the accuracy before and after.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A web page to write: .html.")] = None,
    classifier: options.Classifier,
    reading: options.LabelledReading,
    json: options.AsJson = False,
) -> None:
    """Show which texts get another label with other labels: from which to which, with examples. Nothing is saved."""
    options.check_page(output)
    names = options.label_names(new)
    config = config_for(old, classifier)
    fields, several = config.input_fields, config.multi_label
    if truth:
        rows = options.load_rows(texts, fields, reading, multi_label=several)
    else:
        from maskmatch.data import Examples

        chunks = options.Texts(file=texts).chunks(fields, reading.without_labels())
        rows = Examples([text for chunk in chunks for text in chunk.texts])
    matcher = load_with_labels(old, classifier)
    found = matcher.preview(rows.texts, rows.labels, labels=names)
    if output is not None:
        options.note(f"written to {found.save(output)}")
    options.print_result(found, json)
