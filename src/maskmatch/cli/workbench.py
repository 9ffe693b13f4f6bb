"""``maskmatch workbench``: a page on which people who own the labels make them work."""

from __future__ import annotations

import socket
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskmatch.cli import options
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from maskmatch.labels import LabelSet

HERE = "maskmatch-project"


def workbench(
    *,
    texts: Annotated[str | None, typer.Argument(metavar="TEXTS", help="A file of texts to add to the project.")] = None,
    labels: Annotated[str | None, typer.Option(help="The labels to begin with: names, or a file of labels.")] = None,
    model: Annotated[
        str | None, typer.Option(help="A classifier or an encoder that predicts at first; default: the embedded one.")
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
    token_file: Annotated[
        str | None, typer.Option(help="A file with a name and a token per line: only these people may open the page.")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    reading: options.Reading,
    json: options.AsJson = False,  # taken by every command; there is nothing to print
) -> None:
    """Open a page to look at texts, word their labels, mark, train and ship. It stays open until Ctrl-C."""
    names = None if labels is None else options.label_names(labels)
    open_workbench(
        project, texts=texts, labels=names, model=model, task=task, database=database, host=host, port=port,
        token_file=token_file, browser=browser, **reading.options(),
    )  # fmt: skip


def open_workbench(
    project: Path,
    *,
    texts: Any = None,
    labels: LabelSet | None = None,
    model: str | None = None,
    task: str | None = None,
    database: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    token_file: str | None = None,
    browser: bool = True,
    **reading: Any,
) -> None:
    """Open the workbench on a project, which is made if it is not there.

    Args:
        project: Its folder.
        texts: Rows to add: what ``load_examples`` reads.
        labels: The labels of a new project.
        model: A classifier or an encoder that predicts at first.
        task: The task of a new project.
        database: The address of its database; None: SQLite in the folder.
        host: The address to listen on.
        port: The port; 0: any free one.
        token_file: A file with a name and a token per line; None: everybody who reaches the page may work on it.
        browser: Whether to open the page in a browser.
        **reading: How rows are read.
    """
    _check_packages()
    from maskmatch.workbench.app import run
    from maskmatch.workbench.people import People, is_loopback
    from maskmatch.workbench.project import DATABASE, Project

    people = None if token_file is None else People.load(token_file)
    if people is None and not is_loopback(host):
        raise MaskMatchError(f"Other machines reach {host}; say with --token-file who may open the page.")
    if port and not _is_free(host, port):
        raise MaskMatchError(f"Port {port} is taken; give another one with --port, or 0 for any free one.")
    if database is None and not (project.expanduser() / DATABASE).exists():  # nothing is made for what cannot work
        _check_new(texts, labels)
    opened = Project(project, database=database, model=model, task=task, people=people)
    try:
        if labels is not None and not (opened.labels.labels and opened.store.count):  # or it has failed before
            opened.start_labels(labels)
        elif labels is not None:
            options.note("the project has labels already, so --labels is not read")
        if not opened.labels.labels:
            raise MaskMatchError("The project has no labels yet; give some with --labels.")
        if texts is not None:
            count = opened.import_once(texts, **reading)
            options.note("the project has these texts already" if count is None else f"{count:,} texts added")
        if not opened.store.count:
            raise MaskMatchError("The project has no texts yet; give a file of texts.")
    except BaseException:
        opened.close()
        raise
    run(opened, host=host, port=port, browser=browser)


def _check_packages() -> None:
    for package in ("nicegui", "sqlalchemy"):  # looked for but not imported: NiceGUI then reads where to keep things
        if find_spec(package) is None:
            raise MaskMatchError(
                f"The workbench needs {package}, which is not installed; "
                'install it with pip install "maskmatch[workbench]".'
            )


def _is_free(host: str, port: int) -> bool:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise MaskMatchError(f"There is no address {host!r} to listen on: {error.strerror}.") from error
    with socket.socket(family, kind) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(address)
        except OSError:
            return False
    return True


def _check_new(texts: Any, labels: LabelSet | None) -> None:
    """Raise unless there is what a new project needs."""
    if labels is None:
        raise MaskMatchError("The project has no labels yet; give some with --labels.")
    if len(labels) < 2:
        raise MaskMatchError(f"{next(iter(labels))!r} is the only label; give at least two with --labels.")
    if texts is None:
        raise MaskMatchError("The project has no texts yet; give a file of texts.")
    if isinstance(texts, str) and not Path(texts).expanduser().is_file():
        raise MaskMatchError(f"There is no file {texts!r}; check the file name and the folder.")
