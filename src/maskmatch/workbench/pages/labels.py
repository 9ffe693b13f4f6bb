"""The labels: as one is edited, the page shows what the edit would change. Nothing changes until it is kept."""

from __future__ import annotations

import html
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from nicegui import run, ui

from maskmatch.errors import MaskMatchError
from maskmatch.evaluation.display import counted
from maskmatch.workbench import edits
from maskmatch.workbench.pages.frame import cell, frame, named, trying, who
from maskmatch.workbench.records import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from maskmatch.workbench.edits import Edit
    from maskmatch.workbench.engine import Effect
    from maskmatch.workbench.project import Project
    from maskmatch.workbench.records import Labels

    Make = Callable[[Labels], Edit]

MOST_MOVES, EXAMPLES = 5, 2


class LabelsPage:
    """The labels, and the editor of one."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.labels = project.labels
        self.edit: Edit | None = None
        self.problem, self.note = "", ""
        self._make: Make | None = None
        self._turn = 0  # counts what was typed: only the effect of the last is shown

    def build(self) -> None:
        """Show the page."""
        with frame(self.project, "/labels"), ui.element("div").classes("two"):
            with ui.element("div"):
                self.table()
            self.box = named(ui.element("section"), "Editor").classes("box editor")
            self._close()
            ui.timer(3.0, trying(self._follow))

    # -- the list --------------------------------------------------------------------------------------------

    @ui.refreshable_method
    def table(self) -> None:
        """All labels."""
        counts = self.project.engine.predictions(self.labels).counts
        marks = self._marks()
        with ui.element("div").classes("bar"):
            ui.button("Add a label", on_click=trying(self._begin_adding)).props("outline")
            ui.button("Undo", on_click=trying(self._undo)).props("flat")
        with ui.element("div").classes("scroll"), ui.element("table").classes("plain"):
            with ui.element("thead"), ui.element("tr"):
                for title, kind in (("Label", ""), ("Texts", "number"), ("Marks", "number"), ("Edit", "")):
                    with ui.element("th").props("scope=col").classes(kind):
                        ui.label(title)
            with ui.element("tbody"):
                for label in self.labels.labels:
                    with ui.element("tr"):
                        with ui.element("td"):
                            ui.label(label.name).style("font-weight:600")
                            more = "; ".join(filter(None, [label.description, *label.phrases]))
                            if more:
                                ui.label(more).classes("soft")
                        with cell("Texts").classes("number"):
                            ui.label(f"{counts.get(label.key, 0):,}")
                        with cell("Marks").classes("number"):
                            ui.label(f"{marks.get(label.key, 0):,}")
                        with ui.element("td"), ui.element("div").style("display:flex;gap:2px;flex-wrap:wrap"):
                            self._action("Change", label.name, partial(self._begin_changing, label.key))
                            self._action("Merge", label.name, partial(self._begin_merging, label.key))
                            self._action("Split", label.name, partial(self._begin_splitting, label.key))
                            self._action("Remove", label.name, partial(self._begin_removing, label.key))
                            self._action("Up", label.name, partial(self._move, label.key, -1))
                            self._action("Down", label.name, partial(self._move, label.key, 1))
        ui.html("<h2>History</h2>", sanitize=False)
        with ui.element("ul"):
            for change in self.project.store.changes("labels", 12):
                with ui.element("li").classes("soft"):
                    state = " (undone)" if change.undone else ""
                    by = f"{change.who}: " if change.who else ""
                    ui.label(f"{change.at.astimezone():%Y-%m-%d %H:%M} {by}{change.what}{state}")

    @staticmethod
    def _action(title: str, name: str, work: Callable[[], Any]) -> None:
        named(ui.button(title, on_click=trying(work)), f"{title} {name}").props("flat dense")

    # -- the editor ------------------------------------------------------------------------------------------

    def _close(self) -> None:
        """Show that nothing is being edited."""
        self._make, self.edit, self.problem, self.note = None, None, "", ""
        self.box.clear()
        with self.box:
            ui.label("Choose a label to change, or add one. You see what it would change before you keep it.")

    def _open(self, title: str, fields: Callable[[], None], note: str = "") -> None:
        """Show the editor with some fields, and below them the effect."""
        self._make, self.edit, self.problem, self.note = None, None, "", note
        self.box.clear()
        with self.box:
            ui.html(f"<h2>{html.escape(title)}</h2>", sanitize=False)
            fields()
            self.effect = ui.element("div").props('role="status" aria-live="polite"')
            with ui.element("div").classes("bar"):
                ui.button("Keep", on_click=trying(self._keep)).props("outline")
                ui.button("Discard", on_click=self._close).props("flat")
        ui.run_javascript(f"getElement({self.box.id}).scrollIntoView({{block: 'nearest'}})")

    def _begin_changing(self, key: int) -> None:
        label = self.labels.find(key)

        def fields() -> None:
            self._name_fields(label.name, label.description, ", ".join(label.phrases), partial(edits.change, key=key))

        self._open(f"Change “{label.name}”", fields)

    def _begin_adding(self) -> None:
        key = self.project.store.new_key()
        self._open("Add a label", lambda: self._name_fields("", "", "", partial(edits.add, key=key)))

    def _name_fields(self, name: str, description: str, phrases: str, make: Callable[..., Edit]) -> None:
        async def changed() -> None:
            parts = (part.strip() for part in str(others.value or "").split(","))
            given: dict[str, Any] = {
                "name": str(own.value or ""),
                "description": str(means.value or ""),
                "phrases": tuple(dict.fromkeys(part for part in parts if part)),
            }
            await self._show(partial(make, **given))

        change = trying(changed)
        own = ui.input("Name", value=name, on_change=change).props("autofocus debounce=150").classes("w-full")
        means = ui.input("What it means", value=description, on_change=change).props("debounce=150").classes("w-full")
        others = ui.input("Other names, separated by commas", value=phrases, on_change=change)
        others.props("debounce=150").classes("w-full")

    def _begin_merging(self, key: int) -> None:
        label = self.labels.find(key)
        others = {other.key: other.name for other in self.labels.labels if other.key != key}

        def fields() -> None:
            into = ui.select(others, label="Into").classes("w-full")
            into.on_value_change(trying(lambda: self._show(partial(edits.merge, key=key, into=into.value))))

        self._open(f"Merge “{label.name}”", fields)

    def _begin_splitting(self, key: int) -> None:
        label = self.labels.find(key)
        keys: list[int] = []

        async def changed(event: Any) -> None:
            names = [part.strip() for part in str(event.value or "").split(",") if part.strip()]
            while len(keys) < len(names) - 1:
                keys.append(self.project.store.new_key())
            await self._show(partial(edits.split, key=key, names=names, keys=keys[: max(0, len(names) - 1)]))

        def fields() -> None:
            field = ui.input("Names, separated by commas", value=label.name, on_change=trying(changed))
            field.props("debounce=150").classes("w-full")

        count = self._marks().get(key, 0)
        note = f"Its {counted(count, 'mark')} stay with the first name; mark texts of the others anew." if count else ""
        self._open(f"Split “{label.name}”", fields, note)

    async def _begin_removing(self, key: int) -> None:
        count = self._marks().get(key, 0)
        note = f"Its {counted(count, 'mark')} are removed as well." if count else ""
        self._open(f"Remove “{self.labels.find(key).name}”", lambda: None, note)
        await self._show(partial(edits.remove, key=key))

    async def _show(self, make: Make) -> None:
        """Show the effect of an edit, which is not kept yet."""
        self._make, self._turn = make, self._turn + 1
        turn, labels = self._turn, self.labels
        try:
            self.edit, self.problem = make(labels), ""
        except MaskMatchError as error:
            self.edit, self.problem = None, str(error)
        edit = self.edit
        found = None
        if edit is not None:
            found = await run.io_bound(self.project.engine.preview, labels, edit.labels, self.project.truth())
        if turn != self._turn:  # something else was typed meanwhile
            return
        self.effect.clear()
        with self.effect:
            if edit is None or found is None:
                ui.label(self.problem)
                return
            if self.note:
                ui.label(self.note).classes("finding")
            self._figures(found, edit)

    def _figures(self, found: Effect, edit: Edit) -> None:
        names = {**self.labels.names, **edit.labels.names}
        ui.label(f"{found.changed:,} of {found.rows:,} texts would get another label.").style("font-weight:600")
        for label in edit.labels.labels:
            before, after = found.before.get(label.key, 0), found.after.get(label.key, 0)
            old = next((each for each in self.labels.labels if each.key == label.key), None)
            if old != label:
                ui.label(f"“{label.name}” would have {counted(after, 'text')}, {after - before:+,}.")
        for finding in found.findings:
            ui.label(finding).classes("finding")
        if found.right is not None:
            before, after, count = found.right
            ui.label(f"Of {counted(count, 'marked text')}, {after:,} would be right; now {before:,} are.")
        for (truth, predicted), (before, after) in list(found.confusions.items())[:MOST_MOVES]:
            ui.label(
                f"“{names.get(truth, '?')}” predicted as “{names.get(predicted, '?')}”: {before:,} marked now, "
                f"{after:,} then."
            ).classes("soft")
        for (old_key, new_key), texts in list(found.moves.items())[:MOST_MOVES]:
            ui.label(f"{len(texts):,} from “{self.labels.names[old_key]}” to “{names[new_key]}”, such as:").classes(
                "soft"
            )
            for content in self.project.store.texts(texts[:EXAMPLES].tolist()):
                ui.html(f"<q>{html.escape(plain(content)[:160])}</q>", sanitize=False)

    # -- keeping ---------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        if self.edit is None:
            raise MaskMatchError(self.problem or "There is nothing to keep yet; change something first.")
        if self.project.labels.version == self.labels.version:
            self._store(self.edit)
            return
        self._renew()
        if self._make is not None:
            await self._show(self._make)
        raise MaskMatchError("Somebody has changed the labels meanwhile. Look at the effect again, then keep it.")

    def _store(self, edit: Edit) -> None:
        self.project.store.set_labels(
            edit.labels.labels, edit.what, who=who(), expected=self.labels.version, moved=edit.moved
        )
        ui.notify(f"Kept: {edit.what}.")
        self._again()

    def _move(self, key: int, by: int) -> None:
        self._renew()
        edit = edits.move(self.labels, key, by)
        if edit.labels != self.labels:
            self._store(edit)

    def _undo(self) -> None:
        undone = self.project.store.undo(who(), "labels")
        ui.notify("There is nothing to undo." if undone is None else f"Undone: {undone.what}.")
        self._again()

    async def _follow(self) -> None:
        """Show what others have changed; an edit that is open stays, with its new effect."""
        if self.project.labels.version != self.labels.version:
            self._renew()
            if self._make is not None:
                await self._show(self._make)

    def _renew(self) -> None:
        self.labels = self.project.labels
        self.table.refresh()

    def _again(self) -> None:
        self._renew()
        self._close()

    def _marks(self) -> dict[int, int]:
        """How many marks each label has."""
        return Counter(key for mark in self.project.store.marks() for key in mark.labels)
