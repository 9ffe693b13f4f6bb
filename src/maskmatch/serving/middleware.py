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

from maskmatch.serving.errors import RequestError, too_large

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from maskmatch.serving.config import ServeConfig
    from maskmatch.serving.metrics import Metrics

logger = logging.getLogger("maskmatch.serving")

REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class Guard:
    """Reads the whole body of a request, within bounds, before anything else sees it; counts and logs the request.

    A client that sends slowly holds up nobody but itself.
    """

    def __init__(self, app: ASGIApp, config: ServeConfig, metrics: Metrics) -> None:
        self._app, self._config, self._metrics = app, config, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, id_ = time.perf_counter(), _request_id(scope)
        scope["state"]["request_id"] = id_
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", id_.encode())]
            await send(message)

        try:
            deadline = asyncio.get_running_loop().time() + self._config.timeout
            try:
                body = await asyncio.wait_for(self._body(scope, receive), self._config.timeout)
            except (TimeoutError, asyncio.TimeoutError):
                raise RequestError(408, "timeout", "The request did not arrive in time.", Connection="close") from None
            if body is None:  # the client has gone
                status = 499
                return
            if not await self._answer(scope, body, receive, sending, deadline):
                status = 499
        except RequestError as error:
            await refused(error, self._metrics)(scope, receive, sending)
        except Exception:  # a mistake of ours: the client gets a sentence, the log the rest
            logger.exception("request_id=%s failed", id_)
            ours = RequestError(500, "internal", f"The server made a mistake; its log has more, under {id_}.")
            await refused(ours, self._metrics)(scope, receive, sending)
        finally:
            self._count(scope, id_, status, time.perf_counter() - started)

    async def _answer(self, scope: Scope, body: bytes, receive: Receive, send: Send, deadline: float) -> bool:
        """Let the application answer; returns whether the client is still there. If it goes, its work is cancelled."""
        work = asyncio.ensure_future(self._app(scope, _replayed(body), send))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            left = max(0.0, deadline - asyncio.get_running_loop().time())
            done, _ = await asyncio.wait({work, gone}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if work in done:
                work.result()
                return True
            if gone in done:
                return False
            raise RequestError(503, "timeout", "The request took too long; try again later.", Retry_After="1")
        finally:
            for task in (work, gone):
                task.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

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
