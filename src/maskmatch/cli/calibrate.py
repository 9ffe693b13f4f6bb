"""``maskmatch calibrate``: calibrate the probabilities of a saved classifier on dev rows."""

from __future__ import annotations

from typing import Annotated

import typer

from maskmatch.cli import options


def calibrate(
    *,
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of a saved classifier.")],
    dev: options.LabelledFile,
    verify: options.Verify = True,
    reading: options.LabelledReading,
    json: options.AsJson = False,
) -> None:
    """Calibrate probabilities on labelled rows that the classifier was not trained on, and save it."""
    options.refuse_export(folder)
    options.saved_classifier(folder)
    config = options.config_of(folder, {})
    rows = options.load_rows(dev, config.fields, reading, multi_label=config.multi_label)
    from maskmatch import MaskMatcher

    with MaskMatcher.editing(folder, verify=verify) as matcher:
        matcher.calibrate(rows.texts, rows.labels)
        found = matcher.bank.calibration
    assert found is not None
    options.note(f"saved in {folder}")
    if json:
        data = found.to_json(list(matcher.bank.known_labels))
        options.print_json({name: value for name, value in data.items() if name != "conformity"})
        return
    how = (
        f"temperature {found.temperature:.2f}, " if not matcher.config.multi_label else ""
    ) + f"slope {found.slope:.2f}, intercept {found.intercept:+.2f}"
    typer.echo(f"calibrated on {found.rows:,} rows: {how}")
