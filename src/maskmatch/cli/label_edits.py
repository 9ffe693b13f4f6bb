"""``maskmatch labels edit`` and ``apply``: change how labels read, one by one or by a file."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskmatch.cli import options
from maskmatch.errors import MaskMatchError
from maskmatch.files import recover

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from maskmatch.labels import Label, LabelSet
    from maskmatch.prediction.editing import EditablePredictor

Folder = Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of a saved classifier, or of an export.")]


def edit(
    *,
    folder: Folder,
    label: Annotated[str, typer.Argument(metavar="LABEL", help="The label; it stays the answer for its texts.")],
    reads: Annotated[str | None, typer.Option(help="How it reads from now on.")] = None,
    description: Annotated[str | None, typer.Option(help="What it means; an empty one is removed.")] = None,
    phrase: Annotated[
        list[str] | None, typer.Option(help="Another name for it; may be given several times. Empty: no other names.")
    ] = None,
    word: Annotated[list[str] | None, typer.Option(help="A word for it at the mask, for prompt-tuning.")] = None,
    example: Annotated[list[str] | None, typer.Option(help="A text that has it; may be given several times.")] = None,
    more: Annotated[
        bool, typer.Option("--more", help="Add phrases, words and examples to those it has, instead of replacing them.")
    ] = False,
    verify: options.Verify = True,
    json: options.AsJson = False,
) -> None:
    """Change how a label reads, its description, phrases, words and examples; it keeps its id. Prints the change."""
    lists = {"phrases": phrase, "words": word, "examples": example}
    changes: dict[str, Any] = {} if description is None else {"description": description}
    if reads is not None:
        if not reads.strip():
            raise typer.BadParameter("a label needs a name.", param_hint="--reads")
        changes["name"] = reads
    given = {name: [part for part in parts if part.strip()] for name, parts in lists.items() if parts}
    if not changes and not given:
        raise typer.BadParameter("give --reads, --description, --phrase, --word or --example.")
    from maskmatch.label_tools.file_edits import LabelEdits, check_known
    from maskmatch.storage.layout import read_labels

    def edits_of(labels: LabelSet) -> LabelEdits:
        own = check_known(labels, label)
        added = {name: (*(getattr(own, name) if more else ()), *parts) for name, parts in given.items()}
        other = replace(own, **{**changes, **added})
        return LabelEdits(changed=((own, other),) if other != own else ())

    path = _existing(folder)
    options.saved_classifier(folder)
    edits = edits_of(read_labels(path, verify=verify))
    if edits:
        with editing(folder, verify) as (matcher, labels):
            edits = edits_of(labels)
            edits.apply(matcher)
    options.print_result(edits, json)


def apply(
    *,
    folder: Folder,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A file of labels, as `labels show` writes it; - for standard input."),
    ],
    remove_missing: Annotated[
        bool, typer.Option("--remove-missing", help="Remove labels that the file lacks; otherwise they stay.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would change; save nothing.")] = False,
    verify: options.Verify = True,
    json: options.AsJson = False,
) -> None:
    """Make the labels those of an edited file: add labels, change how others read. Prints what changes."""
    from maskmatch.label_tools.file_edits import LabelEdits, read_label_file
    from maskmatch.storage.layout import read_labels

    if file != "-" and not Path(file).expanduser().is_file():
        raise MaskMatchError(f"There is no file {file!r}; `maskmatch labels show {folder}` writes one to edit.")
    new, fields = read_label_file(sys.stdin.read() if file == "-" else file)
    path = _existing(folder)
    options.saved_classifier(folder)
    own = read_labels(path, verify=verify)
    edits = LabelEdits.between(own, new, fields, remove_missing=remove_missing)
    if len(own) - len(edits.removed) + len(edits.added) < 2 <= len(own):
        raise MaskMatchError(
            f"Only {next(iter(new))!r} would be left, as {file} has no other label; a classifier needs two or more."
        )
    if edits and not dry_run:
        with editing(folder, verify) as (matcher, labels):
            edits = LabelEdits.between(labels, new, fields, remove_missing=remove_missing)
            edits.apply(matcher)
    if edits.missing:
        names = ", ".join(str(label.id) for label in edits.missing[:5]) + (", …" if len(edits.missing) > 5 else "")
        options.note(f"not in the file, and unchanged: {names}; --remove-missing removes them")
    if dry_run:
        options.note("nothing is saved")
    options.print_result(edits, json)


def _existing(folder: str) -> Path:
    """The folder of a classifier that is to be edited."""
    path = Path(folder).expanduser()
    recover(path)
    if not path.is_dir():
        raise MaskMatchError(f"There is no folder {folder}; labels are edited in the folder of a saved classifier.")
    return path


@contextmanager
def editing(folder: str, verify: bool) -> Iterator[tuple[EditablePredictor, LabelSet]]:
    """The classifier of a folder with its labels (which may be numbers), to edit; it is saved if all goes well."""
    _existing(folder)
    import maskmatch

    kind: Any = maskmatch.ExportedMatcher if options.is_export(folder) else maskmatch.MaskMatcher
    with kind.editing(options.saved_classifier(folder), verify=verify) as matcher:
        yield matcher, matcher.bank.known_labels
    options.note(f"saved in {folder}")


def print_labels(labels: Iterable[Label], json: bool) -> None:
    """Print labels with all that describes them, so that the output can be read back."""
    from maskmatch.labels import label_to_json
    from maskmatch.labels.files import join_cell

    if json:
        options.print_json([label_to_json(label) for label in labels])
        return
    header = ("label", "reads", "description", "phrases", "words", "examples")
    rows: list[tuple[str, ...]] = [
        (
            str(label.id),
            label.name,
            label.description,
            *(join_cell(parts) for parts in (label.phrases, label.words, label.examples)),
        )
        for label in labels
    ]
    if sys.stdout.isatty():
        options.print_table(header, rows)
        return
    _print_tsv(header, rows)


def _print_tsv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with quotes where a cell needs them."""
    from maskmatch.data.formats import WRITERS

    table = [dict(zip(header, row, strict=True)) for row in rows]
    content = WRITERS["tsv"].start(header) + WRITERS["tsv"].rows(header, table, 0)
    typer.echo(content.decode(), nl=False)
