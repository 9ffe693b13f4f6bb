"""The runner: goes through the cells of a comparison, runs those that are not finished, and saves each of them."""

from __future__ import annotations

import gc
import time
from collections import deque
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from maskmatch.config.matcher import MatcherConfig
from maskmatch.data import Examples
from maskmatch.errors import MaskMatchError
from maskmatch.labels.targets import row_labels
from maskmatch.matcher import MaskMatcher
from maskmatch.model.encoder import find_model
from maskmatch_lab.comparison.baselines import BaselineClassifier
from maskmatch_lab.comparison.cell_key import cell_digest, cell_settings, digest
from maskmatch_lab.comparison.cells import Answers, Cell, CellStore, Figures
from maskmatch_lab.comparison.label_changes import LabelContext
from maskmatch_lab.comparison.measuring import MemoryWatch, TrainingWatch
from maskmatch_lab.comparison.provenance import versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from maskmatch.config.training import TrainingConfig
    from maskmatch.labels import LabelSet
    from maskmatch_lab.comparison.regimes import Regime
    from maskmatch_lab.comparison.splits import Rows, Splits
    from maskmatch_lab.comparison.variants import Variant

Split = Literal["test", "dev"]


@dataclass(frozen=True, eq=False)
class Plan:
    """A cell to run."""

    data: Splits
    variant: Variant
    regime: Regime
    seed: int
    train: Rows
    """The training rows, drawn by the regime and the seed."""
    measured: Rows
    dev: Rows | None
    """The rows for choosing the best checkpoint, if any."""
    model: str | Path | None
    weights: str
    """A digest of the encoder's files."""

    @property
    def name(self) -> str:
        """The name of the cell in messages."""
        return f"{self.data.name}, {self.variant.name}, {self.regime.name}, seed {self.seed}"

    @cached_property
    def labels(self) -> LabelSet:
        """The labels to choose from, after the variant's change."""
        change, data = self.variant.labels, self.data
        if change is None:
            return data.labels
        return change(LabelContext(data.labels, data.name, data.task, self.train, data.train, self.seed, self.model))

    @cached_property
    def left_out(self) -> set[Any]:
        """The labels that are left out of training and added afterwards."""
        return self.regime.left_out_labels(self.data.train.labels, self.seed)

    @cached_property
    def unlabelled(self) -> list[Any]:
        """The unlabelled texts to learn from, drawn by the seed."""
        drawn = self.variant.unlabelled
        return [] if drawn is None else drawn.draw(self.data.unlabelled, self.seed)

    @cached_property
    def training(self) -> TrainingConfig:
        """The settings of training, without open ones."""
        any_length = {"max_length": 512}  # it is required, but does not matter here
        config = MatcherConfig.make(multi_label=self.data.multi_label, **{**any_length, **self.options})
        moving = len(set(self.train.labels)) if config.uses_centroids else 0
        found = self.variant.config(len(self.train), self.seed, labels_with_centroids=moving)
        # Calibration gives labels that are added after training their offset.
        return found if self.regime.left_out is None else replace(found, calibrate=True)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of the classifier, without its encoder and labels."""
        own = {name: value for name, value in self.variant.matcher.items() if name != "model"}
        return {"task": self.data.task, "method": self.variant.row, **own}

    @cached_property
    def settings(self) -> dict[str, Any]:
        """All settings that can change the result, as plain JSON."""
        return cell_settings(self)

    @cached_property
    def digest(self) -> str:
        """The digest that identifies the cell."""
        return cell_digest(self.settings)


@dataclass(frozen=True)
class Grid:
    """All cells of a comparison.

    Attributes:
        datasets: The datasets.
        variants: The variants to compare.
        regimes: How many training rows there are.
        seeds: The seeds; each draws its own training rows.
        model: The encoder, unless a variant has another.
        split: The rows to evaluate on: test, or dev to tune.
        use_dev: Whether to choose the best checkpoint on dev rows.
        measured_rows: The number of rows to evaluate on, a fixed draw; None: all.
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
        """The cells in the order in which they run: all cells of a seed before the next seed, for early results."""
        weights: dict[str | None, str] = {}
        measured = [data.measured(self.split).sample(self.measured_rows) for data in self.datasets]
        for number, seed in enumerate(self.seeds):
            for data, rows in zip(self.datasets, measured, strict=True):
                for regime in self.regimes:
                    train = data.train.select(regime.rows(data.train.labels, seed))
                    for variant in self.variants:
                        if not can_predict(variant, regime) or (number and not depends_on_seed(variant, regime)):
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


def can_predict(variant: Variant, regime: Regime) -> bool:
    """Whether a method can predict in a regime: one that learns a vector per label must have seen all labels."""
    return variant.reads_labels or (regime.trains and regime.left_out is None)


def depends_on_seed(variant: Variant, regime: Regime) -> bool:
    """Whether the result depends on the seed; if nothing is drawn or trained, one run is enough."""
    drawn = variant.labels is not None and variant.labels.drawn
    return regime.trains or drawn or variant.unlabelled is not None


def seeds_of(seeds: int | Sequence[int]) -> list[int]:
    """The seeds from their number or from a list."""
    listed = list(range(seeds)) if isinstance(seeds, int) else list(dict.fromkeys(seeds))
    if not listed or isinstance(seeds, bool):
        raise MaskMatchError(f"seeds is {seeds!r}; give a positive number of seeds, or a list of seeds.")
    return listed


