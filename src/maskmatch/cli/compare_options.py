"""The options of ``maskmatch compare`` in groups: where rows come from, how many are trained on, and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskmatch.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.comparison import Regime, Splits, Variant

DATA, REGIMES = "Datasets", "Regimes (several may be given)"


@dataclass(frozen=True)
class Datasets:
    """Where rows come from: two files, a folder of datasets, or the hub."""

    train: Annotated[str | None, typer.Argument(help="Labelled rows to train on.")] = None
    test: Annotated[str | None, typer.Argument(help="Labelled rows to measure on.")] = None
    data: Annotated[
        Path | None,
        typer.Option(
            envvar="MASKMATCH_DATA",
            help="A folder of datasets: NAME/{train,dev,test}.jsonl, also gzipped.",
            rich_help_panel=DATA,
        ),
    ] = None
    datasets: Annotated[
        str | None, typer.Option(help="Datasets of it with their tasks: NAME:TASK,…", rich_help_panel=DATA)
    ] = None
    paper: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="Public hub datasets of the paper's kinds, and this encoder.", rich_help_panel=DATA
        ),
    ] = None
    dev: Annotated[
        str | None, typer.Option(help="Rows to choose the best weights by, or to tune on.", rich_help_panel=DATA)
    ] = None
    use_dev: Annotated[
        bool, typer.Option("--use-dev", help="Choose weights by the datasets' dev rows.", rich_help_panel=DATA)
    ] = False

    def __post_init__(self) -> None:
        files = self.train is not None or self.test is not None
        named = self.datasets is not None or self.paper is not None
        if files and named:
            raise typer.BadParameter(
                "give TRAIN and TEST, or --datasets, or --paper, not two of them.", param_hint="TRAIN"
            )
        if files and self.test is None:
            raise typer.BadParameter("give TRAIN and TEST, both.", param_hint="TEST")
        if not files and not named:
            raise typer.BadParameter("give TRAIN and TEST, or --data and --datasets, or --paper.", param_hint="TRAIN")
        if self.dev is not None and not files:
            raise typer.BadParameter("datasets have their own dev rows; --use-dev uses them.", param_hint="--dev")

    @property
    def by_dev(self) -> bool:
        """Whether the best weights are chosen by dev rows."""
        return self.use_dev or self.dev is not None

    def encoder(self, model: str | None) -> str | None:
        """The encoder of all methods."""
        if self.paper is not None and model is not None:
            raise typer.BadParameter("--paper names the encoder already.", param_hint="--model")
        return model if self.paper is None else self.paper

    def load(self, task: str | None, reading: options.LabelledReading) -> list[Splits]:
        """The datasets, read."""
        if self.paper is not None:
            return self._from_hub()
        return [self._from_files(task, reading)] if self.datasets is None else self._from_folder(self.datasets, task)

    def _from_hub(self) -> list[Splits]:
        from maskmatch.comparison.hub import load_hub_dataset, paper_datasets

        names = [name.strip() for name in (self.datasets or "").split(",") if name.strip()]
        found = []
        for dataset in paper_datasets(names):
            options.tell(f"loading {dataset.name} ({dataset.hub})")
            found.append(load_hub_dataset(dataset))
        return found

    def _from_folder(self, named: str, task: str | None) -> list[Splits]:
        from maskmatch.comparison import Splits
        from maskmatch.comparison.splits import parse_datasets

        if self.data is None:
            raise typer.BadParameter("name their folder with --data, or in MASKMATCH_DATA.", param_hint="--datasets")
        return [Splits.from_folder(self.data, name, own) for name, own in parse_datasets(named, task).items()]

    def _from_files(self, task: str | None, reading: options.LabelledReading) -> Splits:
        """A dataset of files; it is called by the folder of a file that says no more than "train"."""
        from maskmatch.comparison import Rows, Splits
        from maskmatch.tasks import find_task

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
    """How many of the rows to train on."""

    shots: Annotated[
        list[int] | None, typer.Option(help="So many training rows a label.", min=1, rich_help_panel=REGIMES)
    ] = None
    fraction: Annotated[
        list[float] | None, typer.Option(help="A part of the training rows of each label.", rich_help_panel=REGIMES)
    ] = None
    full: Annotated[bool, typer.Option("--full", help="All training rows.", rich_help_panel=REGIMES)] = False
    zero_shot: Annotated[bool, typer.Option("--zero-shot", help="No training at all.", rich_help_panel=REGIMES)] = False

    def make(self, paper: bool) -> list[Regime]:
        """The regimes; where none is named, all rows, and for the paper's kinds of data a tenth of them too."""
        from maskmatch.comparison import Regime

        found = [Regime("zero-shot")] if self.zero_shot else []
        found += [Regime("shots", number) for number in self.shots or ()]
        with options.wrong_usage("--fraction"):
            found += [Regime("fraction", part) for part in self.fraction or ()]
        if self.full or not found:
            found += [Regime("fraction", 0.1)] if paper and not found else []
            found.append(Regime("full"))
        return found


@dataclass(frozen=True)
class Settings:
    """How methods are trained: all alike, as they were tuned, or to be tuned now."""

    settings: Annotated[
        Path | None,
        typer.Option(help="A file of --tune: rate and epochs of each method.", rich_help_panel=options.TRAINING),
    ] = None
    tune: Annotated[
        Path | None,
        typer.Option(
            help="Tune all methods alike on dev, write this file, and stop.", rich_help_panel=options.TRAINING
        ),
    ] = None
    learning_rates: Annotated[
        str | None, typer.Option(help="Rates for --tune, with commas between.", rich_help_panel=options.TRAINING)
    ] = None
    epoch_factors: Annotated[
        str | None, typer.Option(help="Multiples of the usual epochs for --tune.", rich_help_panel=options.TRAINING)
    ] = None
    epochs: options.Epochs = None
    batch_size: options.StepSize = 32

    def __post_init__(self) -> None:
        if self.settings is not None and (self.tune is not None or self.epochs is not None):
            raise typer.BadParameter(
                "the settings decide on the epochs, and are not tuned again.", param_hint="--settings"
            )
        self.grid()

    def grid(self) -> dict[str, Any]:
        """What tuning tries, where it is named."""
        tried = {
            "learning_rates": _numbers(self.learning_rates, "--learning-rates"),
            "epoch_factors": _numbers(self.epoch_factors, "--epoch-factors"),
        }
        return {name: values for name, values in tried.items() if values}

    def variants(self, methods: str | None, datasets: Sequence[Splits]) -> list[Variant]:
        """The methods to compare, by their names with commas between, or all that suit the datasets."""
        from maskmatch.comparison import Variant, usual_methods

        training: dict[str, Any] = {"batch_size": self.batch_size}
        training |= {} if self.epochs is None else {"epochs": self.epochs}
        named = None if methods is None else [name.strip() for name in methods.split(",") if name.strip()]
        names = usual_methods([data.task for data in datasets]) if named is None else named
        return [Variant(name, name, training=training) for name in names]


def _numbers(given: str | None, hint: str) -> list[float]:
    try:
        return [float(part) for part in (given or "").split(",") if part.strip()]
    except ValueError:
        raise typer.BadParameter(f"{given!r} are not numbers with commas between.", param_hint=hint) from None
