"""What all pages have: navigation, who works on them, messages, and styles."""

from __future__ import annotations

import functools
import inspect
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from nicegui import app, ui

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from maskmatch.workbench.project import Project

logger = logging.getLogger("maskmatch")
Made = TypeVar("Made", bound=ui.element)

PAGES = {"/": "Texts", "/labels": "Labels", "/mark": "Mark", "/map": "Map", "/learn": "Learn", "/ship": "Ship"}

STYLE = """
:root { --ink: #1c2330; --soft: #5a6473; --line: #d8dde5; --paper: #ffffff; --tint: #f3f5f9; --accent: #1f5fbf; }
.body--dark { --ink: #e8ebf1; --soft: #a5afbf; --line: #3a4352; --paper: #161b24; --tint: #202734; --accent: #8ab4ff; }
body { --q-primary: #1f5fbf !important; }
body.body--dark { --q-primary: #8ab4ff !important; }
body { background: var(--paper); color: var(--ink); }
.nicegui-content { padding: 0 !important; gap: 0; max-width: 100%; }
a { color: var(--accent); }
.page { width: 100%; max-width: 1240px; margin: 0 auto; padding: 16px; box-sizing: border-box; }
h1 { font-size: 1.5rem; line-height: 1.3; font-weight: 600; margin: 0 0 12px; }
h2 { font-size: 1.1rem; line-height: 1.4; font-weight: 600; margin: 20px 0 8px; }
.top { display: flex; flex-wrap: wrap; gap: 4px 16px; align-items: center; padding: 8px 16px; width: 100%;
  border-bottom: 1px solid var(--line); background: var(--tint); box-sizing: border-box; }
.top nav { display: flex; flex-wrap: wrap; gap: 4px; }
.top nav a { padding: 6px 10px; border-radius: 6px; text-decoration: none; color: var(--ink); }
.top nav a[aria-current] { background: var(--accent); color: var(--paper); }
.top .who { margin-left: auto; color: var(--soft); }
.bar { display: flex; flex-wrap: wrap; gap: 8px 12px; align-items: end; margin-bottom: 12px; width: 100%; }
.soft { color: var(--soft); }
.box { border: 1px solid var(--line); border-radius: 8px; padding: 12px 16px; background: var(--tint); width: 100%;
  box-sizing: border-box; overflow-wrap: anywhere; }
.scroll { width: 100%; overflow-x: auto; position: relative; }
table.plain { border-collapse: collapse; width: 100%; }
table.plain th, table.plain td { text-align: left; padding: 6px 8px; border-bottom: 1px solid var(--line);
  vertical-align: top; }
table.plain th { color: var(--soft); font-weight: 500; white-space: nowrap; }
table.plain td.number, table.plain th.number { text-align: right; white-space: nowrap; }
.big { font-size: 1.25rem; line-height: 1.5; max-height: 45vh; overflow: auto; overflow-wrap: anywhere; }
mark { background: #ffd76a; color: #1c2330 !important; border-radius: 3px; padding: 0 2px; }
mark.against { background: #f3b0a6; }
kbd { border: 1px solid var(--line); border-radius: 4px; padding: 0 5px; font-size: .85em; background: var(--paper);
  color: var(--ink); }
.two { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); gap: 20px; width: 100%;
  align-items: start; }
.editor { position: sticky; top: 12px; max-height: 96vh; overflow: auto; scroll-margin-top: 12px; }
table.plain td { overflow-wrap: anywhere; }
table.plain .q-btn { margin-top: -4px; }
@media (max-width: 900px) {
  .two { grid-template-columns: minmax(0, 1fr); }
  .editor { position: static; max-height: none; order: -1; }
  table.plain, table.plain tbody, table.plain tr { display: block; }
  table.plain thead { display: none; }
  table.plain tr { border-bottom: 1px solid var(--line); padding: 6px 0; }
  table.plain td, table.plain td.number { display: inline-block; border: 0; padding: 2px 8px; text-align: left; }
  table.plain td:first-child { display: block; }
  table.plain td[data-title]:not(:empty)::before { content: attr(data-title) ": "; color: var(--soft); }
  table.plain td[data-title] > * { display: inline; }
}
:focus-visible { outline: 3px solid var(--accent); outline-offset: 1px; }
.finding { border-left: 3px solid #c77700; padding-left: 8px; margin: 4px 0; }
.sr-only { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
code { overflow-wrap: anywhere; }
.box p { margin: 0 0 8px; }
.q-btn { text-transform: none; }
.q-btn__content { white-space: nowrap; overflow-wrap: normal; }
"""