def plans_of(grids: Sequence[Grid]) -> list[Plan]:
    """The cells of all grids, all cells of a seed before the next seed; a cell that two grids name runs once."""
    plans: dict[str, Plan] = {}
    for plan in (plan for grid in grids for plan in grid.plans()):
        twin = plans.setdefault(plan.name, plan)
        if twin is not plan and twin.digest != plan.digest:
            raise MaskMatchError(f"Two cells are called {plan.name!r} but differ; give their variants other names.")
    order = {seed: place for place, seed in enumerate(dict.fromkeys(seed for grid in grids for seed in grid.seeds))}
    return sorted(plans.values(), key=lambda plan: order[plan.seed])


def run_grids(grids: Sequence[Grid], folder: str | Path | None, log: Callable[[str], Any]) -> list[Cell]:
    """All cells of grids: finished ones come from the folder, the others run."""
    store = CellStore(folder)
    cells: list[Cell] = []
    plans = deque(plans_of(grids))
    count = len(plans)
    while plans:
        plan = plans.popleft()  # not held any longer, because its labels may be many
        cell = store.find(plan.name, plan.digest)
        verb = "kept" if cell is not None else "ran"
        if cell is None:
            cell = run_plan(plan)
            store.save(plan.name, cell)
        figures = cell.figures
        cells.append(cell)
        log(
            f"{len(cells)}/{count} {verb} {plan.name}: {figures.metric} {figures.score:.3f}, "
            f"{figures.training_seconds:.0f} s of training"
        )
    return cells


def run_plan(plan: Plan) -> Cell:
    """Run a cell: train and evaluate."""
    try:
        matcher, watch = _trained(plan)
        texts, labels = list(plan.measured.texts), list(plan.measured.labels)
        memory = MemoryWatch()
        started = time.perf_counter()
        _ = matcher.pipeline  # encodes the labels
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
    adaptation = None if matcher.adaptation_ is None else asdict(matcher.adaptation_)
    seen = _accuracies(truth, matcher.predicted_ or [], plan.left_out)
    figures = replace(figures, adaptation=adaptation, seen_accuracy=seen[0], unseen_accuracy=seen[1])
    known = list(plan.data.labels)  # labels that the variant added follow only if they were predicted
    answers = Answers.of(plan.measured.numbers, known, truth, matcher.predicted_ or [])
    names = (plan.data.name, plan.variant.name, plan.regime.name)
    del matcher
    gc.collect()  # a trainer and its model refer to each other; the next cell's memory should not include them
    return Cell(*names, plan.seed, plan.digest, plan.settings, figures, answers, tuple(report.notes), versions())


def _accuracies(
    truth: Sequence[Any], predicted: Sequence[Any], left_out: set[Any]
) -> tuple[float | None, float | None]:
    """The accuracy on rows of labels that training saw, and of those that were left out; None if none were."""
    if not left_out:
        return None, None
    groups: dict[bool, list[bool]] = {False: [], True: []}
    for true, guess in zip(truth, predicted, strict=True):
        groups[true in left_out].append(true == guess)
    seen, unseen = (sum(right) / len(right) if right else None for right in (groups[False], groups[True]))
    return seen, unseen


def _with_labels(rows: int, texts_per_second: float | None, label_seconds: float) -> float | None:
    """The speed of prediction, including the time to encode the labels."""
    return None if not texts_per_second else rows / (rows / texts_per_second + label_seconds)


def _trained(plan: Plan) -> tuple[MaskMatcher | BaselineClassifier, TrainingWatch]:
    from transformers import set_seed

    set_seed(plan.seed)  # also without training: a head without pretrained weights is drawn at random
    if plan.variant.baseline is not None:
        baseline, watch = BaselineClassifier(plan), TrainingWatch()
        baseline.fit(list(plan.train.texts), list(plan.train.labels))
        watch.finish()
        return baseline, watch
    left_out = [id_ for id_ in plan.labels if id_ in plan.left_out]
    matcher = MaskMatcher.from_pretrained(
        plan.model, labels=plan.labels.removed(left_out), multi_label=plan.data.multi_label, **plan.options
    )
    watch, how = TrainingWatch(), plan.variant.unlabelled
    if plan.regime.trains:
        dev = None if plan.dev is None else (list(plan.dev.texts), list(plan.dev.labels))
        rows = list(plan.train.texts), list(plan.train.labels)
        more: dict[str, Any] = {} if how is None else {"unlabeled": plan.unlabelled, "self_training": how.self_training}
        matcher.fit(*rows, dev=dev, training=plan.training, callbacks=[watch], **more)
        if left_out:
            matcher.add_labels([plan.labels.label(id_) for id_ in left_out])
    elif how is not None:
        matcher.adapt(plan.unlabelled, force=how.force, self_training=how.self_training, seed=plan.seed)
    return matcher, watch


def model_digest(model: str | Path | None) -> str:
    """A digest of the files of an encoder, so that cells depend on its weights and not on its name."""
    folder, _ = find_model(model)
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".json", ".safetensors", ".txt", ".model"))
    return digest(*(part for path in files for part in (str(path.relative_to(folder)).encode(), path.read_bytes())))
