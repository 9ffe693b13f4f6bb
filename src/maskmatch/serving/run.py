"""Run the server: one process, or several that share the port."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from maskmatch.errors import MaskMatchError
from maskmatch.serving.app import create_app
from maskmatch.serving.config import ServeConfig
from maskmatch.serving.metrics import SHARED
from maskmatch.serving.served import ServedModel
from maskmatch.storage.layout import EXPORT_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fastapi import FastAPI

    from maskmatch.prediction.editing import EditablePredictor
    from maskmatch.serving.metrics import Metrics

SETTINGS = "MASKMATCH_SERVE_SETTINGS"
"""The environment variable by which the settings reach the processes of several workers."""


def load_models(models: Sequence[str], task: str, config: ServeConfig, metrics: Metrics) -> list[ServedModel]:
    """Load what is served: classifiers and exports; or the embedded default, which needs labels in each request."""
    if not models:
        return [ServedModel("default", _default(task), config, metrics, own_labels=False)]
    served = [
        ServedModel(Path(model).expanduser().resolve().name, _load(model), config, metrics, folder=Path(model))
        for model in models
    ]
    names = [model.name for model in served]
    if len(set(names)) < len(names):
        raise MaskMatchError(f"Two of the classifiers have the same name ({', '.join(names)}); rename a folder.")
    return served


def _load(model: str) -> EditablePredictor:
    import maskmatch

    exported = (Path(model).expanduser() / EXPORT_FILE).exists()
    kind: Any = maskmatch.ExportedMatcher if exported else maskmatch.MaskMatcher
    loaded: EditablePredictor = kind.from_pretrained(model, verbose=False)
    _ = loaded.pipeline  # what cannot be used is reported at the start
    return loaded


def _default(task: str) -> EditablePredictor:
    from maskmatch.serving.default_export import default_export, load_default

    return load_default(default_export(task))


def make_app() -> FastAPI:
    """The application of one of several workers, by the settings in the environment."""
    given = json.loads(os.environ[SETTINGS])
    config = ServeConfig(**given["config"])
    _log_to_stderr()
    return create_app(config, lambda metrics: load_models(given["models"], given["task"], config, metrics))


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


def run(models: Sequence[str], task: str, config: ServeConfig) -> None:
    """Serve until the process is asked to stop."""
    _log_to_stderr()
    options: dict[str, Any] = {
        "host": config.host,
        "port": config.port,
        "log_level": "warning",
        "access_log": False,
        "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": max(1, round(config.timeout)),
        "server_header": False,
    }
    if config.workers == 1:
        app = create_app(config, lambda metrics: load_models(models, task, config, metrics))
        server = Server(uvicorn.Config(app, **options))
        server.run()
        if not server.started:
            raise MaskMatchError(f"The server could not be started on {config.host}:{config.port}.")
        return
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
