"""``maskmatch labels``: look at and edit the labels of a saved classifier, expand and check label names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskmatch.cli import options
from maskmatch.cli.expand import expand
from maskmatch.cli.groups import grouped
from maskmatch.cli.label_check import check
from maskmatch.errors import MaskMatchError
from maskmatch.whole_folder import recover

if TYPE_CHECKING:
    from collections.abc import Hashable

    from maskmatch.classifier import MaskMatcher

labels_app = typer.Typer(help="Look at, edit, expand and check labels.", no_args_is_help=True)
for command in (expand, check):
    labels_app.command()(grouped(command))

Folder = Annotated[str, typer.Argument(help="The folder of a saved classifier.")]


@labels_app.command()
def show(folder: Folder, json: options.AsJson = False) -> None:
    """List the labels and how they read."""
    _print(_load(folder), json)


@labels_app.command()
def add(
    *,
    folder: Folder,
    names: Annotated[list[str], typer.Argument(help="The names of the new labels.")],
    description: Annotated[str | None, typer.Option(help="What the label means (with a single name).")] = None,
    phrase: Annotated[list[str] | None, typer.Option(help="Another name for it (with a single name).")] = None,
    word: Annotated[
        list[str] | None, typer.Option(help="What it says at a mask, for prompt-tuning (with a single name).")
    ] = None,
    json: options.AsJson = False,
) -> None:
    """Add labels; they can be predicted at once."""
    from maskmatch.labels import Label

    if len(names) > 1 and (description or phrase or word):
        raise typer.BadParameter("a description, phrase or word goes with a single name.", param_hint="NAMES")
    matcher = _load_to_edit(folder)
    phrases, words = tuple(phrase or ()), tuple(word or ())
    matcher.add_labels([Label(name, "", description or "", phrases, words) for name in names])
    matcher.save_pretrained(folder)
    _print(matcher, json)


@labels_app.command()
def rename(
    folder: Folder,
    old: Annotated[str, typer.Argument(help="The label as it is.")],
    new: Annotated[str, typer.Argument(help="Its new name.")],
    json: options.AsJson = False,
) -> None:
    """Give a label another name; a label that is a number or a code keeps it, and only reads otherwise."""
    matcher = _load_to_edit(folder)
    matcher.rename_label(_own(matcher, old), new)
    matcher.save_pretrained(folder)
    _print(matcher, json)


@labels_app.command()
def remove(
    folder: Folder,
    names: Annotated[list[str], typer.Argument(help="The labels to take away.")],
    json: options.AsJson = False,
) -> None:
    """Take labels away."""
    matcher = _load_to_edit(folder)
    matcher.remove_labels([_own(matcher, name) for name in names])
    matcher.save_pretrained(folder)
    _print(matcher, json)


def _own(matcher: MaskMatcher, label: str) -> Hashable:
    """A label as the classifier has it: it may be a number."""
    assert matcher.labels is not None
    return matcher.labels.own(label)


def _load_to_edit(folder: str) -> MaskMatcher:
    recover(Path(folder))
    if not Path(folder).is_dir():
        raise MaskMatchError(f"There is no folder {folder}; labels are edited in the folder of a saved classifier.")
    return _load(folder)


def _load(folder: str) -> MaskMatcher:
    from maskmatch import MaskMatcher

    options.refuse_export(folder)
    return MaskMatcher.from_pretrained(options.saved_classifier(folder))


def _print(matcher: MaskMatcher, json: bool) -> None:
    from maskmatch.labels import label_to_json

    assert matcher.labels is not None
    if json:
        options.print_json([label_to_json(label) for label in matcher.labels.labels])
        return
    options.print_table(
        ("label", "reads", "description", "phrases", "words", "examples"),
        [
            (
                str(label.id),
                label.name,
                label.description,
                *("; ".join(parts) for parts in (label.phrases, label.words, label.examples)),
            )
            for label in matcher.labels.labels
        ],
    )
