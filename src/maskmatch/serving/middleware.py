"""What happens to every request: its body is bounded in size and time, it gets an id, it is counted and logged."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
import uuid
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from maskmatch.serving.errors import RequestError, mistake, too_large

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from maskmatch.serving.config import ServeConfig
    from maskmatch.serving.metrics import Metrics
    from maskmatch.serving.routes import JsonRoute

logger = logging.getLogger("maskmatch.serving")

GONE = 499
"""The status in logs and metrics if the client has gone, as nginx has it."""

REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class Guard:
    """Reads the whole body of a request, within bounds, before anything else sees it; counts and logs the request.

    A client that sends slowly holds up nobody but itself.
    """

    def __init__(
        self, app: ASGIApp, config: ServeConfig, metrics: Metrics, direct: Mapping[str, JsonRoute] | None = None
    ) -> None:
        self._app, self._config, self._metrics = app, config, metrics
        self._direct = direct or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, id_ = time.perf_counter(), _request_id(scope)
        self._metrics.in_progress.inc()
        scope["state"]["request_id"] = id_
        status, responding = 500, False

        async def sending(message: Message) -> None:
            nonlocal status, responding
            if message["type"] == "http.response.start":
                status, responding = message["status"], True
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", id_.encode())]
            await send(message)

        watch = _Watch(self._config.timeout)
        body = None
        try:
            body = await self._body(scope, receive)
            if body is None:
                status = GONE
                return
            watch.client(receive)
            await self._answer(scope, body, sending)
        except asyncio.CancelledError:
            if not watch.why:  # the server itself ends
                raise
            watch.end()
            if watch.why == "gone" or responding:  # nobody reads a response
                status = GONE
                return
            error = _too_late(arrived=body is not None)
            scope["state"]["error"] = error.kind
            await refused(error, self._metrics)(scope, receive, sending)
        except RequestError as error:
            watch.end()
            scope["state"]["error"] = error.kind
            await refused(error, self._metrics)(scope, receive, sending)
        except Exception:  # a mistake of ours: the client gets a sentence, the log the rest
            watch.end()
            logger.exception("request_id=%s failed", id_)
            if responding:  # Starlette has answered before it raised
                return
            await refused(mistake(id_), self._metrics)(scope, receive, sending)
        finally:
            watch.end()
            self._metrics.in_progress.dec()
            self._count(scope, id_, status, time.perf_counter() - started)

    async def _answer(self, scope: Scope, body: bytes, send: Send) -> None:
        route = self._direct.get(scope["path"]) if scope["method"] == "POST" else None
        if route is None:
            await self._app(scope, _replayed(body), send)
            return
        scope["route"] = route
        response = await route.answer(scope, body)
        await response(scope, _replayed(b""), send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body; None if the client has gone."""
        most = self._config.max_bytes
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if declared.isdigit() and int(declared) > most:
            raise too_large(f"The request has {int(declared)} bytes; {most} are allowed.")
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise too_large(f"The request has more than {most} bytes.")
            more = message.get("more_body", False)
        return b"".join(parts)

    def _count(self, scope: Scope, id_: str, status: int, seconds: float) -> None:
        route = scope.get("route")
        endpoint = getattr(route, "path", "other")
        self._metrics.requests.labels(endpoint, str(status)).inc()
        self._metrics.seconds.labels(endpoint).observe(seconds)
        state: dict[str, Any] = scope["state"]
        fields: dict[str, Any] = {
            "request_id": id_,
            "method": scope["method"],
            "endpoint": endpoint,
            "status": status,
            "ms": round(seconds * 1000, 2),
            **{name: state[name] for name in ("model", "texts", "error", "content") if name in state},
        }
        if self._config.log_format == "json":
            logger.info(json.dumps(fields, ensure_ascii=False))
        else:
            logger.info("%s", " ".join(f"{name}={value}" for name, value in fields.items()))


class _Watch:
    """Cancels the task of a request after some seconds, or when its client goes.

    Attributes:
        why: "timeout" or "gone", if it was cancelled; "done" if it has ended.
    """

    def __init__(self, seconds: float) -> None:
        self.why = ""
        self._ended = False
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._timer = asyncio.get_running_loop().call_later(seconds, self._cancel, "timeout")
        self._gone: asyncio.Task[None] | None = None

    def client(self, receive: Receive) -> None:
        """From now on, cancel when the client goes."""
        self._gone = asyncio.ensure_future(_gone(receive))
        self._gone.add_done_callback(lambda _: self._cancel("gone"))

    def _cancel(self, why: str) -> None:
        if not self.why:
            self.why = why
            self._task.cancel()

    def end(self) -> None:
        """Cancel nothing any more."""
        if self._ended:
            return
        self._ended = True
        if self.why in ("timeout", "gone") and hasattr(self._task, "uncancel"):
            self._task.uncancel()
        self.why = self.why or "done"
        self._timer.cancel()
        if self._gone is not None:
            self._gone.cancel()


def _too_late(arrived: bool) -> RequestError:
    if arrived:
        return RequestError(503, "timeout", "The request took too long; try again later.", Retry_After="1")
    return RequestError(408, "timeout", "The request did not arrive in time.", Connection="close")


def refused(error: RequestError, metrics: Metrics) -> JSONResponse:
    """The response of a request that cannot be answered."""
    metrics.refusals.labels(error.kind).inc()
    return JSONResponse(error.body(), error.status, error.headers)


def _request_id(scope: Scope) -> str:
    """The id that the client gave, if it is harmless; else a new one."""
    given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"").decode("latin-1")
    return given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


async def _gone(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _replayed(body: bytes) -> Receive:
    """Gives the body at once, and then nothing any more."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            await asyncio.Event().wait()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
