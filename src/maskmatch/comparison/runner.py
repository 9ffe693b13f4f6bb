"""The runner: goes through the cells of a comparison, runs those that are not finished, and keeps each at once."""

from __future__ import annotations

import gc
import json
import time
from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from maskmatch.checkpoints import digest
from maskmatch.classifier import MaskMatcher
from maskmatch.comparison.cells import Answers, Cell, CellStore, Figures
from maskmatch.comparison.label_changes import LabelContext
from maskmatch.comparison.measuring import MemoryWatch, TrainingWatch
from maskmatch.comparison.provenance import versions
from maskmatch.config import MatcherConfig
from maskmatch.data import Examples
from maskmatch.encoder import find_model
from maskmatch.errors import MaskMatchError
from maskmatch.settings import as_json
from maskmatch.targets import row_labels
from maskmatch.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from maskmatch.comparison.regimes import Regime
    from maskmatch.comparison.splits import Rows, Splits
    from maskmatch.comparison.variants import Variant
    from maskmatch.labels import LabelSet
    from maskmatch.training_config import TrainingConfig

Split = Literal["test", "dev"]

EXAMPLES_REVISION = 2
"""Counted up when examples of labels count otherwise than before: cells with examples are then run again."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A cell that is to be run."""

    data: Splits
    variant: Variant
    regime: Regime
    seed: int
    train: Rows
    """The rows that the regime and the seed have drawn."""
    measured: Rows
    dev: Rows | None
    """The rows to choose the best weights by, if any."""
    model: str | Path | None
    weights: str
    """A digest of the encoder's files."""

    @property
    def name(self) -> str:
        """What messages call the cell."""
        return f"{self.data.name}, {self.variant.name}, {self.regime.name}, seed {self.seed}"

    @cached_property
    def labels(self) -> LabelSet:
        """The labels to choose from, as the variant reads them."""
        change, data = self.variant.labels, self.data
        if change is None:
            return data.labels
        return change(LabelContext(data.labels, data.name, data.task, self.train, data.train, self.seed, self.model))

    @cached_property
    def training(self) -> TrainingConfig:
        """How to train, with everything spelled out."""
        any_length = {"max_length": 512}  # it does not matter here
        config = MatcherConfig.make(multi_label=self.data.multi_label, **{**any_length, **self.options})
        moving = len(set(self.train.labels)) if config.moves_labels else 0
        return self.variant.config(len(self.train), self.seed, moving_labels=moving)

    @property
    def options(self) -> dict[str, Any]:
        """What the classifier is made with, besides its encoder and labels."""
        own = {name: value for name, value in self.variant.matcher.items() if name != "model"}
        return {"task": self.data.task, "method": self.variant.row, **own}

    @cached_property
    def settings(self) -> dict[str, Any]:
        """All that decides on the result, as plain JSON."""
        config = as_json(self.training)
        training = {name: value for name, value in config.items() if name not in ("checkpoints", "resume")}
        settings: dict[str, Any] = {
            "maskmatch": versions().get("maskmatch"),
            "dataset": self.data.name,
            "task": replace(self.data.task, method=Task.method),  # its own plays no part: the variant has one
            "labels": digest(repr([self.labels.label(id_) for id_ in self.labels]).encode()),
            "variant": self.variant.to_json(),
            "model": {"name": None if self.model is None else str(self.model), "digest": self.weights},
            "regime": self.regime,
            "seed": self.seed,
            "training": training if self.regime.trains else None,
            "train": {"rows": len(self.train), "digest": self.train.digest},
            "dev": None if self.dev is None else {"rows": len(self.dev), "digest": self.dev.digest},
            "measured": {"rows": len(self.measured), "digest": self.measured.digest},
        }
        if any(label.examples for label in self.labels.labels):
            settings["examples"] = EXAMPLES_REVISION
        if self.variant.row.reads_pairs and "prompt" not in self.variant.matcher:
            settings["pair_prompts"] = list(self.data.task.pair_prompts)
        return dict(as_json(settings))

    @cached_property
    def digest(self) -> str:
        """What tells the cell from all others. The folder that an encoder lies in is no part of it."""
        settings = {**self.settings, "model": self.weights}
        return digest(json.dumps(settings, sort_keys=True).encode())


@dataclass(frozen=True)
class Grid:
    """All cells of a comparison.

    Attributes:
        datasets: The datasets.
        variants: What is compared.
        regimes: How much is learned from.
        seeds: The seeds, each with draws of its own.
        model: The encoder, unless a variant has another.
        split: The rows to measure on: test, or dev to tune.
        use_dev: Whether the best weights are chosen by dev rows.
        measured_rows: How many rows to measure on, a fixed draw; None: all.
    """

    datasets: Sequence[Splits]
    variants: Sequence[Variant]
    regimes: Sequence[Regime]
    seeds: Sequence[int]
    model: str | Path | None = None
    split: Split = "test"
    use_dev: bool = False
    measured_rows: int | None = None

    def plans(self) -> Iterator[Plan]:
        """The cells in the order in which they are run: all of a seed before the next, to have a first answer soon."""
        weights: dict[str | None, str] = {}
        measured = [data.measured(self.split).sample(self.measured_rows) for data in self.datasets]
        for number, seed in enumerate(self.seeds):
            for data, rows in zip(self.datasets, measured, strict=True):
                for regime in self.regimes:
                    train = data.train.select(regime.rows(data.train.labels, seed))
                    for variant in self.variants:
                        if not answers(variant, regime) or (number and not hangs_on_seed(variant, regime)):
                            continue
                        model = variant.matcher.get("model", self.model)
                        name = None if model is None else str(model)
                        if name not in weights:
                            weights[name] = model_digest(model)
                        yield Plan(
                            data=data,
                            variant=variant,
                            regime=regime,
                            seed=seed,
                            train=train,
                            measured=rows,
                            dev=data.measured("dev") if self.use_dev and regime.trains else None,
                            model=model,
                            weights=weights[name],
                        )


