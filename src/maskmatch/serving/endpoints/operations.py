"""What operators need: health, readiness and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import Response

from maskmatch.serving.errors import RequestError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from maskmatch.serving.service import Service


def add(app: FastAPI, service: Service) -> None:
    """Add the endpoints."""

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
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")
