"""The classifiers that a server has, and the checks of requests that all endpoints share."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Header, Query

from maskmatch.serving.auth import Tokens
from maskmatch.serving.errors import RequestError
from maskmatch.serving.feedback import FeedbackFile
from maskmatch.serving.metrics import Metrics
from maskmatch.serving.served import characters

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from fastapi import FastAPI, Request

    from maskmatch.serving.config import ServeConfig
    from maskmatch.serving.served import Answered, ServedModel, Wanted

Token = Annotated[str | None, Header(alias="Authorization", description="Bearer TOKEN, if the server has tokens.")]
ModelName = Annotated[str | None, Query(alias="model", description="Which classifier; default: the first one.")]


class Service:
    """The classifiers that are served, and the checks of requests.

    Args:
        config: The settings of the server.
        load: Loads the classifiers, when the server starts.
    """

    def __init__(self, config: ServeConfig, load: Callable[[Metrics], Sequence[ServedModel]]) -> None:
        self.config, self.metrics = config, Metrics()
        self.tokens = Tokens.load(config.token_file)
        self.feedback = FeedbackFile.open(config.feedback_file)
        self._writer = ThreadPoolExecutor(1, "maskmatch feedback")  # a slow disk holds up nothing else
        self._load = load
        self._models: dict[str, ServedModel] = {}

    @asynccontextmanager
    async def running(self, _: FastAPI) -> AsyncIterator[None]:
        """Load the classifiers; when the server stops, finish what waits."""
        self._models = {model.name: model for model in self._load(self.metrics)}
        watching = [asyncio.ensure_future(model.watch()) for model in self._models.values() if model.folder]
        yield
        for task in watching:
            task.cancel()
        for model in self._models.values():
            model.stop()
        self._writer.shutdown()

    @property
    def ready(self) -> bool:
        """Whether classifiers are loaded."""
        return bool(self._models)

    @property
    def names(self) -> list[str]:
        """The names of the classifiers."""
        return list(self._models)

    def find(self, name: str | None) -> ServedModel:
        """A classifier by its name; the first one if there is none."""
        if name is None:
            return next(iter(self._models.values()))
        if name not in self._models:
            raise RequestError(404, "unknown_model", f"There is no classifier of this name; there are: {self.names}.")
        return self._models[name]

    async def classify(
        self, request: Request, texts: Sequence[Any], wanted: Wanted, *, labels: Any = None, model: str | None = None
    ) -> tuple[ServedModel, Answered]:
        """Classify the texts of a request, if they are within bounds: the classifier, and its answers."""
        served = self.find(model)
        request.state.model, request.state.texts = served.name, len(texts)
        self.check_texts(texts)
        if self.config.log_texts:
            request.state.content = list(texts)
        return served, await served.classify(texts, wanted, labels)

    async def keep(self, feedback: dict[str, Any]) -> None:
        """Append to the feedback file."""
        if self.feedback is None:
            raise RequestError(404, "no_feedback", "This server keeps no feedback; start it with --feedback-file.")
        await asyncio.get_running_loop().run_in_executor(self._writer, self.feedback.append, feedback)

    def check_texts(self, texts: Sequence[Any]) -> None:
        """Raise if there are too many texts, or one of them is too long."""
        config = self.config
        if len(texts) > config.max_texts:
            raise RequestError(
                413, "too_many_texts", f"The request has {len(texts)} texts; {config.max_texts} are allowed."
            )
        longest = max(map(characters, texts), default=0)
        if longest > config.max_chars:
            raise RequestError(413, "too_long", f"A text has {longest} characters; {config.max_chars} are allowed.")
