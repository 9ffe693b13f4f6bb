"""``/v1/classify``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import Request
from starlette.responses import JSONResponse

from maskmatch.serving import schemas
from maskmatch.serving.routes import json_post
from maskmatch.serving.served import Wanted
from maskmatch.serving.service import Token

if TYPE_CHECKING:
    from fastapi import FastAPI

    from maskmatch.serving.service import Service


def add(app: FastAPI, service: Service) -> None:
    """Add the endpoint."""

    @json_post(app, "/v1/classify", response_model=schemas.ClassifyResponse, response_model_exclude_unset=True)
    async def classify(request: Request, body: schemas.ClassifyRequest, authorization: Token = None) -> Any:
        """Classify texts, by the labels of the classifier or of the request. A text that cannot be read fails alone."""
        service.tokens.check(authorization)
        texts = body.texts if isinstance(body.texts, list) else [body.texts]
        wanted = Wanted(body.top_k, body.threshold, body.abstain, body.none_label, body.novelty)
        served, found = await service.classify(request, texts, wanted, labels=body.labels, model=body.model)
        return JSONResponse({"model": served.name, "results": found.answers})
