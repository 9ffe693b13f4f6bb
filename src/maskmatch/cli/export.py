"""``maskmatch export``: a classifier as ONNX, to predict without torch."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from maskmatch.cli import options
from maskmatch.errors import MaskMatchError


def export(
    *,
    folder: options.SavedFolder,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write the export; default: FOLDER-onnx or FOLDER-int8."),
    ] = None,
    int8: Annotated[bool, typer.Option("--int8", help="Quantise matrices to 8 bits: faster, a little less exact.")] = (
        False
    ),
    texts: Annotated[
        str | None,
        typer.Option(
            help="A file of texts to compare the export with torch on; default: a few sentences and the label names."
        ),
    ] = None,
    verify: options.Verify = True,
    reading: options.Reading,
    json: options.AsJson = False,
) -> None:
    """Export a classifier to ONNX and report how much it differs; `predict` takes the export as FOLDER."""
    target = output or Path(f"{folder.rstrip('/')}-{'int8' if int8 else 'onnx'}")
    source = options.saved_classifier(folder)
    if options.is_export(folder):
        raise MaskMatchError(f"{folder} is an export already; export the classifier that it was made from.")

    from maskmatch import MaskMatcher
    from maskmatch.data import load_examples
    from maskmatch.storage.export.exporter import export as write

    given = None
    if texts is not None:
        rows = load_examples(texts, options.config_of(folder, {}).fields, want_label=False, **reading.options())
        options.report_skipped(rows.skipped, texts)
        given = rows.texts
    matcher = MaskMatcher.from_pretrained(source, device="cpu", verify=verify)
    parity = write(matcher, target, int8=int8, texts=given, texts_from=texts)
    options.note(f"export saved in {target}")
    search = matcher.search_
    if json:
        measured = {"parity": parity.to_dict(), "search": asdict(search)}
        options.print_json({"folder": str(target), "int8": int8, **measured})
        return
    typer.echo(str(parity))
    if search.kind == "approximate":
        typer.echo(str(search))