def answers(variant: Variant, regime: Regime) -> bool:
    """Whether a method can answer in a regime: one that learns a vector a label cannot without training."""
    return regime.trains or variant.row.reads_labels


def hangs_on_seed(variant: Variant, regime: Regime) -> bool:
    """Whether another seed could give another result; where nothing is drawn or trained, once is enough."""
    return regime.trains or (variant.labels is not None and variant.labels.drawn)


def seeds_of(seeds: int | Sequence[int]) -> list[int]:
    """The seeds, or the first so many."""
    found = list(range(seeds)) if isinstance(seeds, int) else list(dict.fromkeys(seeds))
    if not found or isinstance(seeds, bool):
        raise MaskMatchError(f"seeds is {seeds!r}; give a number of seeds from 1 on, or a list of seeds.")
    return found


def plans_of(grids: Sequence[Grid]) -> list[Plan]:
    """The cells of all grids, those of a seed before those of the next; a cell that two of them name is run once."""
    found: dict[str, Plan] = {}
    for plan in (plan for grid in grids for plan in grid.plans()):
        twin = found.setdefault(plan.name, plan)
        if twin is not plan and twin.digest != plan.digest:
            raise MaskMatchError(f"Two cells are called {plan.name!r} but differ; give their variants other names.")
    order = {seed: place for place, seed in enumerate(dict.fromkeys(seed for grid in grids for seed in grid.seeds))}
    return sorted(found.values(), key=lambda plan: order[plan.seed])


def run_grids(grids: Sequence[Grid], folder: str | Path | None, say: Callable[[str], Any]) -> list[Cell]:
    """Run what is not finished yet; what is comes from the folder."""
    store = CellStore(folder)
    cells: list[Cell] = []
    plans = deque(plans_of(grids))
    count = len(plans)
    while plans:
        plan = plans.popleft()  # its labels may be many, and go with it
        cell = store.find(plan.name, plan.digest)
        verb = "kept" if cell is not None else "ran"
        if cell is None:
            cell = run_plan(plan)
            store.keep(plan.name, cell)
        figures = cell.figures
        cells.append(cell)
        say(
            f"{len(cells)}/{count} {verb} {plan.name}: {figures.metric} {figures.score:.3f}, "
            f"{figures.training_seconds:.0f} s of training"
        )
    return cells


def run_plan(plan: Plan) -> Cell:
    """Run a cell: draw, train, measure."""
    try:
        matcher, watch = _trained(plan)
        texts, labels = list(plan.measured.texts), list(plan.measured.labels)
        memory = MemoryWatch()
        started = time.perf_counter()
        matcher.prediction()  # reads the labels
        label_seconds = time.perf_counter() - started
        report = matcher.evaluate(texts, labels, data=f"{plan.data.name}")
        truth = row_labels(Examples(texts, labels), matcher.labels, plan.data.multi_label)
    except MaskMatchError as error:
        raise MaskMatchError(f"{plan.name}: {error}") from error
    summary = matcher.training_ if plan.regime.trains else None
    score = getattr(report, "score", None)
    figures = Figures(
        rows=report.rows,
        accuracy=report.accuracy,
        macro_f1=report.macro_f1,
        metric=str(getattr(report, "metric", None) or "accuracy"),
        score=report.accuracy if score is None else float(score),
        expected_calibration_error=report.expected_calibration_error,
        training_texts=len(plan.train),
        steps=0 if summary is None else summary.steps,
        training_seconds=0.0 if summary is None else summary.seconds,
        texts_per_second=_with_labels(report.rows, report.texts_per_second, label_seconds),
        trained_parameters=watch.parameters,
        peak_megabytes=watch.peak_megabytes,
        cut=report.cut,
        label_seconds=label_seconds,
        prediction_megabytes=memory.peak,
        training_rise=watch.rise_megabytes,
        prediction_rise=memory.rise,
    )
    known = list(plan.data.labels)  # labels that were added are kept where they were predicted
    given = Answers.of(plan.measured.numbers, known, truth, matcher.predicted_ or [])
    names = (plan.data.name, plan.variant.name, plan.regime.name)
    del matcher
    gc.collect()  # a trainer holds its model in a circle; the next cell's memory should not count it
    return Cell(*names, plan.seed, plan.digest, plan.settings, figures, given, tuple(report.notes), versions())


def _with_labels(rows: int, texts_per_second: float | None, label_seconds: float) -> float | None:
    """The speed of prediction, the time of reading the labels included."""
    return None if not texts_per_second else rows / (rows / texts_per_second + label_seconds)


def _trained(plan: Plan) -> tuple[MaskMatcher, TrainingWatch]:
    from transformers import set_seed

    set_seed(plan.seed)  # also without training: a head that does not fit the encoder is drawn at random
    matcher = MaskMatcher.from_pretrained(
        plan.model, labels=plan.labels, multi_label=plan.data.multi_label, **plan.options
    )
    watch = TrainingWatch()
    if plan.regime.trains:
        dev = None if plan.dev is None else (list(plan.dev.texts), list(plan.dev.labels))
        rows = list(plan.train.texts), list(plan.train.labels)
        matcher.fit(*rows, dev=dev, training=plan.training, callbacks=[watch])
    return matcher, watch


def model_digest(model: str | Path | None) -> str:
    """A digest of the files of an encoder, so that other weights under the same name make other cells."""
    folder, _ = find_model(model)
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".json", ".safetensors", ".txt", ".model"))
    return digest(*(part for path in files for part in (str(path.relative_to(folder)).encode(), path.read_bytes())))
