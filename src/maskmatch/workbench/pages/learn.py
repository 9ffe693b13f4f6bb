"""Learning: train on marks, look at the runs, choose the one that predicts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from nicegui import run, ui

from maskmatch.evaluation.display import counted
from maskmatch.workbench.curve import learning_curve
from maskmatch.workbench.learning import ENOUGH_TO_JUDGE
from maskmatch.workbench.pages.frame import cell, frame, named, trying, who
from maskmatch.workbench.project import NAMES_ALONE, described

if TYPE_CHECKING:
    from maskmatch.workbench.curve import Curve
    from maskmatch.workbench.learning import Kind
    from maskmatch.workbench.project import Project

COLUMNS = ("Classifier", "Started", "Marks", "Held-back marks", "State")
BEFORE_AND_AFTER = ("accuracy before", "accuracy")


class LearnPage:
    """The runs."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def build(self) -> None:
        """Show the page."""
        with frame(self.project, "/learn"):
            self.controls()
            self.table()
            self.pictures()
            ui.html("<h2>What further marks would bring</h2>", sanitize=False)
            self.place = ui.element("div")
            with self.place:
                ui.label("This is being computed.").classes("soft").props('role="status"')
            ui.timer(0.1, trying(self._compute_curve), once=True)
            ui.timer(1.0, trying(self._follow))

    @ui.refreshable_method
    def controls(self) -> None:
        """Start, progress, cancel."""
        training = self.project.training
        running = training is not None and training.running
        marks = len(self.project.truth())
        with ui.element("section").classes("box").props('aria-label="Train"'):
            ui.label(
                f"{counted(marks, 'text')} marked with one label. Training takes some minutes. Half of the marks that "
                f"were drawn at random are held back to judge it. With {ENOUGH_TO_JUDGE} or more of them, the better "
                "classifier is chosen by itself; with fewer, you choose. Learning from unmarked texts takes seconds."
            )
            with ui.element("div").classes("bar").style("margin-top:8px"):
                ui.button("Train", on_click=trying(lambda: self._train("train"))).props("outline").set_enabled(
                    not running
                )
                ui.button("Learn from unmarked texts", on_click=trying(lambda: self._train("adapt"))).props(
                    "outline"
                ).set_enabled(not running)
                if running and training is not None:
                    ui.linear_progress(training.share, show_value=False).props('aria-label="Progress"').classes("w-64")
                    ui.label(f"{training.message}, {training.share:.0%}").props('role="status"')
                    cancel = ui.button("Cancel", on_click=trying(self._cancel)).props("flat")
                    cancel.set_enabled(not training.cancelled)

    @ui.refreshable_method
    def table(self) -> None:
        """All runs, and names alone."""
        current = self.project.run
        rows: list[dict[str, Any]] = [
            *self.project.store.runs(),
            {"id": NAMES_ALONE, "kind": "names", "state": "done", "figures": {}, "who": "", "started": None},
        ]
        ui.html("<h2>Classifiers</h2>", sanitize=False)
        with ui.element("div").classes("scroll"), ui.element("table").classes("plain"):
            with ui.element("thead"), ui.element("tr"):
                for title in (*COLUMNS, ""):
                    with ui.element("th").props("scope=col"):
                        ui.html(title or '<span class="sr-only">Actions</span>', sanitize=False)
            with ui.element("tbody"):
                for row in rows:
                    self._row(row, current)

    @ui.refreshable_method
    def pictures(self) -> None:
        """The accuracy of all runs that were judged."""
        judged = [row for row in reversed(self.project.store.runs()) if "accuracy" in row["figures"]]
        if not judged:
            return
        names = [described(row["id"], row["kind"]) for row in judged]
        before, after = ([round(100 * row["figures"][name], 1) for row in judged] for name in BEFORE_AND_AFTER)
        bar = {"type": "bar", "label": {"show": True, "position": "top"}, "barMaxWidth": 40}
        ui.label("Accuracy on held-back marks, in percent, of what predicted before and of each run.").classes("soft")
        ui.echart(
            {
                "aria": {"enabled": True},
                "legend": {"top": 0, "textStyle": {"color": "#888"}},
                "grid": {"left": 40, "right": 16, "top": 40, "bottom": 32},
                "xAxis": {"type": "category", "data": names},
                "yAxis": {"type": "value", "min": 0, "max": 100},
                "series": [
                    {**bar, "name": "before", "data": before, "itemStyle": {"color": "#9aa3b0"}},
                    {**bar, "name": "after", "data": after, "itemStyle": {"color": "#4477aa"}},
                ],
            }
        ).style("height: 240px; max-width: 640px")

    async def _compute_curve(self) -> None:
        """Show what further marks would probably bring; computing it takes some seconds with many marks."""
        found = await run.io_bound(learning_curve, self.project)
        self.place.clear()
        with self.place:
            self._curve(found)

    @staticmethod
    def _curve(found: Curve | None) -> None:
        if found is None:
            ui.label("With some marks of each label, this shows how the accuracy grows with them.").classes("soft")
            return
        ui.label(
            f"Estimated by a simple classifier on your {found.marks:,} marks: right in {found.accuracies[-1]:.0%} now. "
            f"{found.more} more marks would probably bring {100 * found.gain:+.0f} points."
        )
        points = [[count, round(100 * each, 1)] for count, each in zip(found.counts, found.accuracies, strict=True)]
        expected = [points[-1], [found.marks + found.more, round(100 * (found.accuracies[-1] + found.gain), 1)]]
        line = {"type": "line", "symbolSize": 8}
        ui.echart(
            {
                "aria": {"enabled": True},
                "grid": {"left": 48, "right": 24, "top": 32, "bottom": 40},
                "xAxis": {"type": "value", "name": "marks", "nameLocation": "middle", "nameGap": 24},
                "yAxis": {"type": "value", "scale": True, "name": "%"},
                "series": [
                    {**line, "data": points, "itemStyle": {"color": "#4477aa"}},
                    {**line, "data": expected, "itemStyle": {"color": "#4477aa"}, "lineStyle": {"type": "dashed"}},
                ],
            }
        ).style("height: 240px; max-width: 640px")

    def _row(self, row: dict[str, Any], current: int) -> None:
        figures = row["figures"]
        accuracy = ""
        if "accuracy" in figures:
            accuracy = f"{figures['accuracy']:.0%} of {figures['held back']} (before: {figures['accuracy before']:.0%})"
        elif "right" in figures:
            accuracy = (
                f"{figures['right']} of {figures['held back']} right (before: {figures['right before']}); too few"
            )
        name = described(row["id"], row["kind"])
        cells = (
            name,
            "" if row["started"] is None else f"{row['started']:%Y-%m-%d %H:%M}",
            str(figures.get("marks", "")),
            accuracy,
            figures.get("error") or figures.get("verdict") or row["state"],
        )
        with ui.element("tr"):
            for title, content in zip(COLUMNS, cells, strict=True):
                with cell(title) if content and title != COLUMNS[0] else ui.element("td"):
                    ui.label(content)
            with ui.element("td"):
                if row["id"] == current:
                    ui.label("predicts now").style("font-weight:600")
                elif row["state"] == "done":
                    named(ui.button("Use", on_click=trying(partial(self._choose, row["id"]))), f"Use: {name}").props(
                        "flat dense"
                    )

    def _train(self, kind: Kind) -> None:
        self.project.train(who(), kind)
        self._again()

    async def _cancel(self) -> None:
        training = self.project.training
        if training is not None:
            training.message = "it stops at the next step"
            self._again()
            await run.io_bound(training.cancel)
        self._again()

    async def _choose(self, number: int) -> None:
        await run.io_bound(self.project.choose, number)
        self._again()

    def _follow(self) -> None:
        training = self.project.training
        if training is not None and (training.running or not training.seen):
            training.seen = not training.running
            self.controls.refresh()
            if training.seen:
                self._again()

    def _again(self) -> None:
        self.controls.refresh()
        self.table.refresh()
        self.pictures.refresh()