@contextmanager
def bare_frame(title: str) -> Iterator[None]:
    """The frame of a page without navigation."""
    _begin(title)
    with ui.element("div").classes("page"):
        ui.html(f"<h1>{title}</h1>", sanitize=False)
        yield


def _begin(title: str) -> None:
    ui.add_css(STYLE)
    ui.add_head_html(FOCUS)
    ui.dark_mode(None)
    ui.page_title(f"{title} | maskmatch")


@contextmanager
def frame(project: Project, path: str) -> Iterator[None]:
    """The frame of a page."""
    _begin(PAGES[path])
    with ui.element("header").classes("top"):
        with ui.element("nav").props('aria-label="Pages"'):
            for target, title in PAGES.items():
                link = ui.link(title, target)
                if target == path:
                    link.props('aria-current="page"')
        progress = ui.label().classes("soft").props('role="status"')
        if project.people is None:
            name = ui.input("Your name", value=who()).props('dense input-class="w-32"').classes("who")
            name.on("change", lambda: _rename(str(name.value or "").strip() or NOBODY, path))
        else:
            ui.label(who()).classes("who")
            ui.button("Sign out", on_click=_sign_out).props("flat dense")

    def show_progress() -> None:
        engine, total = project.engine, project.store.count
        if engine.error is not None:
            progress.text = f"Encoding failed: {engine.error}"
        elif engine.encoded < total:
            progress.text = f"{engine.encoded:,} of {total:,} texts are encoded"
        else:
            progress.text = f"{total:,} texts"

    show_progress()
    ui.timer(1.0, show_progress)
    with ui.element("div").classes("page"):
        ui.html(f"<h1>{PAGES[path]}</h1>", sanitize=False)
        yield


FOCUS = """<script>
(() => {  // parts of a page are made anew after an action; the keyboard stays where it was
  let last = null, key = "";
  const name = (e) => e.getAttribute && (e.getAttribute("aria-label") || e.textContent);
  document.addEventListener("focusin", (event) => { last = event.target; key = name(last); });
  const again = () => {
    if (!last || document.contains(last) || document.activeElement !== document.body) return;
    const same = [...document.querySelectorAll("button, a, input")].find((e) => name(e) === key);
    if (same) same.focus();
  };
  const watch = () => new MutationObserver(again).observe(document.body, { childList: true, subtree: true });
  document.body ? watch() : document.addEventListener("DOMContentLoaded", watch);
})();
</script>"""


def named(element: Made, name: str) -> Made:
    """An element with a name for screen readers, which may have any characters."""
    element.props["aria-label"] = name
    return element


MOST_BUTTONS = 30
"""Labels up to this many are buttons; all of them are found by typing."""


def other_label(names: Mapping[int, str], take: Callable[[int], object]) -> None:
    """A field in which a label is found by typing a part of its name."""
    field = ui.select(dict(names), label="Another label", with_input=True, on_change=lambda event: take(event.value))
    field.props("dense").classes("w-48")


def cell(title: str) -> ui.element:
    """A cell with its heading, which narrow screens show beside it."""
    made = ui.element("td")
    made.props["data-title"] = title
    return made


NOBODY, LONGEST_NAME = "me", 200


def _rename(name: str, path: str) -> None:
    app.storage.user["who"] = name
    if path == "/mark":  # its texts and figures are those of the person
        ui.navigate.reload()


def _sign_out() -> None:
    app.storage.user.clear()
    ui.navigate.reload()


def who() -> str:
    """The person at this browser."""
    return str(app.storage.user.get("who") or NOBODY)[:LONGEST_NAME]


def complain(message: str) -> None:
    """Show what cannot be done."""
    ui.notify(message, type="warning", multi_line=True, timeout=8000, close_button="Close")


def trying(work: Callable[..., Any]) -> Callable[..., Any]:
    """A handler that shows what a user did wrong instead of failing."""

    @functools.wraps(work)  # NiceGUI passes the event to what takes one
    def run(*arguments: Any) -> Any:
        try:
            found = work(*arguments)
        except Exception as error:  # a mistake of ours is shown, too
            _show_error(error)
            return None
        return later(found) if inspect.isawaitable(found) else found

    async def later(found: Any) -> Any:
        try:
            return await found
        except Exception as error:
            _show_error(error)
            return None

    return run


def _show_error(error: Exception) -> None:
    if isinstance(error, MaskMatchError):
        complain(str(error))
    else:
        logger.exception("the workbench failed")
        complain(f"Something went wrong: {error}. The terminal has the details.")
