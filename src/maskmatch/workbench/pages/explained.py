"""A dialog that explains a prediction: words that carry it, nearest labels, marked texts that it resembles."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from nicegui import run, ui

from maskmatch.prediction.occlusion import explain
from maskmatch.workbench.queue import similar_marked
from maskmatch.workbench.records import plain

if TYPE_CHECKING:
    from maskmatch.evaluation.explanation.result import ExplainedLabel, Explanation
    from maskmatch.workbench.project import Project


async def explain_dialog(project: Project, text: int) -> None:
    """Show why a text gets its label."""
    labels = project.labels
    names = labels.names
    (content,) = project.store.texts([text])
    with ui.dialog(value=True) as dialog, ui.card().style("max-width: 720px"):
        ui.html("<h2>Why this label</h2>", sanitize=False)
        place = ui.element("div")
        with place:
            ui.spinner()
        ui.button("Close", on_click=dialog.close).props("flat")
    found = await run.io_bound(lambda: explain(project.engine.pipeline(labels), content, 3))
    assert found is not None
    marks = {mark.text: mark for mark in project.store.marks()}
    similar = similar_marked(project, text)
    place.clear()
    with place:
        ui.html(f'<p class="big">{html.escape(plain(content))}</p>', sanitize=False)
        for each in found.labels:
            name = html.escape(names.get(int(str(each.label)), "?"))
            words = _coloured(found, each)
            ui.html(f"<p><b>{name}</b> {each.probability:.2f}<br>{words}</p>", sanitize=False)
        ui.html('<p class="soft">Yellow words speak for a label, red ones against it.</p>', sanitize=False)
        if similar:
            ui.html("<h2>Marked texts like it</h2>", sanitize=False)
            for number, cosine in similar:
                (other,) = project.store.texts([number])
                said = ", ".join(names.get(key, "?") for key in marks[number].labels) or "none fits"
                ui.html(
                    f"<p>{html.escape(plain(other))}<br><b>{html.escape(said)}</b> {cosine:.2f}</p>", sanitize=False
                )


def _coloured(found: Explanation, label: ExplainedLabel) -> str:
    """The words of the text; those that matter most for the label are marked."""
    strong = max(map(abs, label.effects), default=0.0) or 1.0
    return " ".join(
        f'<mark class="{"" if effect > 0 else "against"}">{html.escape(part.text)}</mark>'
        if abs(effect) >= strong / 3
        else html.escape(part.text)
        for part, effect in zip(found.parts, label.effects, strict=True)
    )
