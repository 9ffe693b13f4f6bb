"""``maskmatch abstain``: choose on dev rows from which probability on a classifier answers, and save it."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from typing import Annotated

import typer

from maskmatch.cli import options


def abstain(
    *,
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of a saved classifier.")],
    dev: options.LabelledFile,
    right: Annotated[float, typer.Option(help="The share of answers that should be right.")] = 0.95,
    confidence: Annotated[float, typer.Option(help="With what confidence.")] = 0.95,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the result; save nothing.")] = False,
    verify: options.Verify = True,
    reading: options.LabelledReading,
    json: options.AsJson = False,
) -> None:
    """Choose on dev rows when to answer "none of these", so that answers are right as often as you want; saves it."""
    for name, value in (("--right", right), ("--confidence", confidence)):
        if not 0 < value < 1:
            raise typer.BadParameter(f"{value} is not between 0 and 1.", param_hint=name)
    options.refuse_export(folder)
    options.saved_classifier(folder)
    config = options.config_of(folder, {})
    rows = options.load_rows(dev, config.fields, reading, multi_label=config.multi_label)
    from maskmatch import MaskMatcher

    loaded = (
        nullcontext(MaskMatcher.from_pretrained(folder, verify=verify))
        if dry_run
        else MaskMatcher.editing(folder, verify=verify)
    )
    with loaded as matcher:
        found = matcher.choose_abstention(rows.texts, rows.labels, right=right, confidence=confidence)
        matcher.abstain_below(found.threshold)
    if not dry_run:
        options.note(f"saved in {folder}")
    if json:
        options.print_json(asdict(found))
    else:
        typer.echo(str(found))
