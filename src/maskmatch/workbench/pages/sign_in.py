"""The page that asks for a token, where a project has a file of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from nicegui import app, ui

from maskmatch.workbench.pages.frame import bare_frame, complain

if TYPE_CHECKING:
    from maskmatch.workbench.people import People

SECONDS_AFTER_A_MISTAKE = 1.0


def is_signed_in(people: People) -> bool:
    """Whether this browser has given the token of somebody who still has it."""
    return app.storage.user.get("token") in people.names


def sign_in(people: People) -> None:
    """Ask for a token."""

    async def check() -> None:
        found = people.find(str(token.value or ""))
        if found is None:
            await asyncio.sleep(SECONDS_AFTER_A_MISTAKE)  # so that nobody tries many
            complain("Nobody has this token.")
            return
        app.storage.user.update(token=found, who=people.names[found])
        ui.navigate.reload()

    with bare_frame("Sign in"):
        token = ui.input("Your token", password=True).props("autofocus").classes("w-64")
        token.on("keydown.enter", check)
        ui.button("Sign in", on_click=check).props("outline")
