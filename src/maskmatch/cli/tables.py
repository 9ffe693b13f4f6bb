"""``-o``: answers as a table, beside the columns of the input."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskmatch.cli import options
from maskmatch.data.rows import clashes
from maskmatch.errors import MaskMatchError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from maskmatch.cli.answers import Answering
    from maskmatch.data import Examples
    from maskmatch.data.tables import TableWriter
    from maskmatch.labels import LabelSet

PANEL = "Table"
PREFIX = "predicted_"
"""How the answer columns begin if the input has a column of the same name."""

ERROR = "error"
"""The column that says why a row was skipped."""


@dataclass(frozen=True)
class AnswerForm:
    """The columns of answers.

    Attributes:
        several: Whether a text may have several labels.
        top_k: How many of the best labels there are.
        first: The number of the first of them that has columns of its own: 2, if the answer is always the best one.
        novelty: Whether there is a novelty.
        errors: Whether rows may have an error instead.
    """

    several: bool
    top_k: int
    first: int = 2
    novelty: bool = False
    errors: bool = False

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        names = ["labels"] if self.several else ["label", "probability"]
        for number in range(1 if self.several else self.first, self.top_k + 1):
            names += [f"label_{number}", f"probability_{number}"]
        return names + ["novelty"] * self.novelty + [ERROR] * self.errors

    def cells(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The cells of an answer, by column."""
        cells: dict[str, Any] = {}
        if self.several:
            cells["labels"] = [plain_label(label) for label in answer["labels"]]
        else:
            cells["label"], cells["probability"] = plain_label(answer["label"]), answer["probability"]
        for number, pair in enumerate(answer["top_k"], 1):
            cells[f"label_{number}"], cells[f"probability_{number}"] = plain_label(pair["label"]), pair["probability"]
        cells["novelty"] = answer.get("novelty")
        return {name: cells.get(name) for name in self.columns}


def answer_prefix(own: Sequence[str], answers: Sequence[str], prefix: str = "") -> str:
    """How answer columns begin, so that none has the name of a column of the input, whatever its case.

    >>> answer_prefix(["text"], ["label"]), answer_prefix(["Label"], ["label"])
    ('', 'predicted_')
    >>> answer_prefix(["label", "predicted_label"], ["label"])
    'predicted_2_'
    """
    number = 1
    while clashes(own, [f"{prefix}{name}" for name in answers]):
        number += prefix != ""
        prefix = PREFIX if number == 1 else f"{PREFIX}{number}_"
    return prefix


def plain_label(label: Any) -> Any:
    """A label as a cell: a label that is a tuple becomes text."""
    return label if label is None or isinstance(label, (str, bool, int, float)) else str(label)


