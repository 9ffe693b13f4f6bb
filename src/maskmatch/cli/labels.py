"""``maskmatch labels``: show and edit the labels of a saved classifier, expand and check label names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maskmatch.cli import options
from maskmatch.cli.expand import expand
from maskmatch.cli.groups import grouped
from maskmatch.cli.label_check import check
from maskmatch.cli.label_diff import diff
from maskmatch.cli.label_edits import Folder, apply, edit, editing, print_labels


def show(*, folder: Folder, verify: options.Verify = True, json: options.AsJson = False) -> None:
    """List the labels and how they read; `--labels` takes the output back."""
    from maskmatch.storage.layout import read_labels

    path = Path(options.saved_classifier(folder)).expanduser()
    if path.is_dir():
        labels = read_labels(path, verify=verify)
    else:  # an id on the hub
        from maskmatch import MaskMatcher

        labels = MaskMatcher.from_pretrained(folder, verify=verify).bank.known_labels
    print_labels(labels.labels, json)


def add(
    *,
    folder: Folder,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="The names of the new labels.")],
    description: Annotated[str | None, typer.Option(help="What the label means (with a single name).")] = None,
    phrase: Annotated[list[str] | None, typer.Option(help="Another name for it (with a single name).")] = None,
    word: Annotated[
        list[str] | None, typer.Option(help="A word for it at the mask, for prompt-tuning (with a single name).")
    ] = None,
    verify: options.Verify = True,
    json: options.AsJson = False,
) -> None:
    """Add labels; they can be predicted at once. Prints the new labels."""
    from maskmatch.labels import Label

    if len(names) > 1 and (description or phrase or word):
        raise typer.BadParameter("a description, phrase or word goes with a single name.", param_hint="NAMES")
    phrases, words = tuple(phrase or ()), tuple(word or ())
    new = [Label(name, "", description or "", phrases, words) for name in names]
    with editing(folder, verify) as (matcher, _):
        matcher.add_labels(new)
    print_labels(new, json)


def rename(
    *,
    folder: Folder,
    old: Annotated[str, typer.Argument(metavar="LABEL", help="The label.")],
    new: Annotated[str, typer.Argument(metavar="NAME", help="Its new name.")],
    verify: options.Verify = True,
    json: options.AsJson = False,
) -> None:
    """Rename a label; a label that is a number or a code keeps it and only reads differently. Prints the label."""
    with editing(folder, verify) as (matcher, labels):
        own = labels.resolve(old)
        position = labels.position(own)
        matcher.rename_label(own, new)
        renamed = matcher.bank.known_labels.labels[position]
    print_labels([renamed], json)


def remove(
    *,
    folder: Folder,
    names: Annotated[list[str], typer.Argument(metavar="LABEL", help="The labels to remove.")],
    verify: options.Verify = True,
    json: options.AsJson = False,
) -> None:
    """Remove labels. Prints the removed labels."""
    with editing(folder, verify) as (matcher, labels):
        gone = [labels.label(labels.resolve(name)) for name in names]
        matcher.remove_labels([label.id for label in gone])
    print_labels(gone, json)


labels_app = typer.Typer(
    help="Show, edit, expand, check and compare labels.", no_args_is_help=True, add_completion=False
)
for command in (show, add, rename, edit, remove, apply, expand, check, diff):
    labels_app.command()(grouped(command))
