"""``maskmatch workbench``: a page on which people who own the labels make them work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maskmatch.cli import options
from maskmatch.errors import MaskMatchError

HERE = "maskmatch-project"


def workbench(
    *,
    texts: Annotated[str | None, typer.Argument(metavar="TEXTS", help="A file of texts to add to the project.")] = None,
    labels: Annotated[str | None, typer.Option(help="The labels to begin with: names, or a file of labels.")] = None,
    model: Annotated[
        str | None, typer.Option(help="A classifier or an export that predicts at first; default: the embedded one.")
    ] = None,
    task: options.TaskName = None,
    project: Annotated[Path, typer.Option(help="The folder of the project; it is made if it is not there.")] = Path(
        HERE
    ),
    database: Annotated[
        str | None, typer.Option(help="The address of a database, such as postgresql+psycopg://…; default: SQLite.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0: any free one.", min=0, max=65535)] = 8080,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    reading: options.Reading,
    json: options.AsJson = False,  # taken by every command; there is nothing to print
) -> None:
    """Open a page to look at texts, word their labels, mark, train and ship. It stays open until Ctrl-C."""
    names = None if labels is None else options.label_names(labels)
    try:
        import nicegui  # noqa: F401
        import sqlalchemy  # noqa: F401

        from maskmatch.workbench.app import run
        from maskmatch.workbench.project import Project
    except ModuleNotFoundError as error:
        raise MaskMatchError(
            f"The workbench needs {error.name}, which is not installed; "
            'install it with pip install "maskmatch[workbench]".'
        ) from error
    opened = Project(project, database=database, model=model, task=task)
    try:
        if names is not None and not opened.labels.labels:
            opened.start_labels(names)
        elif names is not None:
            options.note("the project has labels already, so --labels is not read")
        if not opened.labels.labels:
            raise MaskMatchError("The project has no labels yet; give some with --labels.")
        if texts is not None:
            count = opened.import_file(texts, **reading.options())
            options.note(f"{count:,} texts added")
        if not opened.store.count:
            raise MaskMatchError("The project has no texts yet; give a file of texts.")
    except BaseException:
        opened.close()
        raise
    run(opened, host=host, port=port, browser=browser)
