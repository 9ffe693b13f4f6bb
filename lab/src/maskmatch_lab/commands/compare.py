"""``maskmatch compare``: run methods on datasets in regimes with several seeds; paired tests and a report."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskmatch.cli import options
from maskmatch_lab.commands.compare_options import Datasets, Regimes, Settings  # noqa: TC001 - typer reads the annotations

if TYPE_CHECKING:
    from maskmatch_lab.comparison import Comparison, Tuning


def compare(
    *,
    data: Datasets,
    output: Annotated[Path, typer.Option("--output", "-o", help="A folder for cells, results and report.")],
    methods: Annotated[
        str | None, typer.Option(help="Methods, separated by commas; by default all that fit the task.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds; each draws its own training rows.", min=1)] = 3,
    reference: Annotated[str | None, typer.Option(help="The method to compare the others with.")] = None,
    model: options.ModelName = None,
    task: options.TaskName = None,
    test_rows: Annotated[
        int | None, typer.Option(help="Evaluate on a fixed draw of this many rows; with --tune, of dev.", min=1)
    ] = None,
    regimes: Regimes,
    settings: Settings,
    reading: options.LabelledReading,
    json: options.AsJson = False,
) -> None:
    """Compare methods on the same rows with the same seeds. A killed run resumes where it stopped."""
    encoder = data.encoder(model)

    from maskmatch_lab.comparison import compare as run
    from maskmatch_lab.comparison import tune
    from maskmatch_lab.comparison.provenance import command_line

    how: dict[str, Any] = {"seeds": seeds, "model": encoder, "folder": output, "log": options.note}
    chosen = regimes.make(data.paper is not None)
    datasets = data.load(task, reading)
    variants = settings.variants(methods, datasets)
    if settings.tune is not None:
        tuning = tune(datasets, variants, chosen, dev_rows=test_rows, **settings.grid(), **how)
        _save_tuning(tuning, settings.tune, json)
        return
    result = run(
        datasets,
        variants,
        chosen,
        settings=settings.settings,
        reference=reference,
        use_dev=data.by_dev,
        test_rows=test_rows,
        command=command_line(sys.argv[1:]),
        **how,
    )
    _print(result, output, json)


def _save_tuning(tuning: Tuning, file: Path, json: bool) -> None:
    """Write the settings, and print the budget and the choice."""
    tuning.save(file)
    options.note(f"settings saved in {file}; use them with --settings {file}")
    if json:
        options.print_json(tuning.to_json())
    else:
        typer.echo(str(tuning))


def _print(result: Comparison, output: Path, json: bool) -> None:
    from maskmatch_lab.comparison.text import cost_table, quality_table, results_table, significance_table

    options.note(f"results and report saved in {output}")
    if json:
        options.print_json(result.to_dict())
        return
    if sys.stdout.isatty():  # a single table with all columns is too wide for most terminals
        options.print_table(*quality_table(result))
        typer.echo()
        options.print_table(*cost_table(result))
    else:
        options.print_table(*results_table(result))
    differences = significance_table(result)
    if differences[1]:
        typer.echo()
        options.print_table(*differences)
    if result.notes:
        typer.echo()
    for note in result.notes:
        typer.echo(f"* {note}")
    tuning = result.about.get("tuning")
    if tuning:
        typer.echo()
        for name, setting in tuning["settings"].items():
            typer.echo(
                f"{name}: learning rate {setting['learning_rate']:g}, {setting['epoch_factor']:g} times the epochs"
            )
        budget = tuning["budget"]
        typer.echo(f"tuned on dev with {budget.get('runs_a_method', '?')} runs per method, the same for all")
