"""Run the server: one process, or several that share the port."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from maskmatch.errors import MaskMatchError
from maskmatch.serving.app import create_app
from maskmatch.serving.auth import Tokens
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


@dataclass(frozen=True)
class Loaded:
    """What is served: a classifier or an export, its name, and its folder if it has labels of its own."""

    name: str
    predictor: EditablePredictor
    folder: Path | None = None


def load_all(models: Sequence[str], task: str) -> list[Loaded]:
    """Load classifiers and exports; or the embedded default, which needs labels in each request."""
    if not models:
        from maskmatch.serving.default_export import default_export, load_default

        return [Loaded("default", load_default(default_export(task)))]
    names = [Path(model).expanduser().resolve().name for model in models]
    if len(set(names)) < len(names):
        raise MaskMatchError(f"Two of the classifiers have the same name ({', '.join(names)}); rename a folder.")
    return [Loaded(name, _load(model), Path(model).expanduser()) for name, model in zip(names, models, strict=True)]


def _load(model: str) -> EditablePredictor:
    import maskmatch

    exported = (Path(model).expanduser() / EXPORT_FILE).exists()
    kind: Any = maskmatch.ExportedMatcher if exported else maskmatch.MaskMatcher
    loaded: EditablePredictor = kind.from_pretrained(model, verbose=False)
    _ = loaded.pipeline  # what cannot be used is reported at the start
    return loaded


def app_of(config: ServeConfig, loaded: Sequence[Loaded]) -> FastAPI:
    """The application that serves classifiers."""

    def serve(metrics: Metrics) -> list[ServedModel]:
        return [
            ServedModel(
                each.name, each.predictor, config, metrics, folder=each.folder, own_labels=each.folder is not None
            )
            for each in loaded
        ]

    return create_app(config, serve)


def make_app() -> FastAPI:
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


def run(models: Sequence[str], task: str, config: ServeConfig) -> None:
    """Serve until the process is asked to stop."""
    loaded = load_all(models, task)  # with several workers it is loaded again by each; what is wrong is reported here
    Tokens.load(config.token_file)
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
        server = Server(uvicorn.Config(app_of(config, loaded), **options))
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
