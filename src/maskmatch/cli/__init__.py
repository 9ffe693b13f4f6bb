"""The command line: ``maskmatch``. One file a command; nothing heavy is imported before it is needed."""

from __future__ import annotations

import io
import os
import sys
from importlib.metadata import entry_points
from typing import Annotated

import typer

from maskmatch import __version__
from maskmatch.cli.align import align
from maskmatch.cli.classify import classify
from maskmatch.cli.demo import demo
from maskmatch.cli.evaluate import evaluate
from maskmatch.cli.export import export
from maskmatch.cli.groups import grouped
from maskmatch.cli.labels import labels_app
from maskmatch.cli.predict import predict
from maskmatch.cli.tasks import tasks
from maskmatch.cli.train import train
from maskmatch.errors import MaskMatchError

COMMANDS = "maskmatch.commands"
"""The entry points by which another distribution adds commands: name = command, value = function."""

app = typer.Typer(
    help="Classify texts by the names of labels.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, classify, train, predict, evaluate, export, align):
    app.command()(grouped(command))
app.add_typer(labels_app, name="labels")
app.command()(tasks)


def add_commands_of_others() -> None:
    """Add the commands that other distributions bring, such as ``compare`` and ``study`` of maskmatch-lab."""
    for point in entry_points(group=COMMANDS):
        try:
            app.command(point.name)(grouped(point.load()))
        except ImportError as error:  # a broken add-on should not take the other commands away
            sys.stderr.write(f"maskmatch: the command {point.name} cannot be loaded: {error}\n")


add_commands_of_others()


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"maskmatch {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Classify texts by the names of labels: no classification head, labels stay words that you can edit."""


def main() -> None:
    """Run the command line: 0 is success, 1 a failure with one sentence that says why, 2 wrong usage."""
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8")  # what goes into a file or a pipe is read by programs
    try:
        app()
    except SystemExit as stop:
        if stop.code == 130:  # typer has caught a Ctrl-C and says nothing
            sys.stderr.write("maskmatch: Interrupted.\n")
        raise
    except MaskMatchError as error:
        _fail(str(error))
    except BrokenPipeError:
        # The reader of our output has gone, as in `… | head`; keep Python from complaining again at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        _fail("Interrupted.", code=130)


def _fail(message: str, code: int = 1) -> None:
    sys.stderr.write(f"maskmatch: {message}\n")
    sys.exit(code)
