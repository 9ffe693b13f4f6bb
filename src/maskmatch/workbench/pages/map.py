"""The map: texts and labels in two dimensions; texts that are circled become a label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from nicegui import ui

from maskmatch.workbench import edits
from maskmatch.workbench.clusters import typical_words, uncovered
from maskmatch.workbench.pages.frame import frame, trying, who
from maskmatch.workbench.store import Mark, plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maskmatch.workbench.project import Project

MOST_POINTS = 3_000
COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bb8844", "#7755bb", "#557755", "#997777",
)  # fmt: skip


class MapPage:
    """Texts as points."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.texts: list[int] = []
        self.points: NDArray[np.float64] = np.zeros((0, 2))
        self.circled: list[int] = []

    def build(self) -> None:
        """Show the page."""
        with frame(self.project, "/map"), ui.element("div").classes("two"):
            with ui.element("div"):
                self._chart()
            self.box = ui.element("section").classes("box").props('aria-label="Circled texts"')
            self._show_uncovered()

    def _chart(self) -> None:
        labels, engine = self.project.labels, self.project.engine
        predictions = engine.predictions(labels)
        if len(predictions) < 3:
            ui.label("The first texts are still being encoded; come back in a moment.")
            return
        drawn = [text for text in self.project.store.drawn() if text < len(predictions)]
        self.texts = drawn[:MOST_POINTS]
        vectors = engine.vectors[self.texts].reshape(len(self.texts), -1)
        self.points = project_2d(vectors)
        contents = self.project.store.texts(self.texts)
        keys = predictions.keys[self.texts]
        series = []
        for number, label in enumerate(labels.labels):
            own = np.flatnonzero(keys == label.key).tolist()
            series.append(
                {
                    "type": "scatter",
                    "name": label.name,
                    "symbolSize": 6,
                    "itemStyle": {"color": COLOURS[number % len(COLOURS)], "opacity": 0.75},
                    "data": [
                        {"value": [*self.points[place].round(4).tolist()], "name": plain(contents[place])[:120]}
                        for place in own
                    ],
                }
            )
        options = {
            "aria": {"enabled": True},
            "tooltip": {":formatter": "p => p.name.replace(/</g, '&lt;')"},
            "legend": {"type": "scroll", "textStyle": {"color": "#888"}},
            "brush": {"toolbox": ["polygon", "rect", "clear"], "xAxisIndex": 0},
            "grid": {"left": 8, "right": 8, "top": 44, "bottom": 44},
            "xAxis": {"show": False, "scale": True},
            "yAxis": {"show": False, "scale": True},
            "series": series,
        }
        ui.label(
            f"{len(self.texts):,} of {self.project.store.count:,} texts, coloured by their predicted label. Near "
            "points are texts that the encoder finds alike (PCA)."
        ).classes("soft")
        chart = ui.echart(options).style("height: 560px; width: 100%")
        chart.on("chart:brushEnd", lambda event: self._circle(event.args))

    def _show_uncovered(self) -> None:
        """What can be circled, and groups of texts that no label covers."""
        with self.box:
            ui.label("Circle texts with the lasso above the map, to make a label of them.")
            groups = uncovered(self.project)
            if not groups:
                return
            ui.html("<h2>Texts that no label covers well</h2>", sanitize=False)
            for group in groups:
                title = f"{len(group.texts)} texts: {', '.join(group.words) or 'no typical words'}"
                ui.button(title, on_click=lambda texts=group.texts: self._look_at(texts)).props("flat dense align=left")

    def _look_at(self, texts: tuple[int, ...]) -> None:
        self.circled = list(texts)
        self._show_circled()

    def _circle(self, args: dict[str, Any]) -> None:
        inside = np.zeros(len(self.points), bool)
        for area in args.get("areas", []):
            ranges = area.get("coordRange")
            if not ranges:
                continue
            if area.get("brushType") == "rect":
                (left, right), (low, high) = ranges
                x, y = self.points[:, 0], self.points[:, 1]
                inside |= (x >= left) & (x <= right) & (y >= low) & (y <= high)
            else:
                inside |= in_polygon(self.points, np.array(ranges, float))
        self.circled = [self.texts[place] for place in np.flatnonzero(inside).tolist()]
        self._show_circled()

    def _show_circled(self) -> None:
        self.box.clear()
        with self.box:
            if not self.circled:
                ui.label("No text is in there.")
                return
            contents = [plain(text) for text in self.project.store.texts(self.circled)]
            ui.label(f"{len(self.circled):,} texts are circled.").style("font-weight:600")
            words = typical_words(contents, [plain(text) for text in self.project.store.texts(self.texts)])
            name = ui.input("Name of a new label", value=" ".join(words[:2])).classes("w-full")
            if words:
                ui.label(f"Typical words: {', '.join(words)}").classes("soft")
            ui.checkbox("Mark these texts with it", value=True).bind_value_to(self, "marking")
            ui.button("Make a label", on_click=trying(lambda: self._make(str(name.value or "")))).props("outline")
            for content in contents[:8]:
                ui.label(content[:160]).classes("soft")

    marking = True

    def _make(self, name: str) -> None:
        project, labels = self.project, self.project.labels
        edit = edits.add(labels, project.store.new_key(), name=name)
        project.store.set_labels(edit.labels.labels, edit.what, who=who(), expected=labels.version)
        key = edit.labels.labels[-1].key
        if self.marking:
            marks = [Mark(text, who(), (key,), "circled") for text in self.circled]
            project.store.mark(marks, f"marked {len(marks)} circled texts as “{name}”", who=who())
        ui.notify(f"Kept: {edit.what}.")
        ui.navigate.to("/labels")


def project_2d(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """The two principal components of vectors: (n, 2)."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(centred[:2_000], full_matrices=False)
    return np.asarray(centred @ axes[:2].T)


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
