"""``maskmatch labels``: show and edit the labels of a saved classifier, expand and check label names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskmatch.atomic import recover
from maskmatch.cli import options
from maskmatch.cli.expand import expand
from maskmatch.cli.groups import grouped
from maskmatch.cli.label_check import check
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from maskmatch.labels import Label
    from maskmatch.matcher import MaskMatcher

Folder = Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of a saved classifier.")]


def show(*, folder: Folder, json: options.AsJson = False) -> None:
    """List the labels and how they read; `--labels` takes the output back."""
    from maskmatch.storage.layout import read_labels

    options.refuse_export(folder)
    path = Path(options.saved_classifier(folder)).expanduser()
    if path.is_dir():
        labels = read_labels(path)
    else:  # an id on the hub
        known = _load(folder).labels
        assert known is not None
        labels = known
    _print(labels.labels, json)


def add(
    *,
    folder: Folder,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="The names of the new labels.")],
    description: Annotated[str | None, typer.Option(help="What the label means (with a single name).")] = None,
    phrase: Annotated[list[str] | None, typer.Option(help="Another name for it (with a single name).")] = None,
    word: Annotated[
        list[str] | None, typer.Option(help="A word for it at the mask, for prompt-tuning (with a single name).")
    ] = None,
    json: options.AsJson = False,
) -> None:
    """Add labels; they can be predicted at once. Prints the new labels."""
    from maskmatch.labels import Label

    if len(names) > 1 and (description or phrase or word):
        raise typer.BadParameter("a description, phrase or word goes with a single name.", param_hint="NAMES")
    matcher = _load_to_edit(folder)
    phrases, words = tuple(phrase or ()), tuple(word or ())
    new = [Label(name, "", description or "", phrases, words) for name in names]
    matcher.add_labels(new).save_pretrained(folder)
    _print(new, json)


def rename(
    *,
    folder: Folder,
    old: Annotated[str, typer.Argument(metavar="LABEL", help="The label.")],
    new: Annotated[str, typer.Argument(metavar="NAME", help="Its new name.")],
    json: options.AsJson = False,
) -> None:
    """Rename a label; a label that is a number or a code keeps it and only reads differently. Prints the label."""
    matcher = _load_to_edit(folder)
    assert matcher.labels is not None
    position = matcher.labels.position(_own(matcher, old))
    matcher.rename_label(_own(matcher, old), new).save_pretrained(folder)
    _print([matcher.labels.labels[position]], json)


def remove(
    *,
    folder: Folder,
    names: Annotated[list[str], typer.Argument(metavar="LABEL", help="The labels to remove.")],
    json: options.AsJson = False,
) -> None:
    """Remove labels. Prints the removed labels."""
    matcher = _load_to_edit(folder)
    assert matcher.labels is not None
    gone = [matcher.labels.label(_own(matcher, name)) for name in names]
    matcher.remove_labels([label.id for label in gone]).save_pretrained(folder)
    _print(gone, json)


labels_app = typer.Typer(help="Show, edit, expand and check labels.", no_args_is_help=True, add_completion=False)
for command in (show, add, rename, remove, expand, check):
    labels_app.command()(grouped(command))


def _own(matcher: MaskMatcher, label: str) -> Hashable:
    """A label as the classifier has it: it may be a number."""
    assert matcher.labels is not None
    return matcher.labels.resolve(label)


def _load_to_edit(folder: str) -> MaskMatcher:
    recover(Path(folder))
    if not Path(folder).is_dir():
        raise MaskMatchError(f"There is no folder {folder}; labels are edited in the folder of a saved classifier.")
    return _load(folder)


def _load(folder: str) -> MaskMatcher:
    from maskmatch import MaskMatcher

    options.refuse_export(folder)
    return MaskMatcher.from_pretrained(options.saved_classifier(folder))


def _print(labels: Iterable[Label], json: bool) -> None:
    from maskmatch.labels import label_to_json
    from maskmatch.labels.files import SEPARATOR

    if json:
        options.print_json([label_to_json(label) for label in labels])
        return
    options.print_table(
        ("label", "reads", "description", "phrases", "words", "examples"),
        [
            (
                str(label.id),
                label.name,
                label.description,
                *(SEPARATOR.join(parts) for parts in (label.phrases, label.words, label.examples)),
            )
            for label in labels
        ],
    )
