"""The first page: the texts with their predictions."""

from __future__ import annotations

import html
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from nicegui import ui

from maskmatch.workbench.browse import MARKED, ORDERS, Filter, ShownText, find, said, shown
from maskmatch.workbench.pages.explained import explain_dialog
from maskmatch.workbench.pages.frame import MOST_BUTTONS, cell, frame, named, other_label, trying, who
from maskmatch.workbench.pages.importing import ImportDialog
from maskmatch.workbench.records import Mark

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from maskmatch.workbench.project import Project

PER_PAGE = 50
LONGEST = 400
"""How many characters of a text the table shows."""


class TextsPage:
    """The texts, filtered and in pages."""

    def __init__(self, project: Project) -> None:
        self.project, self.wanted, self.page = project, Filter(), 0
        self.found: NDArray[np.int64] = find(project, self.wanted)
        self.encoded = project.engine.encoded
        self.version = project.labels.version

    def build(self) -> None:
        """Show the page."""
        with frame(self.project, "/"):
            self.dialogs = ui.element("div")  # what opens in the table would go with its next refresh
            self._controls()
            self.table()
            ui.timer(1.0, trying(self._follow))

    def _controls(self) -> None:
        names: dict[int | None, str] = {None: "any label"}
        for key, name in self.project.labels.names.items():
            names[key] = name
        with ui.element("div").classes("bar").props('role="search"'):
            ui.input("Search", on_change=lambda event: self._filter(words=event.value)).props(
                "clearable debounce=250 dense"
            )
            ui.select(names, value=None, label="Label", on_change=lambda event: self._filter(label=event.value)).props(
                "dense"
            ).classes("w-48")
            ui.select(
                MARKED, value="all", label="Marks", on_change=lambda event: self._filter(marked=event.value)
            ).props("dense").classes("w-48")
            ui.number(
                "Probability from",
                value=0,
                min=0,
                max=1,
                step=0.05,
                on_change=lambda e: self._filter(least=_share(e.value, 0.0)),
            ).props("dense").classes("w-32")
            ui.number(
                "to", value=1, min=0, max=1, step=0.05,
                on_change=lambda event: self._filter(most=_share(event.value, 1.0)),
            ).props("dense").classes("w-32")  # fmt: skip
            ui.select(
                ORDERS, value="file", label="Order", on_change=lambda event: self._filter(order=event.value)
            ).props("dense").classes("w-48")
            ui.button("Add texts", on_click=self._import).props("outline dense")

    def _import(self) -> None:
        with self.dialogs:
            ImportDialog(self.project, self._find)

    def _filter(self, **changes: Any) -> None:
        changes = {name: "" if name == "words" and value is None else value for name, value in changes.items()}
        self.wanted, self.page = replace(self.wanted, **changes), 0
        self._find()

    def _find(self) -> None:
        self.found = find(self.project, self.wanted)
        self.encoded, self.version = self.project.engine.encoded, self.project.labels.version
        self.table.refresh()

    def _follow(self) -> None:
        """Show predictions of texts that have been encoded, and labels that somebody has changed."""
        engine = self.project.engine
        waits = self.wanted.order == "novel" and engine.encoded < self.project.store.count  # it looks at all texts
        if self.project.labels.version != self.version or (engine.encoded != self.encoded and not waits):
            self._find()

    def _turn(self, by: int) -> None:
        last = max(0, (len(self.found) - 1) // PER_PAGE)
        self.page = min(max(0, self.page + by), last)
        self.table.refresh()

    @ui.refreshable_method
    def table(self) -> None:
        """One page of texts."""
        first = self.page * PER_PAGE
        rows = shown(self.project, self.found[first : first + PER_PAGE])
        names = self.project.labels.names
        with ui.element("div").classes("bar"):
            count = len(self.found)
            last = min(first + PER_PAGE, count)
            told = f"{first + 1:,} to {last:,} of {count:,} texts" if count else "No text matches these filters."
            ui.label(told).props('role="status"').classes("soft")
            ui.button("Previous", on_click=lambda: self._turn(-1)).props("flat dense").set_enabled(self.page > 0)
            ui.button("Next", on_click=lambda: self._turn(1)).props("flat dense").set_enabled(last < count)
        if not rows:
            return
        with ui.element("div").classes("scroll"), ui.element("table").classes("plain"):
            with ui.element("thead"), ui.element("tr"):
                for title in ("Text", "Prediction", "Probability", "Mark", ""):
                    with ui.element("th").props("scope=col"):
                        ui.html(title or '<span class="sr-only">Actions</span>', sanitize=False)
            with ui.element("tbody"):
                for row in rows:
                    self._row(row, names)

    def _row(self, row: Any, names: dict[int, str]) -> None:
        text = row.text if len(row.text) <= LONGEST else f"{row.text[:LONGEST]}…"
        with ui.element("tr"):
            with ui.element("td"):
                ui.html(html.escape(text), sanitize=False)
                others = " · ".join(f"{name}: {value}" for name, value in row.others.items())
                if others:
                    ui.label(others[:LONGEST]).classes("soft")
            with cell("Prediction"):
                ui.label("…" if row.label is None else names.get(row.label, "?"))
            with cell("Probability").classes("number"):
                ui.label("" if row.label is None else f"{row.probability:.2f}")
            with cell("Mark"):
                for mark in row.marks:
                    labels = ", ".join(names.get(key, "?") for key in mark.labels) or "none fits"
                    ui.label(labels if len({each.who for each in row.marks}) == 1 else f"{labels} ({mark.who})")
            with ui.element("td"), ui.element("div").style("display:flex;gap:4px"):
                short = row.text[:60]
                if row.label is not None:
                    named(
                        ui.button("Correct", on_click=partial(self._mark, row, row.label)), f"Mark as correct: {short}"
                    ).props("flat dense")
                    named(ui.button("Change", on_click=partial(self._choose, row)), f"Choose its label: {short}").props(
                        "flat dense"
                    )
                    named(ui.button("Why?", on_click=partial(self._explain, row.id)), f"Explain: {short}").props(
                        "flat dense"
                    )

    def _choose(self, row: ShownText) -> None:
        """Ask for the label of a text."""

        def take(*labels: int) -> None:
            dialog.close()
            self._mark(row, *labels)

        with self.dialogs, ui.dialog(value=True) as dialog, ui.card().style("max-width: 720px"):
            ui.html("<h2>Which label has this text?</h2>", sanitize=False)
            ui.html(f'<p class="big">{html.escape(row.text)}</p>', sanitize=False)
            with ui.element("div").classes("bar"):
                names = self.project.labels.names
                for key, name in list(names.items())[:MOST_BUTTONS]:
                    ui.button(name, on_click=partial(take, key)).props("outline")
                if len(names) > MOST_BUTTONS:
                    other_label(names, take)
                ui.button("None fits", on_click=partial(take)).props("flat")
                ui.button("Cancel", on_click=dialog.close).props("flat")

    def _mark(self, row: ShownText, *labels: int) -> None:
        trying(self._keep_mark)(row, labels)

    def _keep_mark(self, row: ShownText, labels: tuple[int, ...]) -> None:
        person, names = who(), self.project.labels.names
        what = said(row.text, [names.get(key, "?") for key in labels])
        self.project.store.mark([Mark(row.id, person, labels, "chosen")], what, who=person)
        self.table.refresh()
        with self.dialogs:
            ui.notify(f"Kept: {what}. To take it back, press u on the page Mark.")

    async def _explain(self, text: int) -> None:
        with self.dialogs:
            await explain_dialog(self.project, text)


def _share(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else min(max(float(value), 0.0), 1.0)
