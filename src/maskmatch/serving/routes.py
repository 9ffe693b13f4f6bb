"""Routes of requests with a JSON body: FastAPI documents them; their handling is as short as possible.

FastAPI solves the parameters of an endpoint anew for every request, which costs as much as encoding a short text.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from maskmatch.serving.errors import RequestError, invalid, of_validation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from fastapi import FastAPI

    Endpoint = Callable[..., Awaitable[Any]]


class JsonRoute(APIRoute):
    """A route whose endpoint takes ``request``, ``body`` and ``authorization``, as POST endpoints here do."""

    def __init__(self, path: str, endpoint: Any, **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        assert self.body_field is not None
        self._body: TypeAdapter[Any] = TypeAdapter(self.body_field.field_info.annotation)  # type: ignore[arg-type]

    async def answer(self, scope: Any, body: bytes) -> Response:
        """The response to a request with this body."""
        request = Request(scope)
        check_is_json(request.headers)
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):
            raise not_json() from None
        try:
            parsed = self._body.validate_python(given)
        except ValidationError as error:
            raise of_validation(error.errors(include_url=False, include_context=False)[0]) from error
        result = await self.endpoint(request, parsed, request.headers.get("authorization"))
        return result if isinstance(result, Response) else JSONResponse(result)


def json_post(app: FastAPI, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
    """A decorator that adds a POST endpoint with a JSON body.

    Args:
        app: The application.
        path: The path.
        **options: As for ``app.post``.
    """

    def add(endpoint: Endpoint) -> Endpoint:
        app.router.add_api_route(path, endpoint, methods=["POST"], route_class_override=JsonRoute, **options)
        return endpoint

    return add


def check_is_json(headers: Mapping[str, str]) -> None:
    """Raise unless the body is said to be JSON: a page of another origin may send other bodies without asking."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise invalid("The body must be JSON, with the header Content-Type: application/json.")


def not_json() -> RequestError:
    """The error of a body that is not JSON."""
    return RequestError(400, "not_json", "The request is not JSON.")
