"""``maskmatch predict``: classify with a trained classifier; ``classify`` prints with it, too."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskmatch.cli import options
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from maskmatch.data import Examples
    from maskmatch.prediction.pipeline import Pipeline
    from maskmatch.serving import Client


MOST_TEXTS = 100
"""How many texts are sent to a server in one request."""

TRIES = 10
"""How often a request is sent to a server that has too much to do."""

Url = Annotated[
    str | None,
    typer.Option(
        help="Classify with a server at this address (see `maskmatch serve`) instead of a folder. The environment "
        "variable MASKMATCH_TOKEN has its token, if it needs one."
    ),
]
ServedName = Annotated[str | None, typer.Option("--served", help="With --url: the name of the classifier there.")]


def predict(
    *,
    folder: options.PredictingFolder = None,
    texts: options.Texts,
    url: Url = None,
    served: ServedName = None,
    threshold: options.Threshold = None,
    abstain: options.Abstain = None,
    none_label: options.NoneLabel = None,
    novelty: options.Novelty = False,
    search: options.Search = None,
    device: options.Device = None,
    verify: options.Verify = True,
    top_k: options.TopK = 3,
    batch_size: options.BatchSize = 32,
    reading: options.Reading,
    json: options.AsJson = False,  # taken by every command; here the output is JSON lines anyway
) -> None:
    """Classify texts; prints one JSON object per line: label, probability, top_k (or labels, if several may apply)."""
    if url is not None:
        local = {"--search": search, "--device": device, "--no-verify": None if verify else True}
        wrong = [name for name, value in local.items() if value is not None]
        if wrong:
            raise typer.BadParameter("a server decides this itself; leave it out.", param_hint=wrong[0])
        if folder is not None and texts.file is not None:
            raise typer.BadParameter("with --url there is no FOLDER; name a classifier with --served.")
        wanted = {"threshold": threshold, "abstain": abstain, "none_label": none_label, "novelty": novelty or None}
        source = replace(texts, file=folder) if folder is not None else texts
        print_served(url, served, source, reading, {**wanted, "top_k": top_k})
        return
    if folder is None:
        raise typer.BadParameter("give the folder of a classifier, or --url.", param_hint="FOLDER")
    options.saved_classifier(folder)
    chunks = texts.chunks(options.config_of(folder, {}).fields, reading)
    matcher = options.load_predictor(
        folder, threshold=threshold, abstain=abstain, device=device, search=search, verify=verify
    )
    print_predictions(matcher.pipeline, chunks, top_k, batch_size, none_label, novelty=novelty)


def print_served(
    url: str, served: str | None, texts: options.Texts, reading: options.Reading, wanted: dict[str, Any]
) -> None:
    """Print the predictions of a server, in the form of other predictions."""
    from maskmatch.serving import Client

    given = {name: value for name, value in wanted.items() if value is not None}
    cut = 0
    with Client(url, token=os.environ.get("MASKMATCH_TOKEN"), model=served) as client:
        for chunk in texts.chunks(_fields(client), reading):
            rows = list(range(len(chunk)) if chunk.row_numbers is None else chunk.row_numbers)
            for start in range(0, len(rows), MOST_TEXTS):
                answers = _asked(client, chunk.texts[start : start + MOST_TEXTS], given)
                for row, answer in zip(rows[start : start + MOST_TEXTS], answers, strict=True):
                    if "error" in answer:
                        raise MaskMatchError(f"Text {row}: {answer['error']}")
                    cut += bool(answer.get("truncated"))
                    options.print_json({"row": row, **answer}, indent=None)
    if cut:
        options.note(f"{cut} texts were longer than what the encoder reads and were truncated.")


def _fields(client: Client) -> tuple[str, ...]:
    """The fields that the classifier of a server reads."""
    found = client.labels()
    if "fields" not in found:
        raise MaskMatchError("This server is none of maskmatch's, or of an earlier version.")
    return tuple(found["fields"])


def _asked(client: Client, texts: Sequence[Any], wanted: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers of a server; if it has too much to do, ask again a little later."""
    from maskmatch.serving import ServerError

    for number in range(1, TRIES + 1):
        try:
            return client.classify(texts, **wanted)
        except ServerError as error:
            if len(texts) > 1 and (error.status == 413 or error.kind == "timeout"):  # too much for one request
                half = len(texts) // 2
                return [*_asked(client, texts[:half], wanted), *_asked(client, texts[half:], wanted)]
            if error.status != 503 or number == TRIES:
                raise
            time.sleep(min(5.0, 0.5 * number))
    raise AssertionError("unreachable")


def print_predictions(
    pipeline: Pipeline,
    chunks: Iterable[Examples],
    top_k: int,
    batch_size: int,
    none_label: str | None = None,
    *,
    novelty: bool = False,
) -> None:
    """Print predictions as JSON lines, in the order of the texts, chunk by chunk."""
    from maskmatch.prediction.answers import DIGITS, json_answer

    several = pipeline.config.multi_label
    threshold = pipeline.least_threshold() if several else None
    filled = (chunk for chunk in chunks if chunk.texts)
    for chunk, _, lists, far in pipeline.stream(filled, top_k, batch_size, threshold=threshold, novelty=novelty):
        rows = range(len(chunk)) if chunk.row_numbers is None else chunk.row_numbers
        for place, (row, ranked) in enumerate(zip(rows, lists, strict=True)):
            applying = pipeline.applying(ranked) if several else None
            answer = json_answer(ranked, top_k, applying, abstain=pipeline.config.abstain, none_label=none_label)
            more = {} if far is None else {"novelty": round(float(far[place]), DIGITS)}
            options.print_json({"row": row, **answer, **more}, indent=None)
