"""``maskmatch compare``: methods on datasets in regimes over seeds, with paired tests and a report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskmatch.cli import options

if TYPE_CHECKING:
    from maskmatch.comparison import Comparison, Regime, Splits, Tuning, Variant

DATA, REGIMES, TUNING = "Datasets", "Regimes (several may be given)", "Training and tuning"


def compare(
    *,
    train: Annotated[str | None, typer.Argument(help="Labelled rows to train on.")] = None,
    test: Annotated[str | None, typer.Argument(help="Labelled rows to measure on.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="A folder for cells, results and report.")],
    methods: Annotated[str | None, typer.Option(help="Methods, with commas between; all if left out.")] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds, each with draws of its own.", min=1)] = 3,
    reference: Annotated[str | None, typer.Option(help="The method to test the others against.")] = None,
    model: options.ModelName = None,
    task: options.TaskName = None,
    test_rows: Annotated[
        int | None, typer.Option(help="Measure on a fixed draw of so many rows; when tuning, of dev.", min=1)
    ] = None,
    shots: Annotated[
        list[int] | None, typer.Option(help="So many training rows a label.", min=1, rich_help_panel=REGIMES)
    ] = None,
    fraction: Annotated[
        list[float] | None, typer.Option(help="A part of the training rows of each label.", rich_help_panel=REGIMES)
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="All training rows.", rich_help_panel=REGIMES)] = False,
    zero_shot: Annotated[
        bool, typer.Option("--zero-shot", help="No training at all.", rich_help_panel=REGIMES)
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            envvar="MASKMATCH_DATA",
            help="A folder of datasets: NAME/{train,dev,test}.jsonl, also gzipped.",
            rich_help_panel=DATA,
        ),
    ] = None,
    datasets: Annotated[
        str | None, typer.Option(help="Datasets of it with their tasks: NAME:TASK,…", rich_help_panel=DATA)
    ] = None,
    paper: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="Public hub datasets of the paper's kinds, and this encoder.", rich_help_panel=DATA
        ),
    ] = None,
    dev: Annotated[
        str | None, typer.Option(help="Rows to choose the best weights by, or to tune on.", rich_help_panel=DATA)
    ] = None,
    use_dev: Annotated[
        bool, typer.Option("--use-dev", help="Choose weights by the datasets' dev rows.", rich_help_panel=DATA)
    ] = False,
    settings: Annotated[
        Path | None, typer.Option(help="A file of --tune: rate and epochs of each method.", rich_help_panel=TUNING)
    ] = None,
    tune: Annotated[
        Path | None,
        typer.Option(help="Tune all methods alike on dev, write this file, and stop.", rich_help_panel=TUNING),
    ] = None,
    learning_rates: Annotated[
        str | None, typer.Option(help="Rates for --tune, with commas between.", rich_help_panel=TUNING)
    ] = None,
    epoch_factors: Annotated[
        str | None, typer.Option(help="Multiples of the usual epochs for --tune.", rich_help_panel=TUNING)
    ] = None,
    epochs: Annotated[float | None, typer.Option(help="Passes over the rows.", rich_help_panel=TUNING)] = None,
    batch_size: Annotated[int, typer.Option(help="Texts a step.", min=1, rich_help_panel=TUNING)] = 32,
    text_field: options.TextField = None,
    label_field: options.LabelField = None,
    field: options.Field = None,
    encoding: options.Encoding = "utf-8",
    format: options.Format = None,  # noqa: A002
    skip_bad_rows: options.SkipBadRows = False,
    json: options.AsJson = False,
) -> None:
    """Compare methods: every one on the same rows, with the same seeds. A killed run goes on where it stopped."""
    _check_usage(train=train, test=test, datasets=datasets, paper=paper, dev=dev, model=model)
    if settings is not None and (tune is not None or epochs is not None):
        raise typer.BadParameter("the settings decide on the epochs, and are not tuned again.", param_hint="--settings")
    reading = options.reading_options(
        text_field=text_field,
        label_field=label_field,
        field=field,
        encoding=encoding,
        format=format,
        skip_bad_rows=skip_bad_rows,
    )
    grid = {
        "learning_rates": _numbers(learning_rates, "--learning-rates"),
        "epoch_factors": _numbers(epoch_factors, "--epoch-factors"),
    }
    regimes = _regimes(shots, fraction, full, zero_shot, paper is not None)
    variants = _variants(methods, {"batch_size": batch_size, **({} if epochs is None else {"epochs": epochs})})
    if paper is not None:
        found = _paper(datasets)
    elif datasets is not None:
        found = _named(data, datasets, task)
    else:
        assert train is not None
        assert test is not None
        found = [_files(train, test, dev, task, reading)]
    encoder = model if paper is None else paper
    if tune is not None:
        tried = {name: values for name, values in grid.items() if values}
        _tune(
            tune, json, found, variants, regimes, seeds=seeds, model=encoder, folder=output, dev_rows=test_rows, **tried
        )
        return

    from maskmatch.comparison import compare as run
    from maskmatch.comparison.provenance import command_line

    result = run(
        found,
        variants,
        regimes,
        seeds,
        model=encoder,
        folder=output,
        settings=settings,
        reference=reference,
        use_dev=use_dev or dev is not None,
        test_rows=test_rows,
        say=options.tell,
        command=command_line(sys.argv[1:]),
    )
    _print(result, output, json)


def _check_usage(
    *, train: str | None, test: str | None, datasets: str | None, paper: str | None, dev: str | None, model: str | None
) -> None:
    """Rows come from two files, from a folder of datasets, or from the hub."""
    files = train is not None or test is not None
    if files and (datasets is not None or paper is not None):
        raise typer.BadParameter("give TRAIN and TEST, or --datasets, or --paper, not two of them.", param_hint="TRAIN")
    if files and test is None:
        raise typer.BadParameter("give TRAIN and TEST, both.", param_hint="TEST")
    if not files and datasets is None and paper is None:
        raise typer.BadParameter("give TRAIN and TEST, or --data and --datasets, or --paper.", param_hint="TRAIN")
    if dev is not None and not files:
        raise typer.BadParameter("datasets have their own dev rows; --use-dev uses them.", param_hint="--dev")
    if paper is not None and model is not None:
        raise typer.BadParameter("--paper names the encoder already.", param_hint="--model")


def _regimes(
    shots: list[int] | None, fraction: list[float] | None, full: bool, zero_shot: bool, paper: bool
) -> list[Regime]:
    from maskmatch.comparison import Regime

    found = [Regime("zero-shot")] if zero_shot else []
    found += [Regime("shots", number) for number in shots or ()]
    found += [Regime("fraction", part) for part in fraction or ()]
    if full or not found:
        found += [Regime("fraction", 0.1)] if paper and not found else []
        found.append(Regime("full"))
    return found


def _variants(methods: str | None, training: dict[str, Any]) -> list[Variant]:
    from maskmatch.comparison import Variant
    from maskmatch.methods import METHODS

    names = list(METHODS) if methods is None else [name.strip() for name in methods.split(",") if name.strip()]
    return [Variant(name, name, training=training) for name in names]


def _named(data: Path | None, named: str, task: str | None) -> list[Splits]:
    """Datasets of a folder."""
    from maskmatch.comparison import Splits
    from maskmatch.comparison.splits import parse_datasets

    if data is None:
        raise typer.BadParameter("name their folder with --data, or in MASKMATCH_DATA.", param_hint="--datasets")
    return [Splits.from_folder(data, name, own) for name, own in parse_datasets(named, task).items()]


def _paper(named: str | None) -> list[Splits]:
    """Datasets of the hub."""
    from maskmatch.comparison.hub import load_hub_dataset, paper_datasets

    names = [name.strip() for name in (named or "").split(",") if name.strip()]
    found = []
    for dataset in paper_datasets(names):
        options.tell(f"loading {dataset.name} ({dataset.hub})")
        found.append(load_hub_dataset(dataset))
    return found


def _files(train: str, test: str, dev: str | None, task: str | None, reading: dict[str, Any]) -> Splits:
    """A dataset of files; it is called by the folder of a file that says no more than "train"."""
    from maskmatch.comparison import Splits
    from maskmatch.comparison.splits import Rows
    from maskmatch.tasks import find_task

    preset = find_task(task or "topic")
    rows = [
        None if file is None else Rows.of(options.load_rows(file, preset.fields, reading))
        for file in (train, test, dev)
    ]
    assert rows[0] is not None
    assert rows[1] is not None
    stem = Path(train).name.partition(".")[0]
    name = Path(train).resolve().parent.name if stem == "train" else stem
    return Splits(name or stem, preset, rows[0], rows[1], rows[2])


def _numbers(given: str | None, hint: str) -> list[float]:
    try:
        return [float(part) for part in (given or "").split(",") if part.strip()]
    except ValueError:
        raise typer.BadParameter(f"{given!r} are not numbers with commas between.", param_hint=hint) from None


def _tune(
    file: Path, json: bool, datasets: list[Splits], methods: list[Variant], regimes: list[Regime], **how: Any
) -> None:
    """Tune, write the settings, and tell the budget and the choice."""
    from maskmatch.comparison import tune

    tuning: Tuning = tune(datasets, methods, regimes, say=options.tell, **how)
    tuning.save(file)
    options.tell(f"settings saved in {file}; use them with --settings {file}")
    if json:
        options.print_json(tuning.to_json())
    else:
        typer.echo(str(tuning))


def _print(result: Comparison, output: Path, json: bool) -> None:
    from maskmatch.comparison.text import cost_table, quality_table, results_table, significance_table

    options.tell(f"results and report saved in {output}")
    if json:
        options.print_json(result.to_dict())
        return
    if sys.stdout.isatty():  # one table of all columns would be too wide for most terminals
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
        typer.echo(f"tuned on dev with {budget.get('runs_a_method', '?')} runs a method, the same for all")
