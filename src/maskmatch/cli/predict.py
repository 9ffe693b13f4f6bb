"""``maskmatch predict``: classify with a trained classifier, an export or a server."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskmatch.cli import options
from maskmatch.cli.answers import answers_of, print_answers
from maskmatch.cli.predict_ray import Engine, RayOptions, predict_with_ray
from maskmatch.cli.tables import AnswerForm, TableOutput, classifier_key
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from maskmatch.cli.answers import Answers
    from maskmatch.data import Examples
    from maskmatch.prediction.pipeline import Pipeline

Url = Annotated[
    str | None,
    typer.Option(
        help="Classify with a server at this address (see `maskmatch serve`) instead of a folder. The environment "
        "variable MASKMATCH_TOKEN has its token, if it needs one."
    ),
]
ServedName = Annotated[str | None, typer.Option("--served", help="With --url: the name of the classifier there.")]


Output = Annotated[
    str | None, typer.Option("--output", "-o", help="With --engine ray: the folder, or its URI, for the answers.")
]


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
    long_texts: options.LongTextsOption = None,
    device: options.Device = None,
    verify: options.Verify = True,
    top_k: options.TopK = 3,
    batch_size: options.BatchSize = 32,
    table: TableOutput,
    reading: options.Reading,
    engine: Engine = "local",
    ray: RayOptions,
    json: options.AsJson = False,
) -> None:
    """Classify texts; prints one JSON object per line: label, probability, top_k (or labels, if several may apply)."""
    wanted = {"threshold": threshold, "abstain": abstain, "none_label": none_label, "novelty": novelty or None}
    if engine == "ray":
        more = {"search": search, "long_texts": long_texts, "verify": verify, "top_k": top_k, "batch_size": batch_size}
        answers = {**wanted, "novelty": novelty, **more}
        refused = {"--url": url, "--served": served, "--device": device}
        predict_with_ray(folder, texts, table, reading, ray=ray, answers=answers, refused=refused)
        return
    ray.refuse()
    if url is not None:
        local = {
            "--search": search,
            "--long-texts": long_texts,
            "--device": device,
            "--no-verify": None if verify else True,
        }
        wrong = [name for name, value in local.items() if value is not None]
        if wrong:
            raise typer.BadParameter("a server decides this itself; leave it out.", param_hint=wrong[0])
        if folder is not None and texts.file is not None:
            raise typer.BadParameter("with --url there is no FOLDER; name a classifier with --served.")
        source = replace(texts, file=folder) if folder is not None else texts
        _predict_served((url, served), source, reading, table, wanted={**wanted, "top_k": top_k}, as_json=json)
        return
    if folder is None:
        raise typer.BadParameter("give the folder of a classifier, or --url.", param_hint="FOLDER")
    table.check(texts.file)
    options.saved_classifier(folder)
    fields = options.config_of(folder, {}).fields
    if table.output is not None:
        texts.check(fields, reading)
    chunks = texts.chunks(fields, reading, keep_rows=table.output is not None)
    matcher = options.load_predictor(
        folder,
        threshold=threshold,
        abstain=abstain,
        device=device,
        search=search,
        long_texts=long_texts,
        verify=verify,
    )
    emit(
        matcher.pipeline,
        chunks,
        table,
        how={"top_k": top_k, "batch_size": batch_size, "none_label": none_label, "novelty": novelty},
        source=texts.file,
        key=(folder, {**wanted, "search": search, "long_texts": long_texts}),
        reading=reading,
        as_json=json,
    )


def emit(
    pipeline: Pipeline,
    chunks: Iterable[Examples],
    table: TableOutput,
    *,
    how: Mapping[str, Any],
    source: str | None,
    key: tuple[str | None, Mapping[str, Any]],
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Print the answers of a classifier, or write them to a table.

    Args:
        pipeline: The classifier.
        chunks: The texts.
        table: The table, if there is to be one.
        how: Options of :func:`answers_of`.
        source: The input.
        key: The model, and the options that answers depend on.
        reading: How the input is read.
        as_json: Whether to print what was written to a table as JSON.
    """

    def answering(given: Iterable[Examples]) -> Answers:
        return answers_of(pipeline, given, **how)

    if table.output is None:
        print_answers(answering(chunks))
        return
    several = pipeline.config.multi_label
    form = AnswerForm(
        several=several,
        top_k=min(how["top_k"], len(pipeline.labels)),
        first=1 if several or pipeline.config.abstain > 0 else 2,
        novelty=how["novelty"],
        errors=reading.skip_bad_rows,
    )
    model, settings = key
    depends = {**settings, **how, "batch_size": None, **reading.options()}
    table.write(
        chunks,
        answering,
        form,
        source=source,
        key=lambda: classifier_key(model, pipeline.labels, depends),
        as_json=as_json,
    )


def _predict_served(
    server: tuple[str, str | None],
    texts: options.Texts,
    reading: options.Reading,
    table: TableOutput,
    *,
    wanted: dict[str, Any],
    as_json: bool,
) -> None:
    """Print the answers of a server in the form of other answers, or write them to a table."""
    from maskmatch.cli.served import served_classifier

    table.check(texts.file)
    with served_classifier(*server, wanted) as served:
        if table.output is None:
            print_answers(served.answers(texts.chunks(served.fields, reading)))
            return
        texts.check(served.fields, reading)
        chunks = texts.chunks(served.fields, reading, keep_rows=True)
        held: list[Examples] = []
        for chunk in chunks:
            held.append(chunk)
            if chunk.texts:
                break
        if not held or not held[-1].texts:
            raise MaskMatchError("No text is left to classify.")
        answer = served.first(held[-1].texts)  # tells what answers have
        form = AnswerForm(
            several="labels" in answer,
            top_k=len(answer["top_k"]),
            first=1 if served.abstains else 2,
            novelty=bool(wanted["novelty"]),
            errors=reading.skip_bad_rows,
        )
        depends = {**wanted, **reading.options()}
        table.write(
            chain(held, chunks),
            served.answers,
            form,
            source=texts.file,
            key=lambda: {"classifier": [*server, served.described], "set of options": depends},
            as_json=as_json,
        )
