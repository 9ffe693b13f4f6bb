"""``maskmatch classify``: zero-shot, with nothing but label names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskmatch.cli import options, tables
from maskmatch.cli.predict import emit
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from maskmatch.data import Examples
    from maskmatch.storage.export.matcher import ExportedMatcher


def classify(
    *,
    labels: Annotated[str, typer.Option(help="Label names, separated by commas, or a file of labels.")],
    texts: options.Texts,
    classifier: options.Classifier,
    top_k: options.TopK = 3,
    batch_size: options.BatchSize = 32,
    none_label: options.NoneLabel = None,
    novelty: options.Novelty = False,
    adapt: Annotated[
        bool,
        typer.Option("--adapt", help="Learn from these very texts first, without labels; they are read as a whole."),
    ] = False,
    table: tables.TableOutput,
    reading: options.Reading,
    json: options.AsJson = False,
) -> None:
    """Classify texts by label names alone, without training; prints one JSON object per line."""
    names = options.label_names(labels)
    if len(names) < 2 and not classifier.settings.get("multi_label"):
        raise typer.BadParameter(
            f"{names[0]!r} is the only label; give at least two names, separated by commas.", param_hint="--labels"
        )
    if none_label is not None and not classifier.settings.get("abstain"):
        raise typer.BadParameter("it is the answer below --abstain; give that as well.", param_hint="--none-label")
    table.check(texts.file)
    fields = options.config_of(classifier.model, classifier.settings).fields
    if table.output is not None:
        texts.check(fields, reading)
    chunks: Iterable[Examples] = texts.chunks(fields, reading, keep_rows=table.output is not None)
    how: dict[str, Any] = {
        "how": {"top_k": top_k, "batch_size": batch_size, "none_label": none_label, "novelty": novelty},
        "source": texts.file,
        "key": (classifier.model, {**classifier.settings, "adapt": adapt}),
        "reading": reading,
        "as_json": json,
    }
    if classifier.model is not None and options.is_export(classifier.model):
        if adapt:
            raise MaskMatchError(f"{classifier.model} is an export, which cannot learn from texts; leave --adapt out.")
        exported: ExportedMatcher | None = classifier.load_export(names)
    else:
        exported = None if adapt else classifier.load_default_export(names)
    if exported is not None:
        emit(exported.pipeline, chunks, table, **how)
        return
    matcher = classifier.load(names, method=classifier.untrained_method())
    if adapt:
        chunks = list(chunks)
        matcher.adapt([text for chunk in chunks for text in chunk.texts])
        assert matcher.adaptation_ is not None
        if matcher.adaptation_.adapted:  # otherwise a warning has said so
            options.note(str(matcher.adaptation_))
    emit(matcher.pipeline, chunks, table, **how)
