"""Run the server: one process, or several that share the port."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import uvicorn

from maskmatch.errors import MaskMatchError
from maskmatch.serving.app import create_app
from maskmatch.serving.auth import Tokens
from maskmatch.serving.config import ServeConfig
from maskmatch.serving.feedback import FeedbackFile
from maskmatch.serving.loading import load_all
from maskmatch.serving.metrics import SHARED
from maskmatch.serving.served import ServedModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from starlette.types import ASGIApp

    from maskmatch.serving.loading import Loaded
    from maskmatch.serving.metrics import Metrics

SETTINGS = "MASKMATCH_SERVE_SETTINGS"
"""The environment variable by which the settings reach the processes of several workers."""


def app_of(config: ServeConfig, loaded: Sequence[Loaded]) -> ASGIApp:
    """The application that serves classifiers."""

    def serve(metrics: Metrics) -> list[ServedModel]:
        return [
            ServedModel(
                each.name, each.predictor, config, metrics, folder=each.folder, own_labels=each.folder is not None
            )
            for each in loaded
        ]

    return create_app(config, serve)


def make_app() -> ASGIApp:
    """The application of one of several workers, by the settings in the environment."""
    given = json.loads(os.environ[SETTINGS])
    _log_to_stderr()
    return app_of(ServeConfig(**given["config"]), load_all(given["models"], given["task"]))


class Server(uvicorn.Server):
    """A server that drains on SIGTERM and SIGINT: it answers what it has accepted, and exits with 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals; unlike uvicorn's own, they are not raised again afterwards."""
        kinds = (signal.SIGTERM, signal.SIGINT)
        before = {kind: signal.signal(kind, self.handle_exit) for kind in kinds}
        try:
            yield
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)

    async def startup(self, sockets: Any = None) -> None:
        """Start, and print the address: the port may have been any free one."""
        await super().startup(sockets)
        for server in getattr(self, "servers", ()):
            for each in server.sockets:
                host, port = each.getsockname()[:2]
                sys.stderr.write(f"maskmatch: serving on http://{host}:{port}\n")
                sys.stderr.flush()


def run(loaded: Sequence[Loaded], models: Sequence[str], task: str, config: ServeConfig) -> None:
    """Serve until the process is asked to stop.

    Args:
        loaded: The classifiers. Several workers load them again, each for itself.
        models: Their folders.
        task: The task of the embedded default.
        config: The settings of the server.
    """
    Tokens.load(config.token_file)
    FeedbackFile.open(config.feedback_file)
    _log_to_stderr()
    options: dict[str, Any] = {
        "host": config.host,
        "port": config.port,
        "log_level": "warning",
        "access_log": False,
        "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": max(1, round(config.timeout)),
        "server_header": False,
        "proxy_headers": False,  # no answer depends on where a request comes from
    }
    if config.workers == 1:
        server = Server(uvicorn.Config(app_of(config, loaded), **options))
        server.run()
        if not server.started:
            raise MaskMatchError(f"The server could not be started on {config.host}:{config.port}.")
        return
    if not config.port:
        raise MaskMatchError("Several workers need a port; give one with --port.")
    del loaded  # each worker has its own
    threads = max(1, (os.cpu_count() or 1) // config.workers)
    settings = {"models": list(models), "task": task, "config": config.to_json()}
    with tempfile.TemporaryDirectory(prefix="maskmatch-metrics-") as shared:
        os.environ.update({SETTINGS: json.dumps(settings), SHARED: shared, "OMP_NUM_THREADS": str(threads)})
        sys.stderr.write(f"maskmatch: serving on http://{config.host}:{config.port} with {config.workers} workers\n")
        uvicorn.run("maskmatch.serving.run:make_app", factory=True, workers=config.workers, **options)


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    requests = logging.getLogger("maskmatch.serving")
    requests.handlers, requests.propagate = [handler], False
    requests.setLevel(logging.INFO)
