"""Shipping: predictions, labels and the classifier as files, and the commands that go on with them."""

from __future__ import annotations

import html
import shlex
from functools import partial
from typing import TYPE_CHECKING

from nicegui import run, ui

from maskmatch.errors import MaskMatchError
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
        with frame(self.project, "/ship"):
            ui.html("<h2>Files</h2>", sanitize=False)
            ui.label(f"Files are written into {self.folder}, and can be downloaded.").classes("soft")
            with ui.element("div").classes("bar"):
                for name in TABLES:
                    self._button(name, partial(self.project.save_predictions, self.folder / name))
                self._button("labels.json", lambda: self.project.save_labels(self.folder / "labels.json"))
            ui.html("<h2>Classifier</h2>", sanitize=False)
            ui.label("A classifier is a folder, which stays there. It takes some seconds to write.").classes("soft")
            with ui.element("div").classes("bar"):
                self._button("classifier", lambda: self.project.save_classifier(self.folder / "classifier"), file=False)
                self._button(
                    "classifier-int8",
                    lambda: self.project.save_classifier(self.folder / "classifier-int8", int8=True),
                    file=False,
                )
            ui.html("<h2>Commands</h2>", sanitize=False)
            ui.label("Write the files above first.").classes("soft")
            for command in self.commands():
                with ui.element("div").classes("bar"):
                    ui.html(f"<code>{html.escape(command)}</code>", sanitize=False)
                    named(ui.button("Copy", on_click=partial(ui.clipboard.write, command)), f"Copy: {command}").props(
                        "flat dense"
                    )

    def commands(self) -> list[str]:
        """The commands that go on with these files."""
        folder, names = shlex.quote(str(self.folder)), shlex.quote(str(self.folder / "labels.json"))
        return [
            f"maskmatch classify --labels {names} --task {self.project.task} texts.csv -o predictions.csv",
            f"maskmatch predict {folder}/classifier-int8 texts.csv -o predictions.csv",
            f"maskmatch serve {folder}/classifier-int8",
        ]

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
