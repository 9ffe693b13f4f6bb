"""``/v1/feedback``: what the right label of a text is."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from fastapi import Request

from maskmatch.data.values import is_blank
from maskmatch.errors import MaskMatchError
from maskmatch.prompts.fields import field_texts
from maskmatch.serving import schemas
from maskmatch.serving.errors import invalid
from maskmatch.serving.routes import json_post
from maskmatch.serving.service import Token

if TYPE_CHECKING:
    from fastapi import FastAPI

    from maskmatch.serving.served import ServedModel
    from maskmatch.serving.service import Service

FEEDBACK_ERRORS: dict[int | str, dict[str, Any]] = {
    404: {"model": schemas.ErrorResponse, "description": "The server keeps no feedback, or has no such classifier."},
    507: {"model": schemas.ErrorResponse, "description": "The feedback file is full, or cannot be written."},
}


def add(app: FastAPI, service: Service) -> None:
    """Add the endpoint."""

    @json_post(app, "/v1/feedback", response_model=schemas.FeedbackResponse, responses=FEEDBACK_ERRORS)
    async def feedback(request: Request, body: schemas.FeedbackRequest, authorization: Token = None) -> Any:
        """Keep a text with its right label, to train on later; null: no label fits. Needs --feedback-file."""
        service.tokens.check(authorization)
        served = service.find(body.model)
        service.check_texts([body.text])
        row = {
            **_fields(served, body.text),
            **_right_label(served, body),
            "model": served.name,
            "request_id": body.request_id or request.state.request_id,
            "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }
        await service.keep(row)
        return {"model": served.name, "kept": True}


def _fields(served: ServedModel, text: Any) -> dict[str, Any]:
    """The fields of a text that the classifier reads; raise if it cannot be trained on."""
    if is_blank(text):
        raise invalid("The text is blank.")
    fields = served.current.config.fields
    try:
        field_texts(text, fields, 0)
    except MaskMatchError as error:
        raise invalid(str(error).removeprefix("Text 0: ")) from error
    if not isinstance(text, dict):
        return {"text": text}
    return {name: value for name, value in text.items() if name in fields}


def _right_label(served: ServedModel, body: schemas.FeedbackRequest) -> dict[str, Any]:
    """The label as a classifier is trained on it."""
    several = isinstance(body.label, list)
    if several and not served.multi_label:
        raise invalid("label is a list, but this classifier gives one label per text.")
    given = [each for each in (body.label if isinstance(body.label, list) else [body.label]) if each is not None]
    unknown = [each for each in given if served.labels.resolve(each) not in served.labels] if served.own_labels else []
    if unknown:
        raise invalid(f"There is no label {unknown[0]!r}; GET /v1/labels lists them.")
    if served.multi_label:
        return {"labels": given}
    return {"label": given[0] if given else ""}