@dataclass(frozen=True)
class TableOutput:
    """Where answers are written as a table, and with which columns of the input."""

    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write a table instead, with the columns of the input and the answers beside them: .csv, .tsv, "
            ".jsonl, .json or .parquet, also with .gz. With --engine ray: a folder or its URI.",
            rich_help_panel=PANEL,
        ),
    ] = None
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS",
            help="With -o: the columns of the input to keep, separated by commas; default: all.",
            rich_help_panel=PANEL,
        ),
    ] = None
    prefix: Annotated[
        str | None,
        typer.Option(
            help="With -o: how the names of answer columns begin; default: with nothing, or with predicted_ if the "
            "input has a column of the same name.",
            rich_help_panel=PANEL,
        ),
    ] = None
    append: Annotated[
        bool,
        typer.Option("--append", help="With -o: add the rows to an existing table.", rich_help_panel=PANEL),
    ] = False
    resume: Annotated[
        bool,
        typer.Option("--resume", help="With -o: continue a run that was interrupted.", rich_help_panel=PANEL),
    ] = False

    def check(self, source: str | None) -> None:
        """Raise for wrong usage, before anything is loaded or read."""
        from maskmatch.data.formats import written_format

        if self.output is None:
            given = {"--keep": self.keep, "--prefix": self.prefix, "--append": self.append, "--resume": self.resume}
            for name, value in given.items():
                if value not in (None, False, []):
                    raise typer.BadParameter("it goes with -o FILE.", param_hint=name)
            return
        target = Path(self.output).expanduser()
        if target.is_dir():
            raise typer.BadParameter(f"{self.output} is a folder; give a file in it.", param_hint="--output")
        with options.wrong_usage("--output"):
            written_format(Path(self.output))
        if options.is_file(source) and target.exists() and os.path.samefile(target, os.path.expanduser(source or "")):
            raise typer.BadParameter(f"{self.output} is the input; give another file.", param_hint="--output")
        if self.resume and not options.is_file(source):
            raise typer.BadParameter("only texts of a file can be read again.", param_hint="--resume")

    def kept(self, columns: Sequence[str]) -> list[str]:
        """The columns of the input that are kept."""
        if self.keep is None or not self.keep:
            return list(columns)
        named = [part if part in columns else part.strip() for part in self._named(columns) if part.strip()]
        for name in named:
            if name not in columns:
                shown = ", ".join(map(repr, columns))
                raise MaskMatchError(
                    f"There is no column {name!r} to keep; the columns are {shown}.{did_you_mean(name, columns)}"
                )
        return list(dict.fromkeys(named))

    def _named(self, columns: Sequence[str]) -> Iterator[str]:
        for value in self.keep or ():
            yield from [value] if value in columns else value.split(",")

    def prefix_for(self, own: Sequence[str], answers: Sequence[str]) -> str:
        """How answer columns begin, so that none has the name of a column of the input, whatever its case."""
        if self.prefix is None:
            return answer_prefix(own, answers)
        if clash := clashes(own, [f"{self.prefix}{name}" for name in answers]):
            raise MaskMatchError(
                f"The input has a column {clash[0]!r}, too; choose another --prefix, or leave it out of --keep."
            )
        return self.prefix

    def write(
        self,
        chunks: Iterable[Examples],
        answering: Answering,
        form: AnswerForm,
        *,
        source: str | None,
        key: Callable[[], Mapping[str, Any]],
        as_json: bool,
    ) -> None:
        """Write the answers; rows that were skipped have empty answers and an error.

        Args:
            chunks: The texts with their rows.
            answering: Gives the answers of chunks.
            form: The columns of the answers.
            source: The input.
            key: What answers depend on besides the input and these options, so that a run can be continued.
            as_json: Whether to print what was written as JSON.
        """
        from maskmatch.data.tables import CannotResumeError, partial_files, writing_table

        assert self.output is not None
        iterator = iter(chunks)
        first = next(iterator, None)
        assert first is not None
        assert first.table is not None
        own = self.kept(first.table.columns)
        prefix = self.prefix_for(own, form.columns)
        if prefix and self.prefix is None:
            options.note(f"the input has a column named like an answer, so answer columns begin with {prefix}")
        rows = _Rows(own if self.keep else None, prefix, form)
        target = Path(self.output).expanduser()
        partial, progress = partial_files(target)
        if progress.exists() and not self.resume:
            options.note(f"{partial} of an interrupted run is replaced; --resume would have continued it")
        if self.resume and target.exists() and not progress.exists():
            what = ("adds to", "add the rows once more") if self.append else ("writes", "write it again")
            raise MaskMatchError(
                f"There is no interrupted run that {what[0]} {self.output}; it may have finished. To {what[1]}, leave "
                "--resume out."
            )
        if self.resume and not progress.exists():
            options.note("no interrupted run to resume; starts with the first row")
        try:
            with writing_table(
                target, [*own, *rows.names], append=self.append, resumable=self._resumable(source, key, prefix)
            ) as table:
                if table.done:
                    options.note(f"continues after {table.done:,} rows")
                for chunk, found in answering(_after(table.done, chain([first], iterator))):
                    assert chunk.table is not None
                    written, errors = rows.of(chunk, found)
                    table.write(written, done=table.done + len(chunk.table), errors=errors)
        except BaseException as error:
            if progress.exists() and not isinstance(error, CannotResumeError):
                options.note(f"{partial} has the rows so far; the same command with --resume continues it")
            raise
        self._report(table, as_json)

    def _resumable(self, source: str | None, key: Callable[[], Mapping[str, Any]], prefix: str) -> Any:
        from maskmatch.data.tables import Resumable
        from maskmatch.files import file_digest

        if source is None or not options.is_file(source):
            return None
        path, target = Path(source).expanduser(), Path(self.output or "").expanduser()

        def all_of() -> dict[str, Any]:
            found = dict(key())
            more = {"keep": self.keep, "prefix": prefix, "append": self.append}
            found["set of options"] = {**found.get("set of options", {}), **more}
            found["input"] = file_digest(path)
            if self.append:
                found["table to append to"] = file_digest(target) if target.exists() else None
            return found

        return Resumable(all_of, self.resume)

    def _report(self, table: TableWriter, as_json: bool) -> None:
        errors = table.counts.get("errors", 0)
        if as_json:
            found = {"output": str(self.output), "rows": table.rows, "errors": errors, "columns": list(table.columns)}
            options.print_json(found, indent=None)
            return
        some = f", {errors:,} of them without an answer" if errors else ""
        typer.echo(f"{table.rows:,} {'row' if table.rows == 1 else 'rows'} in {self.output}{some}")


