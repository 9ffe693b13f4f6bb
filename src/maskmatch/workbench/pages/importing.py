"""A dialog that adds the texts of a file to the project, once its columns were looked at."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nicegui import run, ui

from maskmatch.config.tasks import find_task
from maskmatch.data import guess_columns, read_rows
from maskmatch.errors import MaskMatchError
from maskmatch.evaluation.display import counted
from maskmatch.files import file_digest
from maskmatch.workbench.pages.frame import complain, trying

if TYPE_CHECKING:
    from collections.abc import Callable

    from nicegui.events import UploadEventArguments

    from maskmatch.workbench.project import Project

MOST_BYTES = 512 * 2**20
ROWS_SHOWN, LONGEST = 3, 80
HINTS = {
    "--text-field": "the column with the texts",
    "--skip-bad-rows": "“Leave out rows that cannot be read”",
    "--encoding latin-1 (encoding= in Python)": "saving it as UTF-8",
}
"""What errors of the command line call what the dialog has."""


class ImportDialog:
    """Asks for a file, shows its columns and first rows, and adds its texts.

    Args:
        project: The project.
        done: Called when texts were added.
    """

    def __init__(self, project: Project, done: Callable[[], None]) -> None:
        self.project, self.done = project, done
        self.fields = find_task(project.task).fields
        with ui.dialog(value=True) as self.dialog, ui.card().style("max-width: 720px"):
            ui.html("<h2>Add texts</h2>", sanitize=False)
            self.place = ui.element("div").classes("w-full")
            with self.place:
                ui.label("CSV, TSV, JSON, JSON lines, Parquet, or lines of text; also gzipped. All columns are kept.")
                files = ui.upload(label="A file", auto_upload=True, max_file_size=MOST_BYTES)
                files.on_upload(trying(self._uploaded))
                files.on("rejected", lambda: complain(f"The file is larger than {MOST_BYTES // 2**20} MB."))
                files.classes("w-full")
            ui.button("Cancel", on_click=self.dialog.close).props("flat")

    async def _uploaded(self, event: UploadEventArguments) -> None:
        """Keep the file in the project, and show its columns."""
        folder = self.project.folder / "imported"
        folder.mkdir(exist_ok=True)
        given = Path(event.file.name).name  # never another folder
        first = folder / f"new-{given}"
        await event.file.save(first)
        path = folder / f"{file_digest(first)[:8]}-{given}"  # two files may have one name
        first.replace(path)
        try:
            rows = await run.io_bound(lambda: [dict(row.fields) for row in islice(read_rows(path), ROWS_SHOWN)])
        except MaskMatchError as error:
            complain(_worded(error, path, given))
            return
        self._show_columns(path, given, rows or [])

    def _show_columns(self, path: Path, given: str, rows: list[dict[str, Any]]) -> None:
        columns = list(dict.fromkeys(name for row in rows for name in row))
        self.place.clear()
        with self.place:
            ui.label(f"The first rows of {given}:")
            with ui.element("div").classes("scroll"), ui.element("table").classes("plain"):
                with ui.element("thead"), ui.element("tr"):
                    for name in columns:
                        with ui.element("th").props("scope=col"):
                            ui.label(name)
                with ui.element("tbody"):
                    for row in rows:
                        with ui.element("tr"):
                            for name in columns:
                                with ui.element("td"):
                                    ui.label(str(row.get(name, ""))[:LONGEST])
            self.column = None
            if len(self.fields) == 1 and len(columns) > 1:
                self.column = ui.select(columns, value=self._guess(columns), label="Column with the texts")
                self.column.classes("w-full")
            self.skip = ui.checkbox("Leave out rows that cannot be read")
            self.status = ui.label().props('role="status"').classes("soft")
            ui.button("Add", on_click=trying(lambda: self._add(path, given))).props("outline")

    def _guess(self, columns: list[str]) -> str | None:
        """The column that a file without further settings would be read by."""
        try:
            found = guess_columns(columns, self.fields, want_label=False).fields[self.fields[0]]
        except MaskMatchError:
            return None
        return found

    async def _add(self, path: Path, given: str) -> None:
        reading: dict[str, Any] = {"skip_bad_rows": bool(self.skip.value)}
        if self.column is not None:
            if self.column.value is None:
                raise MaskMatchError("Choose the column with the texts first.")
            reading["text_field"] = self.column.value
        self.status.text = "The file is being read."
        try:
            count = await run.io_bound(lambda: self.project.import_once(str(path), **reading))
        except MaskMatchError as error:
            raise MaskMatchError(_worded(error, path, given)) from error
        finally:
            self.status.text = ""
        self.dialog.close()
        ui.notify("The project has these texts already." if count is None else f"{counted(count, 'text')} added.")
        self.done()


def _worded(error: MaskMatchError, path: Path, given: str) -> str:
    """An error as people at a page understand it."""
    message = str(error).replace(str(path), given)
    for option, words in HINTS.items():
        message = message.replace(option, words)
    return message
