"""``maskmatch study``: answer a question by experiments, with a report and a conclusion in words."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from maskmatch.cli import options

if TYPE_CHECKING:
    from maskmatch_lab.studies import Study


def study(
    *,
    name: Annotated[str | None, typer.Argument(metavar="STUDY", help="The study; --list shows all of them.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(envvar="MASKMATCH_DATA", help="Folder of datasets: NAME/{train,dev,test}.jsonl or .jsonl.gz."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for cells, results, report and conclusion.")
    ] = None,
    model: options.ModelName = None,
    datasets: Annotated[
        str | None, typer.Option(help="Some of its datasets, or others with their tasks: NAME,NAME:TASK,…")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds; by default as the study says.", min=1)] = None,
    test_rows: Annotated[
        int | None, typer.Option(help="Evaluate on a fixed draw of this many test rows.", min=1)
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run a tiny version, which shows the form of the output.")
    ] = False,
    list_all: Annotated[bool, typer.Option("--list", help="List all studies and exit.")] = False,
    json: options.AsJson = False,
) -> None:
    """Run a study: experiments, a conclusion in words, a report. A killed run resumes where it stopped."""
    if list_all:
        _list(json)
        return
    if name is None:
        raise typer.BadParameter("name a study; --list shows all of them.", param_hint="NAME")
    for given, hint in ((data, "--data"), (output, "--output")):
        if given is None:
            raise typer.BadParameter("required to run a study.", param_hint=hint)
    assert data is not None

    from maskmatch_lab.comparison.provenance import command_line
    from maskmatch_lab.studies import find_study, run_study

    chosen = find_study(name)
    if datasets is not None:
        chosen = chosen.on(_named(datasets, chosen))
    result = run_study(
        chosen,
        data,
        output,
        model=model,
        seeds=seeds,
        test_rows=test_rows,
        quick=quick,
        log=options.note,
        command=command_line(sys.argv[1:]),
    )
    options.note(f"results, report and conclusion saved in {output}")
    if json:
        options.print_json(result.to_dict())
    else:
        typer.echo(str(result))


def _named(datasets: str, study: Study) -> dict[str, str]:
    """Datasets with their tasks; the study's own datasets have one already."""
    from maskmatch.errors import MaskMatchError
    from maskmatch_lab.comparison.splits import parse_datasets

    tasks = {}
    for part in filter(None, (part.strip() for part in datasets.split(","))):
        task = study.datasets.get(part, study.datasets.get(part.partition("@")[0]))
        if ":" not in part and task is None:
            raise MaskMatchError(
                f"The study {study.name!r} has no dataset {part!r}; write NAME:TASK, or one of its own: "
                f"{', '.join(study.datasets)}."
            )
        for name, preset in parse_datasets(part, task).items():
            tasks[name] = preset.name
    return tasks


def _list(json: bool) -> None:
    from maskmatch_lab.studies import STUDIES

    if json:
        options.print_json(
            [
                {
                    "name": each.name,
                    "question": each.question,
                    "datasets": each.datasets,
                    "cells": each.cells,
                    "minutes": each.minutes,
                    "cut": each.cut,
                }
                for each in STUDIES.values()
            ]
        )
        return
    options.print_table(
        ("study", "question", "datasets", "cells", "minutes"),
        [
            (each.name, each.question, ", ".join(each.datasets), str(each.cells), f"about {each.minutes}")
            for each in STUDIES.values()
        ],
    )
