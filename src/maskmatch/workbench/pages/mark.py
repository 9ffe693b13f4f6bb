"""Marking, with the keyboard first: which text is shown and why, and what is known of the accuracy by now."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from nicegui import ui

from maskmatch.evaluation.display import counted
from maskmatch.workbench.browse import said, shown
from maskmatch.workbench.pages.frame import MOST_BUTTONS, frame, other_label, trying, who
from maskmatch.workbench.queue import REASONS, Suggestion, estimate, suggest
from maskmatch.workbench.records import Mark, plain

if TYPE_CHECKING:
    from nicegui.events import KeyEventArguments

    from maskmatch.workbench.project import Project

DIGITS = 9


class MarkPage:
    """One text at a time."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.skipped: list[Suggestion] = []
        self.last_skipped = False
        self.several = False
        self.chosen: list[int] = []
        self.suggestion: Suggestion | None = None
        self.order: list[int] = []
        self.version = -1

    def build(self) -> None:
        """Show the page."""
        ui.keyboard(on_key=trying(self._key), ignore=["input", "select", "textarea"])
        self._next()
        with frame(self.project, "/mark"), ui.element("div").classes("two"):
            with ui.element("div"):
                self.text()
            with ui.element("div"):
                self.figures()
            ui.timer(2.0, trying(self._follow))

    def _next(self, again: Suggestion | None = None) -> None:
        """Show the next text, or one again."""
        self.chosen = []
        skipped = [each.text for each in self.skipped]
        self.suggestion = again or suggest(self.project, who(), skipped=skipped)
        if self.suggestion is None:
            return
        labels, engine = self.project.labels, self.project.engine  # another one may be chosen meanwhile
        self.version = labels.version
        place = self.suggestion.text
        if place >= engine.encoded:
            self.order = list(labels.names)
            return
        found, _ = engine.pipeline(labels).nearest_places(engine.vectors[place : place + 1], len(labels.labels))
        ids = list(engine.pipeline(labels).labels)
        self.order = [int(str(ids[each])) for each in found[0].tolist()]

    @ui.refreshable_method
    def text(self) -> None:
        """The text to mark."""
        if self.suggestion is None:
            engine, total = self.project.engine, self.project.store.count
            done = engine.encoded == total
            ui.label("All texts are marked." if done else "The first texts are still being encoded; wait a moment.")
            if not done:
                ui.timer(1.0, self._again, once=True)
            return
        (row,) = shown(self.project, [self.suggestion.text])
        names = self.project.labels.names
        with ui.element("section").classes("box").props('aria-label="Text to mark" aria-live="polite"'):
            ui.html(f'<p class="big">{html.escape(row.text)}</p>', sanitize=False)
            reason = "its mark was taken back" if self.suggestion.undone else REASONS[self.suggestion.reason]
            ui.label(f"Shown because: {reason}.").classes("soft")
            for mark in row.marks:
                labels = ", ".join(names.get(key, "?") for key in mark.labels) or "none fits"
                ui.label(f"{mark.who} says: {labels}").classes("soft")
        with ui.element("div").classes("bar").style("margin-top:12px").props('role="group" aria-label="Labels"'):
            for number, key in enumerate(self.order[:MOST_BUTTONS], 1):
                title = f"{number} {names[key]}" if number <= DIGITS else names[key]
                button = ui.button(title, on_click=lambda key=key: self._take(key)).props("no-caps")
                if key not in self.chosen:
                    button.props("outline")
                if self.several:
                    button.props(f'aria-pressed="{"true" if key in self.chosen else "false"}"')
            if len(self.order) > MOST_BUTTONS:
                other_label(names, self._take)
        with ui.element("div").classes("bar"):
            ui.button("0 None fits", on_click=lambda: self._keep([])).props("flat")
            ui.button("S Skip", on_click=self._skip).props("flat")
            ui.button("U Undo", on_click=trying(self._undo)).props("flat")
            ui.checkbox("Several labels per text", value=self.several, on_change=self._set_several)
            if self.several:
                ui.button("Enter: keep", on_click=lambda: self._keep(self.chosen)).props("outline")
        ui.html(
            '<p class="soft"><kbd>1</kbd> to <kbd>9</kbd> the likeliest labels, <kbd>0</kbd> none fits, '
            "<kbd>s</kbd> skip, <kbd>u</kbd> undo, <kbd>Enter</kbd> keep several</p>",
            sanitize=False,
        )

    @ui.refreshable_method
    def figures(self) -> None:
        """How many marks there are, and the accuracy by those that were drawn at random."""
        marks = self.project.store.marks()
        with ui.element("section").classes("box").props('aria-label="Figures"'):
            ui.label(f"{counted(len(marks), 'mark')}, {sum(mark.who == who() for mark in marks):,} of them yours.")
            found = estimate(self.project)
            if found is None:
                ui.label("The accuracy is not known yet: mark some texts that are drawn at random.")
            else:
                low, high = found.interval.low, found.interval.high
                drawn, right = counted(found.count, "mark"), found.right / found.count
                ui.label(
                    f"By {drawn} drawn at random, {right:.0%} of the predictions are right; the 95% interval is "
                    f"{low:.0%} to {high:.0%}."
                )

    # -- what people do --------------------------------------------------------------------------------------

    def _key(self, event: KeyEventArguments) -> None:
        if not event.action.keydown or event.action.repeat or event.modifiers.ctrl or event.modifiers.meta:
            return
        name = str(event.key.name)
        if name.isdigit() and name != "0" and int(name) <= min(DIGITS, len(self.order)):
            self._take(self.order[int(name) - 1])
        elif name == "0":
            self._keep([])
        elif name.lower() == "s":
            self._skip()
        elif name.lower() == "u":
            self._undo()
        elif name == "Enter" and self.several and self.chosen:
            self._keep(self.chosen)

    def _set_several(self, event: Any) -> None:
        self.several, self.chosen = bool(event.value), []
        self.text.refresh()

    def _take(self, key: int) -> None:
        if not self.several:
            self._keep([key])
            return
        self.chosen = [each for each in self.chosen if each != key] if key in self.chosen else [*self.chosen, key]
        self.text.refresh()

    def _keep(self, labels: list[int]) -> None:
        if self.suggestion is None:
            return
        trying(self._store)(labels)
        self._again()

    def _store(self, labels: list[int]) -> None:
        assert self.suggestion is not None
        person, names = who(), self.project.labels.names
        mark = Mark(self.suggestion.text, person, tuple(labels), self.suggestion.reason)
        (content,) = self.project.store.texts([mark.text])
        what = said(plain(content), [names.get(key, "?") for key in labels])
        self.project.store.mark([mark], what, who=person)
        self.last_skipped = False

    def _skip(self) -> None:
        if self.suggestion is not None:
            self.skipped.append(self.suggestion)
            self.last_skipped = True
            self._again()

    def _undo(self) -> None:
        if self.last_skipped:
            self.last_skipped = False
            self._again(self.skipped.pop())
            return
        undone = self.project.store.undo(who(), "marks")
        ui.notify("There is no mark of yours to undo." if undone is None else f"Undone: {undone.what}.")
        own = [mark for mark in undone.marks if mark.who == who()] if undone is not None else []
        self._again(Suggestion(own[0].text, own[0].reason, undone=True) if len(own) == 1 else None)

    def _follow(self) -> None:
        """Show labels that somebody has changed."""
        if self.suggestion is not None and self.project.labels.version != self.version:
            self._again(self.suggestion)

    def _again(self, shown_again: Suggestion | None = None) -> None:
        self._next(shown_again)
        self.text.refresh()
        self.figures.refresh()
