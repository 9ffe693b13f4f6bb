"""The HTTP application: its endpoints, and those that clients of other servers already speak."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Header, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from maskmatch import __version__
from maskmatch.data.values import is_blank
from maskmatch.serving import schemas
from maskmatch.serving.auth import Tokens
from maskmatch.serving.errors import RequestError, invalid, of_validation
from maskmatch.serving.metrics import Metrics
from maskmatch.serving.middleware import Guard, refused
from maskmatch.serving.routes import JsonRoute, json_post, not_json
from maskmatch.serving.served import ServedModel, Wanted, characters

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from starlette.types import ASGIApp

    from maskmatch.labels import LabelSet
    from maskmatch.serving.config import ServeConfig

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.ErrorResponse, "description": text}
    for status, text in {
        400: "The request is not JSON.",
        401: "A token is needed.",
        403: "The token may not do this.",
        404: "There is no such classifier.",
        408: "The request did not arrive in time.",
        413: "The request has too many bytes, texts, characters or labels.",
        422: "The request means nothing.",
        503: "Too many texts wait.",
    }.items()
}
EDIT_ERRORS = {
    **ERRORS,
    409: {"model": schemas.ErrorResponse, "description": "There is no folder to save to."},
    412: {"model": schemas.ErrorResponse, "description": "The labels have changed since you read them."},
    428: {"model": schemas.ErrorResponse, "description": "If-Match is missing."},
}
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

    def queue_depth(self) -> int:
        """How many texts wait."""
        return sum(model.waiting for model in self._models.values())

    async def classify(
        self, request: Request, texts: Sequence[Any], wanted: Wanted, *, labels: Any = None, model: str | None = None
    ) -> tuple[ServedModel, LabelSet, list[dict[str, Any]]]:
        """Classify the texts of a request, if they are within bounds: the classifier, its labels and the answers."""
        served = self.find(model)
        request.state.model, request.state.texts = served.name, len(texts)
        self.check_texts(texts)
        if self.config.log_texts:
            request.state.content = list(texts)
        return served, *await served.classify(texts, wanted, labels)

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


def create_app(config: ServeConfig, load: Callable[[Metrics], Sequence[ServedModel]]) -> ASGIApp:
    """The application.

    Args:
        config: The settings of the server.
        load: Loads the classifiers, when the server starts.
    """
    service = Service(config, load)
    app = FastAPI(
        title="maskmatch",
        version=__version__,
        description="Classify texts by the names of labels.",
        lifespan=service.running,
        responses=ERRORS,
    )
    _add_own_endpoints(app, service)
    _add_label_endpoints(app, service)
    _add_other_dialects(app, service)
    _add_operations(app, service)

    @app.exception_handler(RequestError)
    async def refuse(request: Request, error: RequestError) -> Response:
        request.state.error = error.kind
        return refused(error, service.metrics)

    @app.exception_handler(RequestValidationError)
    async def refuse_invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return await refuse(request, not_json() if first["type"] == "json_invalid" else of_validation(first))

    @app.exception_handler(HTTPException)
    async def refuse_http(request: Request, error: HTTPException) -> Response:
        kind = {404: "not_found", 405: "method_not_allowed", 400: "not_json"}.get(error.status_code, "http")
        return JSONResponse({"error": str(error.detail), "error_type": kind}, error.status_code, error.headers)

    direct = {route.path: route for route in app.routes if isinstance(route, JsonRoute)}
    guarded: ASGIApp = Guard(app, config, service.metrics, direct)
    if config.cors:
        origins = [origin.strip() for origin in config.cors.split(",")]
        guarded = CORSMiddleware(guarded, allow_origins=origins, allow_methods=["*"], allow_headers=["*"])
    return guarded


def _add_own_endpoints(app: FastAPI, service: Service) -> None:
    @json_post(app, "/v1/classify", response_model=schemas.ClassifyResponse, response_model_exclude_unset=True)
    async def classify(request: Request, body: schemas.ClassifyRequest, authorization: Token = None) -> Any:
        """Classify texts, by the labels of the classifier or of the request. A text that cannot be read fails alone."""
        service.tokens.check(authorization)
        texts = body.texts if isinstance(body.texts, list) else [body.texts]
        wanted = Wanted(body.top_k, body.threshold, body.abstain, body.none_label, body.novelty)
        served, _, answers = await service.classify(request, texts, wanted, labels=body.labels, model=body.model)
        return JSONResponse({"model": served.name, "results": answers})


def _add_label_endpoints(app: FastAPI, service: Service) -> None:
    @app.get("/v1/labels", response_model=schemas.LabelsResponse)
    async def show_labels(response: Response, model: ModelName = None, authorization: Token = None) -> Any:
        """The labels of a classifier. The ETag belongs into If-Match of an edit."""
        service.tokens.check(authorization)
        served = service.find(model)
        response.headers["ETag"] = served.etag
        return {"model": served.name, "etag": served.etag, "labels": served.labels_json()}

    @app.patch("/v1/labels", responses=EDIT_ERRORS)
    async def edit_labels(
        response: Response,
        body: schemas.EditRequest,
        model: ModelName = None,
        authorization: Token = None,
        if_match: Annotated[str | None, Header(description="The ETag of the labels that you saw.")] = None,
    ) -> dict[str, Any]:
        """Add, rename and remove labels, all of it or nothing; or see which texts would get another label."""
        service.tokens.check(authorization, write=not body.dry_run)
        served = service.find(model)
        if not served.own_labels:
            raise invalid("This classifier has no labels of its own; give labels with each request.")
        edits = {"add": body.add, "rename": body.rename, "remove": body.remove}
        if not any(edits.values()):
            raise invalid("There is nothing to edit; give labels to add, rename or remove.")
        served.check_labels(body.add or ())
        if body.dry_run:
            if not body.texts or all(is_blank(text) for text in body.texts):
                raise invalid("A dry run needs texts.")
            service.check_texts(body.texts)
            return {"model": served.name, "diff": await served.preview(body.texts, edits)}
        if if_match is None:
            raise RequestError(428, "precondition_required", "Give the ETag of the labels that you saw in If-Match.")
        response.headers["ETag"] = etag = await served.edit(if_match, edits, save=body.save)
        return {"model": served.name, "etag": etag, "labels": served.labels_json(), "saved": body.save}


def _add_other_dialects(app: FastAPI, service: Service) -> None:
    @json_post(app, "/predict", response_model=list[schemas.ScoredLabel] | list[list[schemas.ScoredLabel]])
    async def predict(request: Request, body: schemas.PredictRequest, authorization: Token = None) -> Any:
        """As text-embeddings-inference does it: one text, a pair, or a batch."""
        service.tokens.check(authorization)
        batch = isinstance(body.inputs, list) and bool(body.inputs) and isinstance(body.inputs[0], list)
        inputs: Any = body.inputs if batch else [body.inputs]
        texts = [_tei_text(each) for each in inputs]
        if body.raw_scores:
            raise invalid("raw_scores is not possible: scores are probabilities.")
        _, _, answers = await service.classify(request, texts, Wanted(top_k=None))
        scored = [_scores(answer) for answer in answers]
        return scored if batch else scored[0]

    @json_post(app, "/", response_model=list[schemas.ScoredLabel] | list[list[schemas.ScoredLabel]])
    async def pipeline(request: Request, body: schemas.PipelineRequest, authorization: Token = None) -> Any:
        """As Hugging Face inference does it: zero-shot classification, or text classification."""
        service.tokens.check(authorization)
        texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
        given = body.parameters
        labels: Any = given.candidate_labels
        if isinstance(labels, str):
            labels = [name.strip() for name in labels.split(",") if name.strip()]
        if given.multi_label and not service.find(None).multi_label:
            raise invalid("multi_label needs a classifier that was trained with several labels per text.")
        if given.hypothesis_template is not None or given.function_to_apply not in (None, "softmax"):
            raise invalid("hypothesis_template and function_to_apply are not possible; leave them out.")
        wanted = Wanted(top_k=given.top_k)
        _, _, answers = await service.classify(request, texts, wanted, labels=labels)
        scored = [_scores(answer) for answer in answers]
        zero_shot_of_one = labels is not None and isinstance(body.inputs, str)
        return scored[0] if zero_shot_of_one else scored

    @json_post(app, "/classify", response_model=schemas.VllmResponse)
    async def classify(request: Request, body: schemas.VllmRequest, authorization: Token = None) -> Any:
        """As vLLM does it."""
        service.tokens.check(authorization)
        texts = [body.input] if isinstance(body.input, str) else body.input
        model = body.model if body.model in service.names else None
        served, labels, answers = await service.classify(request, texts, Wanted(top_k=None), model=model)
        order = {str(label): place for place, label in enumerate(labels)}
        data = []
        for place, answer in enumerate(answers):
            scores = _scores(answer)
            probabilities = [0.0] * len(order)
            for each in scores:
                probabilities[order[each["label"]]] = each["score"]
            row = {"index": place, "label": scores[0]["label"], "probs": probabilities, "num_classes": len(order)}
            data.append(row)
        usage = {"prompt_tokens": 0, "total_tokens": 0, "completion_tokens": 0}
        return {
            "id": f"classify-{request.state.request_id}",
            "object": "list",
            "created": int(time.time()),
            "model": served.name,
            "data": data,
            "usage": usage,
        }


def _add_operations(app: FastAPI, service: Service) -> None:
    @app.get("/health")
    async def health() -> dict[str, str]:
        """Whether the process is alive."""
        return {"status": "ok"}

    @app.get("/ready")
    async def ready() -> dict[str, Any]:
        """Whether classifiers are loaded."""
        if not service.ready:
            raise RequestError(503, "loading", "The classifiers are not loaded yet.", Retry_After="1")
        return {"status": "ok", "models": service.names}

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        service.metrics.queue.set(service.queue_depth())
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")


def _scores(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The labels of an answer with their scores; the error of a text is the error of a request that has one text."""
    if "error" in answer:
        raise invalid(answer["error"])
    return [{"label": str(each["label"]), "score": each["probability"]} for each in answer["top_k"]]


def _tei_text(given: Any) -> Any:
    """A text, or a pair of texts, of a request of text-embeddings-inference."""
    if isinstance(given, str):
        return given
    if len(given) == 1:
        return given[0]
    if len(given) == 2:
        return {"text": given[0], "text_b": given[1]}
    raise invalid("An input is one text or a pair of texts.")
