"""``maskmatch demo``: the main job on the embedded default, end to end."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from maskmatch.cli import options


def demo(
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the model and the report go.")] = Path(
        "maskmatch-demo"
    ),
    seed: options.Seed = 0,
    workbench: Annotated[
        bool, typer.Option("--workbench", help="Open the workbench on the demo's questions instead; Ctrl-C ends it.")
    ] = False,
    port: Annotated[int, typer.Option(help="With --workbench: the port; 0: any free one.", min=0, max=65535)] = 8080,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="With --workbench: open the page in a browser.")
    ] = True,
    json: options.AsJson = False,
) -> None:
    """Classify by names, adapt, train, evaluate, add a label and save, on a small help desk's questions."""
    if workbench:
        from maskmatch.cli.workbench import open_workbench
        from maskmatch.demo import questions

        texts, labels = questions()
        open_workbench(output / "workbench", texts=texts, labels=labels, task="intent", port=port, browser=browser)
        return
    options.note("Loading the embedded encoder …")
    from maskmatch.demo import run_demo

    result = run_demo(output, seed, log=options.note if json else typer.echo)
    if json:
        options.print_json(asdict(result))
