"""What clients of other servers already speak: text-embeddings-inference, Hugging Face inference, vLLM."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from fastapi import Request

from maskmatch.serving import schemas
from maskmatch.serving.errors import RequestError, invalid
from maskmatch.serving.routes import json_post
from maskmatch.serving.served import Wanted
from maskmatch.serving.service import Token

if TYPE_CHECKING:
    from fastapi import FastAPI

    from maskmatch.serving.service import Service


def add(app: FastAPI, service: Service) -> None:
    """Add the endpoints."""

    @json_post(app, "/predict", response_model=list[schemas.ScoredLabel] | list[list[schemas.ScoredLabel]])
    async def predict(request: Request, body: schemas.PredictRequest, authorization: Token = None) -> Any:
        """As text-embeddings-inference does it: one text, a pair, or a batch."""
        service.tokens.check(authorization)
        batch = isinstance(body.inputs, list) and bool(body.inputs) and isinstance(body.inputs[0], list)
        inputs: Any = body.inputs if batch else [body.inputs]
        texts = [_tei_text(each) for each in inputs]
        if body.raw_scores:
            raise invalid("raw_scores is not possible: scores are probabilities.")
        _, found = await service.classify(request, texts, Wanted(top_k=None))
        if body.truncate is False and any(answer.get("truncated") for answer in found.answers):
            raise RequestError(413, "validation", "An input has more tokens than the encoder reads; set truncate.")
        scored = [_scores(answer) for answer in found.answers]
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
        _, found = await service.classify(request, texts, wanted, labels=labels)
        scored = [_scores(answer) for answer in found.answers]
        zero_shot_of_one = labels is not None and isinstance(body.inputs, str)
        return scored[0] if zero_shot_of_one else scored

    @json_post(app, "/classify", response_model=schemas.VllmResponse)
    async def classify(request: Request, body: schemas.VllmRequest, authorization: Token = None) -> Any:
        """As vLLM does it."""
        service.tokens.check(authorization)
        texts = [body.input] if isinstance(body.input, str) else body.input
        model = body.model if body.model in service.names else None
        served, found = await service.classify(request, texts, Wanted(top_k=None), model=model)
        order = {str(label): place for place, label in enumerate(found.labels)}
        data = []
        for place, answer in enumerate(found.answers):
            scores = _scores(answer)
            probabilities = [0.0] * len(order)
            for each in scores:
                probabilities[order[each["label"]]] = each["score"]
            row = {"index": place, "label": scores[0]["label"], "probs": probabilities, "num_classes": len(order)}
            data.append(row)
        usage = {"prompt_tokens": found.tokens, "total_tokens": found.tokens, "completion_tokens": 0}
        return {
            "id": f"classify-{request.state.request_id}",
            "object": "list",
            "created": int(time.time()),
            "model": served.name,
            "data": data,
            "usage": usage,
        }


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
