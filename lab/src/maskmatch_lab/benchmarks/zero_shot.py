"""Zero-shot accuracy of mask matching, with and without the adapter, and of mean-pooled matching.

The adapter was not trained on these datasets; a few of their label names also occur in datasets that it was trained on,
and ``benchmarks/corpus.py`` lists them. Full test sets, one fixed prompt per task, and on two datasets five other
prompts that the adapter has not seen either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskmatch import MaskMatcher
from maskmatch.config.tasks import TASKS
from maskmatch.model.encoder import DEFAULT_MODEL, EMBEDDED_MODEL
from maskmatch_lab.benchmarks.common import finished_cells, label_names, load_split, parser, write_results

if TYPE_CHECKING:
    from pathlib import Path

DATASETS = {
    "banking77": "intent",
    "trec6": "question",
    "trec50": "question",
    "agnews": "topic",
    "sst2": "sentiment",
    "crossner_typing": "entity-typing",
}
WAYS = {
    "mean-pooled matching, bare encoder": (EMBEDDED_MODEL, "semantic-matching"),
    "mask matching, bare encoder": (EMBEDDED_MODEL, "mask-matching"),
    "mask matching, with the adapter": (DEFAULT_MODEL, "mask-matching"),
}
OTHER_PROMPTS = {
    "banking77": (
        "{text} I am writing because of {mask}.",
        "{text} My concern is {mask}.",
        "{text} Please help me with {mask}.",
        "Subject: {mask}. Message: {text}",
        "{text} What I need: {mask}.",
    ),
    "agnews": (
        "{text} This news is about {mask}.",
        "{text} The section is {mask}.",
        "{mask} news: {text}",
        "{text} Filed under {mask}.",
        "{text} The subject of this article is {mask}.",
    ),
}


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--again", action="store_true", help="run finished cells once more")
    options = arguments.parse_args()
    cells = finished_cells("zero_shot", options.again)
    for dataset, task in DATASETS.items():
        for way in WAYS:
            _run(cells, options.data, dataset, task, {"way": way, "prompt": None})
        for prompt in OTHER_PROMPTS.get(dataset, ()):
            _run(cells, options.data, dataset, task, {"way": "mask matching, with the adapter", "prompt": prompt})


def _run(cells: list[dict[str, Any]], data: Path, dataset: str, task: str, choice: dict[str, Any]) -> None:
    key = {"dataset": dataset, **choice}
    if any(key.items() <= cell.items() for cell in cells):
        return
    fields = TASKS[task].fields
    train, test = (load_split(data, dataset, split, fields) for split in ("train", "test"))
    model, method = WAYS[choice["way"]]
    matcher = MaskMatcher.from_pretrained(
        model, labels=label_names(train), task=task, method=method, prompt=choice["prompt"]
    )
    report = matcher.evaluate(test.texts, test.labels)
    cells.append({**key, "rows": len(test), "labels": len(matcher.labels or ()), "accuracy": round(report.accuracy, 4)})
    print(cells[-1], flush=True)
    write_results("zero_shot", {"split": "test", "means": _means(cells), "spread": _spread(cells), "cells": cells})


def _means(cells: list[dict[str, Any]]) -> dict[str, float]:
    """The mean accuracy over the datasets, for the ways that have run on all of them."""
    means = {}
    for way in WAYS:
        values = [cell["accuracy"] for cell in cells if cell["way"] == way and cell["prompt"] is None]
        if len(values) == len(DATASETS):
            means[way] = round(sum(values) / len(values), 4)
    return means


def _spread(cells: list[dict[str, Any]]) -> dict[str, float]:
    """The difference between the best and the worst of the other prompts."""
    spread = {}
    for dataset, prompts in OTHER_PROMPTS.items():
        values = [cell["accuracy"] for cell in cells if cell["dataset"] == dataset and cell["prompt"] is not None]
        if len(values) == len(prompts):
            spread[dataset] = round(max(values) - min(values), 4)
    return spread


if __name__ == "__main__":
    main()
