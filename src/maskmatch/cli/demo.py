"""``maskmatch demo``: the main job on the embedded default, end to end."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from maskmatch.cli import options


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the model and the report go.")] = Path(
        "maskmatch-demo"
    ),
    seed: options.Seed = 0,
    json: options.AsJson = False,
) -> None:
    """Classify by names, adapt, train, evaluate, add a label and save, on a small help desk's questions."""
    options.note("Loading the embedded encoder …")
    from maskmatch.demo import run_demo

    result = run_demo(output, seed, log=options.note if json else typer.echo)
    if json:
        options.print_json(asdict(result))
