"""Shipping: predictions, labels and the classifier as files, and the commands that go on with them."""

from __future__ import annotations

import html
from functools import partial
from typing import TYPE_CHECKING

from nicegui import run, ui

from maskmatch.errors import MaskMatchError
from maskmatch.workbench import shipping
from maskmatch.workbench.pages.frame import complain, frame, named

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from maskmatch.workbench.project import Project

TABLES = ("predictions.csv", "predictions.jsonl", "predictions.parquet")


class ShipPage:
    """What leaves the project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.folder = project.folder / "shipped"

    def build(self) -> None:
        """Show the page."""
        project, folder = self.project, self.folder
        with frame(project, "/ship"):
            ui.html("<h2>Files</h2>", sanitize=False)
            ui.label(f"Files are written into {folder}, and can be downloaded.").classes("soft")
            with ui.element("div").classes("bar"):
                for name in TABLES:
                    self._button(name, partial(shipping.save_predictions, project, folder / name))
            with ui.element("div").classes("bar"):
                for name, save in (
                    (shipping.LABELS, shipping.save_labels),
                    (shipping.TRAINING, shipping.save_training_rows),
                    (shipping.TEST, shipping.save_test_rows),
                ):
                    self._button(name, partial(save, project, folder / name))
                self._button("report.html", partial(shipping.save_report, project, folder / "report"))
            ui.label(
                f"{shipping.TRAINING} has the marks that training uses. {shipping.TEST} has the marks of a random "
                "sample that the classifier has not learnt from; the report is of these."
            ).classes("soft")
            ui.html("<h2>Classifier</h2>", sanitize=False)
            ui.label("A classifier is a folder, which stays there. It takes some seconds to write.").classes("soft")
            with ui.element("div").classes("bar"):
                for name, int8 in ((shipping.CLASSIFIER, False), (f"{shipping.CLASSIFIER}-int8", True)):
                    save = partial(shipping.save_classifier, project, folder / name, int8=int8)
                    self._button(name, save, file=False)
            ui.html("<h2>Commands</h2>", sanitize=False)
            ui.label("They read the files above; write those first.").classes("soft")
            for title, command in shipping.commands(project, folder):
                ui.label(title)
                with ui.element("div").classes("bar"):
                    ui.html(f"<code>{html.escape(command)}</code>", sanitize=False)
                    named(ui.button("Copy", on_click=partial(ui.clipboard.write, command)), f"Copy: {command}").props(
                        "flat dense"
                    )

    def _button(self, title: str, work: Callable[[], Path], *, file: bool = True) -> None:
        async def write() -> None:
            button.props("loading")
            try:
                path = await run.io_bound(work)
                assert path is not None
            except MaskMatchError as error:
                complain(str(error))
                return
            finally:
                button.props(remove="loading")
            ui.notify(f"Written: {path}")
            if file:
                ui.download.file(path)

        button = ui.button(title, on_click=write).props("outline no-caps")
