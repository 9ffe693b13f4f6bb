"""``/v1/labels``: see and edit the labels of a classifier while it is served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Header, Query, Response

from maskmatch.data.values import is_blank
from maskmatch.serving import schemas
from maskmatch.serving.errors import RequestError, invalid
from maskmatch.serving.service import ModelName, Token

if TYPE_CHECKING:
    from fastapi import FastAPI

    from maskmatch.serving.served import ServedModel
    from maskmatch.serving.service import Service

IfMatch = Annotated[str | None, Header(description="The ETag of the labels that you saw.")]
EDIT_ERRORS: dict[int | str, dict[str, Any]] = {
    409: {"model": schemas.ErrorResponse, "description": "There is no folder to save to."},
    412: {"model": schemas.ErrorResponse, "description": "The labels have changed since you read them."},
    428: {"model": schemas.ErrorResponse, "description": "If-Match is missing."},
}


def add(app: FastAPI, service: Service) -> None:
    """Add the endpoints."""

    @app.get("/v1/labels", response_model=schemas.LabelsResponse)
    async def show_labels(response: Response, model: ModelName = None, authorization: Token = None) -> Any:
        """The labels of a classifier. The ETag belongs into If-Match of an edit."""
        service.tokens.check(authorization)
        served = service.find(model)
        response.headers["ETag"] = served.etag
        return _described(served)

    async def edit(
        response: Response, model: str | None, if_match: str | None, edits: dict[str, Any], save: bool
    ) -> dict[str, Any]:
        served = service.find(model)
        _check(served, edits)
        if if_match is None:
            raise RequestError(428, "precondition_required", "Give the ETag of the labels that you saw in If-Match.")
        response.headers["ETag"] = await served.edit(if_match, edits, save=save)
        return {**_described(served), "saved": save}

    @app.patch("/v1/labels", response_model=schemas.EditResponse | schemas.PreviewResponse, responses=EDIT_ERRORS)
    async def edit_labels(
        response: Response,
        body: schemas.EditRequest,
        model: ModelName = None,
        authorization: Token = None,
        if_match: IfMatch = None,
    ) -> Any:
        """Add, rename and remove labels, all of it or nothing; or see which texts would get another label."""
        service.tokens.check(authorization, write=not body.dry_run)
        edits = {"add": body.add, "rename": body.rename, "remove": body.remove}
        if not body.dry_run:
            return await edit(response, model, if_match, edits, body.save)
        served = service.find(model)
        _check(served, edits)
        if not body.texts or all(is_blank(text) for text in body.texts):
            raise invalid("A dry run needs texts.")
        service.check_texts(body.texts)
        return {"model": served.name, "diff": await served.preview(body.texts, edits)}

    @app.post("/v1/labels", response_model=schemas.EditResponse, responses=EDIT_ERRORS)
    async def add_labels(
        response: Response,
        body: schemas.AddRequest,
        model: ModelName = None,
        authorization: Token = None,
        if_match: IfMatch = None,
    ) -> Any:
        """Add labels."""
        service.tokens.check(authorization, write=True)
        return await edit(response, model, if_match, {"add": body.labels, "rename": {}, "remove": []}, body.save)

    @app.delete("/v1/labels", response_model=schemas.EditResponse, responses=EDIT_ERRORS)
    async def remove_labels(
        *,
        response: Response,
        label: Annotated[list[str], Query(description="A label to remove; may be given several times.")],
        save: Annotated[bool, Query(description="Whether to save the classifier in its folder.")] = False,
        model: ModelName = None,
        authorization: Token = None,
        if_match: IfMatch = None,
    ) -> Any:
        """Remove labels."""
        service.tokens.check(authorization, write=True)
        return await edit(response, model, if_match, {"add": None, "rename": {}, "remove": label}, save)


def _described(served: ServedModel) -> dict[str, Any]:
    config = served.current.config
    return {
        "model": served.name,
        "model_hash": served.model_hash,
        "abstain": config.abstain,
        "etag": served.etag,
        "task": config.task.name,
        "fields": list(config.fields),
        "labels": served.labels_json() if served.own_labels else [],
    }


def _check(served: ServedModel, edits: dict[str, Any]) -> None:
    """Raise if there is nothing to edit."""
    if not served.own_labels:
        raise invalid("This classifier has no labels of its own; give labels with each request.")
    if not any(edits.values()):
        raise invalid("There is nothing to edit; give labels to add, rename or remove.")
    served.check_labels(edits["add"] or ())
