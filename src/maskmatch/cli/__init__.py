"""The command line: ``maskmatch``. One file per command, imported when the command is called."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from maskmatch import __version__
from maskmatch.cli.lazy import CommandRow, LazyGroup
from maskmatch.errors import MaskMatchError, packages_needed

COMMANDS = {
    "demo": CommandRow("maskmatch.cli.demo:demo", "See the main job, end to end, on a small help desk's questions."),
    "classify": CommandRow("maskmatch.cli.classify:classify", "Classify texts by label names alone, without training."),
    "train": CommandRow("maskmatch.cli.train:train", "Train a classifier and save it."),
    "adapt": CommandRow("maskmatch.cli.adapt:adapt", "Learn from unlabelled texts, without training."),
    "predict": CommandRow("maskmatch.cli.predict:predict", "Classify texts with a saved classifier or an export."),
    "evaluate": CommandRow("maskmatch.cli.evaluate:evaluate", "Evaluate a classifier on labelled rows."),
    "calibrate": CommandRow("maskmatch.cli.calibrate:calibrate", "Calibrate probabilities on dev rows."),
    "abstain": CommandRow("maskmatch.cli.abstain:abstain", "Choose when to answer “none of these”, on dev rows."),
    "workbench": CommandRow(
        "maskmatch.cli.workbench:workbench", "Open a page to word labels, mark texts, train and ship."
    ),
    "serve": CommandRow("maskmatch.cli.serve:serve", "Serve classifiers over HTTP."),
    "explain": CommandRow("maskmatch.cli.explain:explain", "Show why texts get their labels: the words that matter."),
    "labels": CommandRow("maskmatch.cli.labels:labels_app", "Show, edit, expand, check and compare labels."),
    "tasks": CommandRow("maskmatch.cli.tasks:tasks", "List the task presets with their fields and prompts."),
    "export": CommandRow("maskmatch.cli.export:export", "Export a classifier to ONNX, to predict without torch."),
    "align": CommandRow("maskmatch.cli.align:align", "Train an adapter that lets an encoder answer at its mask."),
}


BROKEN_PIPE = 141
"""The exit code if the reader of the output has gone: as if the system had ended it, like other commands in a pipe."""


class _Commands(LazyGroup):
    table = COMMANDS


app = typer.Typer(
    cls=_Commands,
    rich_markup_mode=None,  # rich takes longer to import than the list of commands to print; errors stay on one line
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    if sys.stdout is None:
        _fail("Standard output is closed, so there is nowhere to write results to.")
    try:
        with packages_needed():
            app()
    except SystemExit as stop:
        if stop.code == 130:  # typer has caught a Ctrl-C and says nothing
            sys.stderr.write("maskmatch: Interrupted.\n")
        if stop.code == 1 and type(sys.stdout).__name__ == "PacifyFlushWrapper":  # typer has caught a broken pipe
            _leave()
        raise
    except MaskMatchError as error:
        _fail(str(error))
    except BrokenPipeError:
        # The reader of our output has gone, as in `… | head`; keep Python from complaining again at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _leave()
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        _fail("Interrupted.", code=130)


def _leave() -> None:
    """Exit at once: a thread may still tokenize the next texts, and Python aborts if it ends meanwhile."""
    sys.stderr.flush()
    os._exit(BROKEN_PIPE)


def _fail(message: str, code: int = 1) -> None:
    sys.stderr.write(f"maskmatch: {message}\n")
    sys.exit(code)
