"""``maskmatch predict --engine ray``: files, folders and object stores, on one machine or many."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from maskmatch.cli import options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from maskmatch.cli.tables import TableOutput

PANEL = "Many processes or machines (--engine ray)"

Engine = Annotated[
    Literal["local", "ray"],
    typer.Option(help="What computes: this process, or Ray, on all processors or on many machines."),
]


def _option(text: str, **more: Any) -> Any:
    return typer.Option(help=text, rich_help_panel=PANEL, **more)


@dataclass(frozen=True)
class RayOptions:
    """How a job is spread over processes and machines."""

    actors: Annotated[
        int | None, _option("How many processes, each with a model; default: as many as the processors.", min=1)
    ] = None
    threads: Annotated[int | None, _option("How many threads each process has; default: 1.", min=1)] = None
    partition_rows: Annotated[int | None, _option("Rows per file of answers; default: 4096.", min=1)] = None
    ray_address: Annotated[
        str | None, _option("The address of a Ray cluster, or auto; default: a local one is started.")
    ] = None
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace answers made from something else.", rich_help_panel=PANEL)
    ] = False

    def refuse(self) -> None:
        """Raise if any of them is given without the engine."""
        for name, value in vars(self).items():
            if value:
                raise typer.BadParameter("this needs --engine ray.", param_hint=f"--{name.replace('_', '-')}")


def predict_with_ray(
    folder: str | None,
    texts: options.Texts,
    table: TableOutput,
    reading: options.Reading,
    *,
    ray: RayOptions,
    answers: Mapping[str, Any],
    refused: Mapping[str, Any],
) -> None:
    """Write answers as Parquet, and print what was written.

    Args:
        folder: The folder of a classifier or of an export.
        texts: The file or folder of rows.
        table: The folder of answers.
        reading: How rows are read.
        ray: How the job is spread.
        answers: Fields of ``AnswerOptions``.
        refused: Options of this command that the engine has not, and whether they were given.
    """
    rows = {"--text": texts.text, "--skip-bad-rows": reading.skip_bad_rows}
    tables = {"--keep": table.keep, "--append": table.append, "--resume": table.resume}
    for name, given in {**refused, **rows, **tables}.items():
        if given:
            raise typer.BadParameter("this does not go with --engine ray; leave it out.", param_hint=name)
    if folder is None:
        raise typer.BadParameter("give the folder of a classifier.", param_hint="FOLDER")
    if texts.file in (None, "-"):
        raise typer.BadParameter("give a file or a folder of rows.", param_hint="FILE")
    from maskmatch.data.formats import WRITERS

    output = table.output
    if output is None:
        raise typer.BadParameter("give a folder for the answers.", param_hint="--output")
    if output.lower().removesuffix(".gz").endswith(tuple(f".{suffix}" for suffix in WRITERS)):
        raise typer.BadParameter(
            "with --engine ray it is a folder of Parquet files, so its name must not end like that of a table.",
            param_hint="--output",
        )
    from maskmatch.integrations.arrow import AnswerOptions, model_hash
    from maskmatch.integrations.ray_job import ROWS, Job, run_job

    options.saved_classifier(folder)
    model_hash(folder)  # a folder, and none of the hub
    asked = AnswerOptions(text_field=reading.text_field, named=reading.named, prefix=table.prefix or "", **answers)
    job = Job(
        folder,
        os.fspath(texts.file or ""),
        output,
        asked,
        format=reading.format,
        encoding=reading.encoding,
        rows=ray.partition_rows or ROWS,
        actors=ray.actors,
        threads=ray.threads or 1,
        address=ray.ray_address,
        overwrite=ray.overwrite,
    )
    manifest = run_job(job, options.config_of(folder, {}))
    if manifest["bad_rows"]:
        options.note(f"{manifest['bad_rows']} rows could not be used; the column {asked.prefix}error says why.")
    shown = {name: value for name, value in manifest.items() if name not in ("files", "options")}
    options.print_json({"output": output, **shown})
