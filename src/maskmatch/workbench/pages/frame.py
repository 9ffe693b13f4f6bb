"""What all pages have: navigation, who works on them, messages, and styles."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from nicegui import app, ui

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from maskmatch.workbench.project import Project

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
  box-sizing: border-box; }
.scroll { width: 100%; overflow-x: auto; position: relative; }
table.plain { border-collapse: collapse; width: 100%; }
table.plain th, table.plain td { text-align: left; padding: 6px 8px; border-bottom: 1px solid var(--line);
  vertical-align: top; }
table.plain th { color: var(--soft); font-weight: 500; white-space: nowrap; }
table.plain td.number, table.plain th.number { text-align: right; white-space: nowrap; }
.big { font-size: 1.25rem; line-height: 1.5; }
mark { background: #ffd76a; color: #1c2330; border-radius: 3px; padding: 0 2px; }
mark.against { background: #f3b0a6; }
kbd { border: 1px solid var(--line); border-radius: 4px; padding: 0 5px; font-size: .85em; background: var(--paper);
  color: var(--ink); }
.two { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); gap: 20px; width: 100%;
  align-items: start; }
@media (max-width: 900px) { .two { grid-template-columns: minmax(0, 1fr); } }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 1px; }
code { overflow-wrap: anywhere; }
.box p { margin: 0 0 8px; }
.q-btn { text-transform: none; }
"""


@contextmanager
def frame(project: Project, path: str) -> Iterator[None]:
    """The frame of a page."""
    ui.add_css(STYLE)
    ui.dark_mode(None)
    ui.page_title(f"{PAGES[path]} | maskmatch")
    with ui.element("header").classes("top"):
        with ui.element("nav").props('aria-label="Pages"'):
            for target, title in PAGES.items():
                link = ui.link(title, target)
                if target == path:
                    link.props('aria-current="page"')
        progress = ui.label().classes("soft").props('role="status"')
        name = ui.input("Your name", value=who()).props('dense input-class="w-32"').classes("who")
        name.on("change", lambda: app.storage.user.update(who=str(name.value).strip() or NOBODY))

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


NOBODY = "me"


def who() -> str:
    """The person at this browser."""
    return str(app.storage.user.get("who") or NOBODY)


def trying(work: Callable[..., Any]) -> Callable[..., Any]:
    """A handler that shows what a user did wrong instead of failing."""

    def run(*arguments: Any) -> Any:
        try:
            return work(*arguments)
        except MaskMatchError as error:
            ui.notify(str(error), type="negative", multi_line=True, timeout=8000, close_button="Close")
            return None

    return run
