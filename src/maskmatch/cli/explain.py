"""``maskmatch explain``: why texts get their labels."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated, Any

import typer

from maskmatch.cli import options

MOST_TEXTS = 200
"""How many texts are explained at most: an explanation classifies a text as often as it has words."""


def explain(
    *,
    folder: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER",
            help="The folder of a saved classifier or of an export, or a hub id; or label names, separated by commas, "
            "or a file of labels.",
        ),
    ],
    texts: options.Texts,
    top_k: Annotated[int, typer.Option("--top-k", "-k", help="How many labels to explain per text.", min=1)] = 3,
    mask_words: Annotated[
        bool,
        typer.Option("--mask-words", help="Also show the words that the encoder's own head puts at the mask."),
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A web page to write: .html.")] = None,
    classifier: options.Classifier,
    reading: options.Reading,
    json: options.AsJson = False,
) -> None:
    """Explain why texts get their labels: the words that speak for each label, and the phrases that match."""
    options.check_page(output)
    if options.is_export(folder) and mask_words:
        raise typer.BadParameter("an export has no head for words at a mask.", param_hint="--mask-words")
    config, load = options.predictor_or_names(folder, classifier)
    rows = [text for chunk in texts.chunks(config.fields, reading) for text in chunk.texts]
    if len(rows) > MOST_TEXTS:
        options.note(f"{len(rows):,} texts are many to explain: the first {MOST_TEXTS} are.")
    how: dict[str, Any] = {"mask_words": True} if mask_words else {}
    matcher = load()
    found = [matcher.explain(text, k=top_k, **how) for text in rows[:MOST_TEXTS]]
    if output is not None:
        from maskmatch.evaluation.explanation.page import explanation_page
        from maskmatch.files import write_text

        write_text(output.expanduser(), explanation_page(found), errors="replace")
        options.note(f"written to {output}")
    if json:
        options.print_json([each.to_dict() for each in found])
    else:
        typer.echo("\n\n".join(str(each) for each in found))
