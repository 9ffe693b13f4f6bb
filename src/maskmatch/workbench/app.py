"""The application of the workbench: its pages, in a server of its own."""

from __future__ import annotations

import os
import secrets
import sys
import threading
import webbrowser
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastapi import FastAPI

    from maskmatch.workbench.project import Project


def create_app(project: Project) -> FastAPI:
    """The application for a project."""
    os.environ.setdefault("NICEGUI_STORAGE_PATH", str(project.folder / "browsers"))  # read when NiceGUI is imported
    from fastapi import FastAPI
    from nicegui import ui
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    from maskmatch.workbench.pages.labels import LabelsPage
    from maskmatch.workbench.pages.learn import LearnPage
    from maskmatch.workbench.pages.map import MapPage
    from maskmatch.workbench.pages.mark import MarkPage
    from maskmatch.workbench.pages.ship import ShipPage
    from maskmatch.workbench.pages.sign_in import is_signed_in, sign_in
    from maskmatch.workbench.pages.texts import TextsPage

    pages: dict[str, Any] = {
        "/": TextsPage,
        "/labels": LabelsPage,
        "/mark": MarkPage,
        "/map": MapPage,
        "/learn": LearnPage,
        "/ship": ShipPage,
    }
    app = FastAPI(title="maskmatch workbench", docs_url=None, redoc_url=None, openapi_url=None)
    if project.people is None:  # a page of another site must not reach it under a name of its own
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=["localhost", "127.0.0.1", "::1", "[::1]"])

    @app.get("/health")
    def health() -> dict[str, Any]:
        return {"texts": project.store.count, "encoded": project.engine.encoded, "error": project.engine.error}

    for path, page in pages.items():

        def show(page: Any = page) -> None:
            if project.people is not None and not is_signed_in(project.people):
                sign_in(project.people)
                return
            page(project).build()

        ui.page(path)(show)
    secret = project.store.setting("secret") or secrets.token_hex(16)
    project.store.set("secret", secret)
    ui.run_with(
        app, title="maskmatch", language="en-US", dark=None, storage_secret=secret, show_welcome_message=False,
        favicon="🏷️",
    )  # fmt: skip
    return app


def run(project: Project, *, host: str, port: int, browser: bool) -> None:
    """Serve the pages until the process is asked to stop."""
    import uvicorn

    from maskmatch.serving.run import Server

    app = create_app(project)

    class Opening(Server):
        """Opens the browser once the address is known."""

        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            for server in getattr(self, "servers", ()):
                address = server.sockets[0].getsockname()
                if browser:
                    threading.Thread(target=webbrowser.open, args=(f"http://{address[0]}:{address[1]}",)).start()

    options: dict[str, Any] = {"log_level": "warning", "access_log": False, "timeout_graceful_shutdown": 5}
    server = Opening(uvicorn.Config(app, host=host, port=port, **options))
    try:
        server.run()
    finally:
        if project.training is not None and project.training.running:
            print("Stopping; the training is cancelled.", file=sys.stderr, flush=True)
        project.close()
        sys.stderr.flush()