@dataclass(frozen=True)
class _Rows:
    """Makes rows of a table of chunks and answers."""

    own: list[str] | None  # the columns of the input; None: all, also those that come later
    prefix: str
    form: AnswerForm

    @property
    def names(self) -> list[str]:
        """The names of the answer columns."""
        return [f"{self.prefix}{name}" for name in self.form.columns]

    def of(self, chunk: Examples, answers: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], int]:
        """The rows of a chunk, and how many have an error instead of an answer."""
        assert chunk.table is not None
        waiting = iter(answers)
        rows, errors = [], 0
        for row, problem in zip(chunk.table.rows, chunk.table.problems, strict=True):
            cells = self.form.cells(next(waiting)) if problem is None else dict.fromkeys(self.form.columns)
            if problem is not None:
                cells[ERROR] = problem
                errors += 1
            fields = row.fields if self.own is None else {name: row.fields.get(name) for name in self.own}
            if clash := clashes(fields, self.names):
                raise MaskMatchError(
                    f"{row.where} has a column {clash[0]!r}, as the answers have, which the first rows lack; give "
                    "another --prefix."
                )
            rows.append({**fields, **{f"{self.prefix}{name}": cell for name, cell in cells.items()}})
        return rows, errors


def _after(done: int, chunks: Iterable[Examples]) -> Iterator[Examples]:
    """The chunks after so many rows."""
    seen = 0
    for chunk in chunks:
        assert chunk.table is not None
        if seen >= done:
            yield chunk
        seen += len(chunk.table)


def classifier_key(model: str | None, labels: LabelSet, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What answers of a classifier depend on: its files, its labels, and the options given.

    Args:
        model: The folder of a classifier, an export or an encoder, a hub id, or None for the embedded encoder.
        labels: The labels.
        settings: The options.
    """
    from maskmatch import __version__
    from maskmatch.labels import label_to_json

    listed = json.dumps([label_to_json(label) for label in labels.labels])
    return {
        "classifier": [model if not (files := _digests(model)) else files, __version__],
        "set of labels": hashlib.sha256(listed.encode()).hexdigest(),
        "set of options": dict(settings),
    }


def _digests(model: str | None) -> list[str]:
    """The digests of what says which files a model has, or of these files themselves."""
    from maskmatch.files import file_digest

    if model is None:
        return []
    folder = Path(model).expanduser()
    if not folder.is_dir():
        from maskmatch.model.encoder import find_model

        folder = Path(find_model(model)[0])
    for name in ("maskmatch.json", "export.json"):  # both hold the digests of all other files
        if (folder / name).is_file():
            return [file_digest(folder / name)]
    return [file_digest(path) for path in sorted(folder.iterdir()) if path.is_file()]
