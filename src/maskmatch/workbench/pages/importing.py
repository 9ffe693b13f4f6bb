"""A dialog that adds the texts of a file to the project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nicegui import run, ui

from maskmatch.errors import MaskMatchError
from maskmatch.evaluation.display import counted
from maskmatch.workbench.pages.frame import complain

if TYPE_CHECKING:
    from collections.abc import Callable

    from nicegui.events import UploadEventArguments

    from maskmatch.workbench.project import Project

MOST_BYTES = 512 * 2**20


def import_dialog(project: Project, done: Callable[[], None]) -> None:
    """Ask for a file, and add its texts.

    Args:
        project: The project.
        done: Called when texts were added.
    """

    async def upload(event: UploadEventArguments) -> None:
        path = project.folder / "imported" / Path(event.file.name).name  # never another folder
        path.parent.mkdir(exist_ok=True)
        await event.file.save(path)
        named = str(column.value or "").strip() or None
        status.text = "The file is being read."
        try:
            count = await run.io_bound(lambda: project.import_once(str(path), text_field=named))
        except MaskMatchError as error:
            status.text = ""
            files.reset()
            complain(str(error).replace("--text-field", "the column of the texts"))
            return
        dialog.close()
        ui.notify("The project has these texts already." if count is None else f"{counted(count, 'text')} added.")
        done()

    with ui.dialog(value=True) as dialog, ui.card().style("max-width: 560px"):
        ui.html("<h2>Add texts</h2>", sanitize=False)
        ui.label("CSV, TSV, JSON, JSON lines, Parquet, or lines of text; also gzipped. All columns are kept.")
        column = ui.input("Column of the texts, if it is not plain").classes("w-full")
        files = ui.upload(label="A file", auto_upload=True, max_file_size=MOST_BYTES, on_upload=upload)
        files.on("rejected", lambda: complain(f"The file is larger than {MOST_BYTES // 2**20} MB."))
        files.classes("w-full")
        status = ui.label().props('role="status"').classes("soft")
        ui.button("Cancel", on_click=dialog.close).props("flat")
