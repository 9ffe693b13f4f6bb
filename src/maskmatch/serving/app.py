"""The HTTP application: its endpoints, and what is done about errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from maskmatch import __version__
from maskmatch.serving import schemas
from maskmatch.serving.endpoints import ENDPOINTS
from maskmatch.serving.errors import RequestError, mistake, of_validation
from maskmatch.serving.middleware import Guard, refused
from maskmatch.serving.routes import JsonRoute, not_json
from maskmatch.serving.service import Service

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.types import ASGIApp

    from maskmatch.serving.config import ServeConfig
    from maskmatch.serving.metrics import Metrics
    from maskmatch.serving.served import ServedModel

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
    for add in ENDPOINTS:
        add(app, service)

    @app.exception_handler(RequestError)
    async def refuse(request: Request, error: RequestError) -> Response:
        request.state.error = error.kind
        return refused(error, service.metrics)

    @app.exception_handler(Exception)
    async def refuse_mistake(request: Request, _: Exception) -> Response:
        id_ = request.state.request_id  # Starlette raises it again, and Guard logs it
        return refused(mistake(id_), service.metrics)

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
