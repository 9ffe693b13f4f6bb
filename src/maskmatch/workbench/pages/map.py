"""The map: texts and labels in two dimensions; texts that are circled become a label."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from nicegui import run, ui

from maskmatch.evaluation.display import counted
from maskmatch.workbench import edits
from maskmatch.workbench.clusters import typical_words, uncovered
from maskmatch.workbench.pages.frame import frame, named, trying, who
from maskmatch.workbench.records import Mark, plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maskmatch.workbench.clusters import Group
    from maskmatch.workbench.layout import Layout, View
    from maskmatch.workbench.project import Project

GOLDEN_ANGLE = 137.5
"""Hues that are this far apart stay different, however many there are."""

UNUSED = -1
"""The key of a label that is not made yet."""

NEAREST = 10
"""A label is drawn amid this many of its most probable texts."""

Colouring = Literal["label", "probability", "mark"]
COLOURINGS: dict[Colouring, str] = {"label": "predicted label", "probability": "probability", "mark": "mark"}
VIEWS: dict[View, str] = {"pca": "quick (principal components)", "umap": "grouped (UMAP)"}
PROBABILITIES = (0.0, 0.25, 0.5, 0.75, 0.9)
"""Texts are coloured by which of these their probability has reached."""


class MapPage:
    """Texts as points."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.texts: list[int] = []
        self.layout: Layout | None = None
        self.groups: list[Group] = []
        self.view: View = "pca"
        self.colouring: Colouring = "label"
        self.circled: list[int] = []
        self.marking = False

    def build(self) -> None:
        """Show the page."""
        with frame(self.project, "/map"):
            self.place = ui.element("div")
            with self.place:
                ui.label("The map is being made.").classes("soft").props('role="status"')
            ui.timer(0.1, trying(self._load), once=True)

    async def _load(self) -> None:
        """Compute what takes some seconds with many texts, and show it."""
        found = await run.io_bound(self.project.map)
        self.groups = await run.io_bound(uncovered, self.project) or []
        self.place.clear()
        with self.place:
            if found is None:
                ui.label("The first texts are still being encoded; come back in a moment.")
                return
            self.texts, self.layout = found
            self.view = "umap" if self.layout.ready else "pca"
            with ui.element("div").classes("two"):
                with ui.element("div"):
                    self.controls()
                    self.chart(self.layout)
                self.box = named(ui.element("section"), "Texts for a label").classes("box")
                self._show_uncovered()
            if not self.layout.ready:
                self.timer = ui.timer(1.0, trying(partial(self._follow, self.layout)))

    @ui.refreshable_method
    def controls(self) -> None:
        """How the map is drawn."""
        assert self.layout is not None
        with ui.element("div").classes("bar"):
            ui.select(
                COLOURINGS, value=self.colouring, label="Colour by", on_change=lambda e: self._draw(colouring=e.value)
            ).props("dense").classes("w-48")
            views = {view: title for view, title in VIEWS.items() if view in self.layout.places}
            ui.select(views, value=self.view, label="Layout", on_change=lambda e: self._draw(view=e.value)).props(
                "dense"
            ).classes("w-64")
            if not self.layout.ready and not self.layout.failed:
                ui.label("UMAP, which shows groups better, is being computed.").classes("soft").props('role="status"')

    def _draw(self, *, view: View | None = None, colouring: Colouring | None = None) -> None:
        self.view, self.colouring = view or self.view, colouring or self.colouring
        self.chart.refresh()

    def _follow(self, layout: Layout) -> None:
        """Show UMAP once it is ready, unless somebody is at work."""
        if layout.ready or layout.failed:
            self.timer.cancel()
            self.controls.refresh()
            if layout.ready and not self.circled:
                self._draw(view="umap")
                self.controls.refresh()

    @ui.refreshable_method
    def chart(self, layout: Layout) -> None:
        """The map."""
        if max(self.texts) >= self.project.engine.encoded:
            ui.label("The texts are being encoded by another classifier; come back in a moment.")
            return
        points = layout.places[self.view]
        contents = [plain(text) for text in self.project.store.texts(self.texts)]
        series = [
            {
                "type": "scatter",
                "name": name,
                "symbolSize": 6,
                "itemStyle": {"color": colour, "opacity": 0.8},
                "data": [
                    {"value": points[place].round(4).tolist(), "name": contents[place][:120]} for place in own.tolist()
                ],
            }
            for name, colour, own in self._groups()
        ]
        options = {
            "aria": {"enabled": True},
            "tooltip": {":formatter": "p => p.name.replace(/</g, '&lt;')"},
            "legend": {"type": "scroll", "textStyle": {"color": "#888"}, "data": [each["name"] for each in series]},
            "brush": {"toolbox": ["polygon", "rect", "clear"], "xAxisIndex": 0},
            "grid": {"left": 60, "right": 60, "top": 44, "bottom": 44},
            "xAxis": {"show": False, "scale": True},
            "yAxis": {"show": False, "scale": True},
            "series": [*series, self._names(points)],
        }
        ui.label(
            f"{len(self.texts):,} of {self.project.store.count:,} texts. Near points are texts that the encoder finds "
            "alike. A label's name is where its most probable texts are; names that overlap are hidden."
        ).classes("soft")
        chart = ui.echart(options).style("height: 560px; width: 100%")
        chart.on("chart:brushEnd", trying(lambda event: self._circle(points, event.args)))

    def _groups(self) -> list[tuple[str, str, NDArray[np.int64]]]:
        """The points of each colour, with what they have in common."""
        names = self.project.labels.names
        predictions = self.project.engine.predictions(self.project.labels)
        if self.colouring == "probability":
            levels = np.digitize(predictions.probabilities[self.texts], PROBABILITIES[1:])
            return [
                (f"from {least:.2f}", f"hsl({220 - 55 * number}, 75%, 50%)", np.flatnonzero(levels == number))
                for number, least in enumerate(PROBABILITIES)
            ]
        keys = predictions.keys[self.texts]
        groups = []
        if self.colouring == "mark":
            marks = {mark.text: mark.labels[0] for mark in self.project.store.marks() if mark.labels}
            keys = np.array([marks.get(text, 0) for text in self.texts], np.int64)  # keys begin at 1
            groups = [("not marked", "#9aa3b0", np.flatnonzero(keys == 0))]
        colours = {key: _colour(number) for number, key in enumerate(names)}
        return groups + [(name, colours[key], np.flatnonzero(keys == key)) for key, name in names.items()]

    def _names(self, points: NDArray[np.float64]) -> dict[str, Any]:
        """The names of the labels, each amid its most probable texts."""
        labels, engine = self.project.labels, self.project.engine
        pipeline = engine.pipeline(labels)
        order, values = pipeline.nearest_places(engine.vectors[self.texts], len(labels.labels))
        probabilities = np.zeros_like(values)
        np.put_along_axis(probabilities, order, values, axis=1)  # (n, K)
        nearest = np.argsort(-probabilities, axis=0, kind="stable")[:NEAREST]
        names = [labels.names[int(str(id_))] for id_ in pipeline.labels]
        return {
            "type": "scatter",
            "symbolSize": 1,
            "silent": True,
            "z": 5,
            "label": {
                "show": True, "formatter": "{b}", "fontSize": 12, "color": "#fff", "backgroundColor": "#1c2330cc",
                "padding": [3, 6], "borderRadius": 4,
            },
            "labelLayout": {"hideOverlap": True},
            "data": [
                {"value": np.median(points[nearest[:, place]], axis=0).round(4).tolist(), "name": name}
                for place, name in enumerate(names)
            ],
        }  # fmt: skip

    def _show_uncovered(self) -> None:
        """What can be circled, and groups of texts that no label covers."""
        self.box.clear()
        self.circled = []
        with self.box:
            ui.label("Circle texts with the lasso above the map, to make a label of them.")
            if not self.groups:
                return
            ui.html("<h2>Texts that no label covers well</h2>", sanitize=False)
            for group in self.groups:
                title = f"{len(group.texts)} texts: {', '.join(group.words) or 'no typical words'}"
                ui.button(title, on_click=partial(self._look_at, list(group.texts))).props("flat dense align=left")

    def _circle(self, points: NDArray[np.float64], args: dict[str, Any]) -> None:
        inside = np.zeros(len(points), bool)
        for area in args.get("areas", []):
            ranges = area.get("coordRange")
            if not ranges:
                continue
            if area.get("brushType") == "rect":
                (left, right), (low, high) = ranges
                x, y = points[:, 0], points[:, 1]
                inside |= (x >= left) & (x <= right) & (y >= low) & (y <= high)
            else:
                inside |= in_polygon(points, np.array(ranges, float))
        self._look_at([self.texts[place] for place in np.flatnonzero(inside).tolist()])

    def _look_at(self, texts: list[int]) -> None:
        """Show some texts, and what is needed to make a label of them."""
        self.circled = texts
        self.box.clear()
        with self.box:
            back = ui.button("Back", on_click=self._show_uncovered).props("flat dense")
            if not texts:
                ui.label("No text is in there.")
                back.move(target_index=1)
                return
            contents = [plain(text) for text in self.project.store.texts(texts)]
            ui.label(f"{counted(len(texts), 'text')} chosen.").style("font-weight:600")
            words = typical_words(contents, [plain(text) for text in self.project.store.texts(self.texts)])
            name = ui.input("Name of a new label", value=" ".join(words[:2])).classes("w-full")
            if words:
                ui.label(f"Typical words: {', '.join(words)}").classes("soft")
            effect = ui.element("div").props('role="status"')
            check = trying(lambda: self._preview(str(name.value or ""), effect))
            name.on_value_change(check)
            unmarked = f"Also mark these texts with it, but for those that you have marked ({len(texts):,})"
            ui.checkbox(unmarked, value=self.marking).bind_value_to(self, "marking")
            ui.button("Make a label", on_click=trying(lambda: self._make(str(name.value or "")))).props("outline")
            for content in contents[:8]:
                ui.label(content[:160]).classes("soft")
            ui.timer(0.1, check, once=True)

    async def _preview(self, name: str, effect: ui.element) -> None:
        """Show how many texts would get the new label."""
        labels = self.project.labels
        effect.clear()
        if not name.strip():
            return
        edit = edits.add(labels, UNUSED, name=name)
        found = await run.io_bound(self.project.engine.preview, labels, edit.labels, {})
        effect.clear()
        with effect:
            assert found is not None
            own = {int(text) for (_, new), moved in found.moves.items() if new == UNUSED for text in moved}
            ui.label(f"{counted(len(own), 'text')} would get it, {len(own & set(self.circled)):,} of these.")

    def _make(self, name: str) -> None:
        project, labels, person = self.project, self.project.labels, who()
        edit = edits.add(labels, project.store.new_key(), name=name)
        key = edit.labels.labels[-1].key
        own = {mark.text for mark in project.store.marks() if mark.who == person}
        texts = [text for text in self.circled if text not in own] if self.marking else []
        what = f"{edit.what} and marked {counted(len(texts), 'text')} with it" if texts else edit.what
        marks = [Mark(text, person, (key,), "circled") for text in texts]
        project.store.set_labels(edit.labels.labels, what, who=person, expected=labels.version, marks=marks)
        ui.notify(f"Kept: {what}.")
        ui.navigate.to("/labels")


def _colour(number: int) -> str:
    return f"hsl({round(210 + GOLDEN_ANGLE * number) % 360}, {65 - number % 3 * 15}%, 48%)"


def in_polygon(points: NDArray[np.float64], corners: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which points are in a polygon: a ray from them crosses its edges an odd number of times.

    >>> in_polygon(np.array([[0.5, 0.5], [2.0, 0.5]]), np.array([[0, 0], [1, 0], [1, 1], [0, 1]])).tolist()
    [True, False]
    """
    inside = np.zeros(len(points), bool)
    for (x1, y1), (x2, y2) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        crosses = (y1 > points[:, 1]) != (y2 > points[:, 1])
        if y1 != y2:
            inside ^= crosses & (points[:, 0] < (x2 - x1) * (points[:, 1] - y1) / (y2 - y1) + x1)
    return inside
