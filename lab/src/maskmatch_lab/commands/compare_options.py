"""The options of ``maskmatch compare`` in groups: datasets, regimes, and settings of training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskmatch.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch_lab.comparison import Regime, Splits, Variant

DATA, REGIMES = "Datasets", "Regimes (several may be given)"


@dataclass(frozen=True)
class Datasets:
    """The source of rows: two files, a folder of datasets, or the hub."""

    train: Annotated[str | None, typer.Argument(metavar="TRAIN", help="Labelled rows to train on.")] = None
    test: Annotated[str | None, typer.Argument(metavar="TEST", help="Labelled rows to evaluate on.")] = None
    data: Annotated[
        Path | None,
        typer.Option(
            envvar="MASKMATCH_DATA",
            help="Folder of datasets: NAME/{train,dev,test}.jsonl or .jsonl.gz.",
            rich_help_panel=DATA,
        ),
    ] = None
    datasets: Annotated[
        str | None, typer.Option(help="Datasets in --data, with their tasks: NAME:TASK,…", rich_help_panel=DATA)
    ] = None
    paper: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Use public hub datasets for the paper's tasks, with this encoder.",
            rich_help_panel=DATA,
        ),
    ] = None
    dev: Annotated[
        str | None, typer.Option(help="Rows for choosing the best checkpoint, or for tuning.", rich_help_panel=DATA)
    ] = None
    use_dev: Annotated[
        bool, typer.Option("--use-dev", help="Keep the best checkpoint on the dev rows.", rich_help_panel=DATA)
    ] = False

    def __post_init__(self) -> None:
        files = self.train is not None or self.test is not None
        named = self.datasets is not None or self.paper is not None
        if files and named:
            raise typer.BadParameter("give either TRAIN and TEST, or --datasets, or --paper.", param_hint="TRAIN")
        if files and self.test is None:
            raise typer.BadParameter("give both TRAIN and TEST.", param_hint="TEST")
        if not files and not named:
            raise typer.BadParameter("give TRAIN and TEST, or --data and --datasets, or --paper.", param_hint="TRAIN")
        if self.dev is not None and not files:
            raise typer.BadParameter("datasets have their own dev rows; use them with --use-dev.", param_hint="--dev")

    @property
    def by_dev(self) -> bool:
        """Whether the best checkpoint is chosen on dev rows."""
        return self.use_dev or self.dev is not None

    def encoder(self, model: str | None) -> str | None:
        """The encoder of all methods."""
        if self.paper is not None and model is not None:
            raise typer.BadParameter("--paper already names the encoder.", param_hint="--model")
        return model if self.paper is None else self.paper

    def load(self, task: str | None, reading: options.LabelledReading) -> list[Splits]:
        """Load the datasets."""
        if self.paper is not None:
            return self._from_hub()
        return [self._from_files(task, reading)] if self.datasets is None else self._from_folder(self.datasets, task)

    def _from_hub(self) -> list[Splits]:
        from maskmatch_lab.comparison.hub import load_hub_dataset, paper_datasets

        names = [name.strip() for name in (self.datasets or "").split(",") if name.strip()]
        loaded = []
        for dataset in paper_datasets(names):
            options.note(f"loading {dataset.name} ({dataset.hub})")
            loaded.append(load_hub_dataset(dataset))
        return loaded

    def _from_folder(self, named: str, task: str | None) -> list[Splits]:
        from maskmatch_lab.comparison import Splits
        from maskmatch_lab.comparison.splits import parse_datasets

        if self.data is None:
            raise typer.BadParameter("give their folder with --data or MASKMATCH_DATA.", param_hint="--datasets")
        return [Splits.from_folder(self.data, name, own) for name, own in parse_datasets(named, task).items()]

    def _from_files(self, task: str | None, reading: options.LabelledReading) -> Splits:
        """A dataset from files; it is named after its file, or after its folder if the file is called "train"."""
        from maskmatch.config.tasks import find_task
        from maskmatch_lab.comparison import Rows, Splits

        assert self.train is not None
        assert self.test is not None
        preset = find_task(task or "topic")
        train, test = (Rows.of(options.load_rows(file, preset.fields, reading)) for file in (self.train, self.test))
        dev = None if self.dev is None else Rows.of(options.load_rows(self.dev, preset.fields, reading))
        stem = Path(self.train).name.partition(".")[0]
        name = Path(self.train).resolve().parent.name if stem == "train" else stem
        return Splits(name or stem, preset, train, test, dev)


@dataclass(frozen=True)
class Regimes:
    """The number of training rows."""

    shots: Annotated[
        list[int] | None, typer.Option(help="Number of training rows per label.", min=1, rich_help_panel=REGIMES)
    ] = None
    fraction: Annotated[
        list[float] | None, typer.Option(help="Fraction of the training rows of each label.", rich_help_panel=REGIMES)
    ] = None
    full: Annotated[bool, typer.Option("--full", help="All training rows.", rich_help_panel=REGIMES)] = False
    zero_shot: Annotated[bool, typer.Option("--zero-shot", help="No training at all.", rich_help_panel=REGIMES)] = False

    def make(self, paper: bool) -> list[Regime]:
        """The regimes; by default all rows, and for the paper's datasets also a tenth of them."""
        from maskmatch_lab.comparison import Regime

        regimes = [Regime("zero-shot")] if self.zero_shot else []
        regimes += [Regime("shots", number) for number in self.shots or ()]
        with options.wrong_usage("--fraction"):
            regimes += [Regime("fraction", part) for part in self.fraction or ()]
        if self.full or not regimes:
            regimes += [Regime("fraction", 0.1)] if paper and not regimes else []
            regimes.append(Regime("full"))
        return regimes


