"""``maskmatch serve``: classifiers over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import typer

from maskmatch.cli import options
from maskmatch.cli.groups import Options, SettingsOf
from maskmatch.config.settings import declared
from maskmatch.config.tasks import TASKS
from maskmatch.errors import MaskMatchError
from maskmatch.serving.config import ENVIRONMENT, ServeConfig
from maskmatch.serving.loading import load_all


def serve(
    *,
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL",
            help="Folders of classifiers or exports. Without any, the embedded default is served, and every request "
            "brings its labels.",
        ),
    ] = None,
    task: Annotated[str, typer.Option(help="The task of the embedded default: its prompts.")] = "topic",
    settings: Annotated[Options, SettingsOf(lambda: declared(ServeConfig), environment=ENVIRONMENT)],
    json: options.AsJson = False,  # taken by every command; here --log-format decides
) -> None:
    """Serve classifiers over HTTP: POST /v1/classify, and what clients of other servers speak; see /docs."""
    if task not in TASKS:
        raise typer.BadParameter(f"there is no task {task!r}; choose one of {', '.join(TASKS)}.", param_hint="--task")
    for model in models or ():
        options.saved_classifier(model)
    config = ServeConfig(**settings)
    with ThreadPoolExecutor(1) as loader:
        loading = loader.submit(load_all, models or [], task)  # graphs are read while the server is imported
        try:
            from maskmatch.serving.run import run
        except ModuleNotFoundError as error:
            raise MaskMatchError(
                f"The server needs {error.name}, which is not installed; "
                'install it with pip install "maskmatch[serve]".'
            ) from error
        loaded = loading.result()
    run(loaded, models or [], task, config)
