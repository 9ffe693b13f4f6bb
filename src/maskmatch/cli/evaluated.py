"""``maskmatch evaluate``: each row with its prediction, and the mistakes, as tables."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskmatch.cli import options
from maskmatch.cli.tables import ERROR, PREFIX, answer_prefix, plain_label
from maskmatch.data import write_table
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.data import Examples
    from maskmatch.prediction.predictor import Predictor

PANEL = "Tables"
CORRECT = "correct"
"""The column that says whether the prediction is right."""

TABLES = ("predictions", "mistakes")
"""The tables: options, and files of a report."""


@dataclass(frozen=True)
class EvaluatedTables:
    """Where the predictions of an evaluation are written."""

    predictions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A table of all rows with their predictions to write: .csv, .tsv, .jsonl, .json or .parquet.",
            rich_help_panel=PANEL,
        ),
    ] = None
    mistakes: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A table of the rows whose prediction is wrong to write.", rich_help_panel=PANEL
        ),
    ] = None

    @property
    def wanted(self) -> bool:
        """Whether there is a table to write."""
        return self.predictions is not None or self.mistakes is not None

    @property
    def given(self) -> dict[str, Path | None]:
        """The files by the names of their options."""
        return {"--predictions": self.predictions, "--mistakes": self.mistakes}

    def check(self, source: str, folder: Path | None = None) -> None:
        """Raise for files that cannot be written, or would replace another, before anything is loaded.

        Args:
            source: The labelled rows.
            folder: The folder of the report, if there is one.
        """
        from maskmatch.data.formats import written_format

        rows = Path(source).expanduser()
        written = _tables_of(folder)
        for table in (each for several in written.values() for each in several):
            if _same(table, rows):
                raise typer.BadParameter(
                    f"{source} has the labelled rows, and the report replaces it; give another folder.",
                    param_hint="--output",
                )
        for option, path in self.given.items():
            if path is None:
                continue
            target = path.expanduser()
            if target.is_dir():
                raise typer.BadParameter(f"{path} is a folder; give a file in it.", param_hint=option)
            with options.wrong_usage(option):
                written_format(path)
            if _same(target, rows):
                raise typer.BadParameter(f"{path} has the labelled rows; give another file.", param_hint=option)
            others = (each for own, tables in written.items() if own != option for each in tables)
            if any(_same(target, other) for other in others):
                raise typer.BadParameter(f"{path} is a file of the report; give another file.", param_hint=option)
        if self.predictions is not None and self.mistakes is not None and _same(self.predictions, self.mistakes):
            raise typer.BadParameter(
                f"{self.mistakes} is the file of --predictions, too; give another file.", param_hint="--mistakes"
            )

    def write(self, matcher: Predictor, rows: Examples, folder: Path | None, several: bool) -> list[str]:
        """Write the tables, also into the folder of the report; returns what was written, in sentences.

        Args:
            matcher: The classifier after the evaluation.
            rows: The rows that it was evaluated on, with all of their columns.
            folder: The folder of the report, if there is one.
            several: Whether a text may have several labels.
        """
        from maskmatch.evaluation.display import counted

        if rows.table is None:
            return []
        columns, table, wrong = _joined(matcher, rows, several)
        found = []
        for what, own, path in (("predictions", table, self.predictions), ("mistakes", wrong, self.mistakes)):
            if path is not None:
                found.append(f"{counted(len(own), what[:-1])} in {write_table(path, columns, own)}")
            if folder is not None:
                _write_csv(folder.expanduser() / f"{what}.csv", columns, own, keep=path)
        return found


def _joined(
    matcher: Predictor, rows: Examples, several: bool
) -> tuple[list[str], list[dict[str, Any]], list[dict[str, Any]]]:
    """The columns, all rows with their predictions, and those whose prediction is wrong."""
    assert rows.table is not None
    assert matcher.predicted_ is not None
    assert matcher.right_ is not None
    names = ["labels"] if several else ["label", "probability"]
    names += [CORRECT, *([ERROR] if rows.skipped else [])]
    own = rows.table.columns
    prefix = answer_prefix(own, names, PREFIX)
    confidence = iter([None] * len(rows) if matcher.confidence_ is None else matcher.confidence_.tolist())
    predicted, right = iter(matcher.predicted_), iter(matcher.right_)
    table, wrong = [], []
    for row, problem in zip(rows.table.rows, rows.table.problems, strict=True):
        cells: dict[str, Any] = dict.fromkeys(names)
        if problem is not None:
            cells[ERROR] = problem
        else:
            guess, value = next(predicted), next(confidence)
            cells[names[0]] = [plain_label(label) for label in guess] if several else plain_label(guess)
            if not several:
                cells["probability"] = None if value is None else round(value, 6)
            cells[CORRECT] = next(right)
        table.append({**row.fields, **{f"{prefix}{name}": cell for name, cell in cells.items()}})
        if cells[CORRECT] is False:
            wrong.append(table[-1])
    return [*own, *(f"{prefix}{name}" for name in names)], table, wrong


def _tables_of(folder: Path | None) -> dict[str, list[Path]]:
    """The files that a report may write or remove, by the option that writes the same rows."""
    if folder is None:
        return {}
    folder = folder.expanduser()
    tables = {f"--{name}": [folder / f"{name}{ending}" for ending in (".csv", ".jsonl")] for name in TABLES}
    return {**tables, "--output": [folder / f"report{ending}" for ending in (".html", ".json", ".txt")]}


def _same(path: Path, other: Path) -> bool:
    """Whether two paths are the same file, or would be if it were there."""
    path, other = path.expanduser(), other.expanduser()
    try:
        return path.samefile(other)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(other)


def _write_csv(path: Path, columns: Sequence[str], rows: Sequence[dict[str, Any]], keep: Path | None) -> None:
    """Write a table of the report; as JSON lines if CSV cannot hold the names of its columns.

    Args:
        path: The file.
        columns: The columns.
        rows: The rows.
        keep: A file that the user named for the same rows, and that stays.
    """
    other = path.with_suffix(".jsonl")
    try:
        write_table(path, columns, rows)
        stale = other
    except MaskMatchError:
        write_table(other, columns, rows)
        stale = path
    if keep is None or not _same(stale, keep):
        stale.unlink(missing_ok=True)