@dataclass(frozen=True)
class Settings:
    """The settings of training: the same for all methods, tuned before, or to be tuned now."""

    settings: Annotated[
        Path | None,
        typer.Option(help="File written by --tune: rate and epochs of each method.", rich_help_panel=options.TRAINING),
    ] = None
    tune: Annotated[
        Path | None,
        typer.Option(help="Tune all methods on dev, write this file, and stop.", rich_help_panel=options.TRAINING),
    ] = None
    learning_rates: Annotated[
        str | None,
        typer.Option(help="Learning rates for --tune, separated by commas.", rich_help_panel=options.TRAINING),
    ] = None
    epoch_factors: Annotated[
        str | None, typer.Option(help="Factors of the usual epochs for --tune.", rich_help_panel=options.TRAINING)
    ] = None
    epochs: Annotated[float | None, typer.Option(help="Passes over the rows.", rich_help_panel=options.TRAINING)] = None
    batch_size: Annotated[
        int, typer.Option("--batch-size", help="Texts per step.", min=1, rich_help_panel=options.TRAINING)
    ] = 32

    def __post_init__(self) -> None:
        if self.settings is not None and (self.tune is not None or self.epochs is not None):
            raise typer.BadParameter(
                "the file sets the epochs; do not combine it with --tune or --epochs.", param_hint="--settings"
            )
        self.grid()

    def grid(self) -> dict[str, Any]:
        """The grid of tuning, as far as it is given."""
        tried = {
            "learning_rates": _numbers(self.learning_rates, "--learning-rates"),
            "epoch_factors": _numbers(self.epoch_factors, "--epoch-factors"),
        }
        return {name: values for name, values in tried.items() if values}

    def variants(self, methods: str | None, datasets: Sequence[Splits]) -> list[Variant]:
        """The methods to compare, by their names separated by commas, or all that fit the datasets."""
        from maskmatch_lab.comparison import Variant, usual_methods

        training: dict[str, Any] = {"batch_size": self.batch_size}
        training |= {} if self.epochs is None else {"epochs": self.epochs}
        named = None if methods is None else [name.strip() for name in methods.split(",") if name.strip()]
        names = usual_methods([data.task for data in datasets]) if named is None else named
        return [replace(Variant.of(name), training=training) for name in names]


def _numbers(given: str | None, hint: str) -> list[float]:
    try:
        return [float(part) for part in (given or "").split(",") if part.strip()]
    except ValueError:
        raise typer.BadParameter(f"{given!r} is not a list of numbers separated by commas.", param_hint=hint) from None
