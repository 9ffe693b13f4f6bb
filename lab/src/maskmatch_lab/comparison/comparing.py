"""``compare``: run methods on datasets in regimes with seeds, all under the same conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskmatch.config.training import TrainingConfig
from maskmatch.errors import MaskMatchError
from maskmatch_lab.comparison.regimes import Regime, regimes_of
from maskmatch_lab.comparison.results import Comparison
from maskmatch_lab.comparison.runner import Grid, can_predict, depends_on_seed, run_grids, seeds_of
from maskmatch_lab.comparison.splits import datasets_of
from maskmatch_lab.comparison.statistics import RESAMPLES
from maskmatch_lab.comparison.tuning import Tuning
from maskmatch_lab.comparison.variants import Variant, variants_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from maskmatch.config.methods import Method
    from maskmatch_lab.comparison.cells import Cell
    from maskmatch_lab.comparison.splits import Splits

REFERENCE = "mask-matching"


def compare(
    datasets: Splits | Sequence[Splits],
    methods: Sequence[str | Method | Variant],
    regimes: Sequence[str | Regime] = ("full",),
    seeds: int | Sequence[int] = 3,
    *,
    model: str | Path | None = None,
    folder: str | Path | None = None,
    settings: Tuning | str | Path | None = None,
    reference: str | None = None,
    use_dev: bool = False,
    test_rows: int | None = None,
    resamples: int = RESAMPLES,
    log: Callable[[str], Any] | None = None,
    command: str | None = None,
) -> Comparison:
    """Train and evaluate every method on every dataset in every regime with every seed.

    Args:
        datasets: The datasets.
        methods: Names of methods, or Variants with settings of their own.
        regimes: How many training rows there are: ``"zero-shot"``, ``"5 shots"``, ``"10%"``, ``"full"``.
        seeds: The seeds, or their number, from 0 on. The drawn training rows and training depend on the seed.
        model: The encoder of all methods; None for the embedded default.
        folder: Where to save each finished cell, and in the end the results and the report. A run that was killed
            resumes from there; a cell whose settings or data have changed runs again. None: nothing is saved.
        settings: The learning rate and the number of epochs of each method, from :func:`tune` or its file. None: the
            defaults for all.
        reference: The method to compare the others with. None: mask-matching if present, or else the first.
        use_dev: Keep the best checkpoint on the dev rows of each training run.
        test_rows: Evaluate on this many test rows, the same draw everywhere. None: all.
        resamples: The number of bootstrap samples of the paired tests.
        log: Called with a line about each cell.
        command: The command to name in the results.
    """
    variants = variants_of(methods)
    tuning = Tuning.load(settings) if settings is not None and not isinstance(settings, Tuning) else settings
    if tuning is not None:
        variants = tuning.applied(variants)
    grid = Grid(
        datasets=datasets_of(datasets),
        variants=variants,
        regimes=regimes_of(regimes),
        seeds=seeds_of(seeds),
        model=model,
        use_dev=use_dev,
        measured_rows=test_rows,
    )
    comparison = compare_grids(
        [grid], folder, reference=reference, tuning=tuning, resamples=resamples, log=log, command=command
    )
    if folder is not None:
        comparison.save(folder)
    return comparison


def compare_grids(
    grids: Sequence[Grid],
    folder: str | Path | None = None,
    *,
    reference: str | None = None,
    tuning: Tuning | None = None,
    resamples: int = RESAMPLES,
    log: Callable[[str], Any] | None = None,
    command: str | None = None,
) -> Comparison:
    """Run all cells of grids as one comparison; only the cells are saved.

    Args:
        grids: The grids. A cell that several of them name runs once.
        folder: Where cells are saved.
        reference: The method to compare the others with.
        tuning: How the variants were tuned.
        resamples: The number of bootstrap samples of the paired tests.
        log: Called with a line about each cell.
        command: The command to name in the results.
    """
    chosen = _reference(reference, [variant for grid in grids for variant in grid.variants])
    for grid in grids:
        _check_grid(grid)
    cells = run_grids(grids, folder, log or _silent)
    return Comparison(
        cells=cells,
        reference=chosen,
        notes=notes_of(grids, cells, tuning),
        about=_about(grids, tuning),
        command=command,
        resamples=resamples,
    )


def _reference(name: str | None, variants: Sequence[Variant]) -> str:
    names = list(dict.fromkeys(variant.name for variant in variants))
    if name is None:
        return REFERENCE if REFERENCE in names else names[0]
    if name not in names:
        raise MaskMatchError(f"The reference {name!r} is not among the methods; choose one of {', '.join(names)}.")
    return name


def _check_grid(grid: Grid) -> None:
    """Raise before anything runs if no cell can run."""
    if not any(can_predict(variant, regime) for variant in grid.variants for regime in grid.regimes):
        raise MaskMatchError(
            "None of the methods can predict without training, because each learns a vector per label; add a regime "
            "with training rows, or a method that reads label names, such as mask-matching."
        )


def notes_of(grids: Sequence[Grid], cells: Sequence[Cell], tuning: Tuning | None) -> list[str]:
    """Notes that a reader needs to judge the results."""
    notes = []
    pairs = [(variant, regime) for grid in grids for variant in grid.variants for regime in grid.regimes]
    left_out = list(dict.fromkeys(variant.name for variant, regime in pairs if not can_predict(variant, regime)))
    if left_out:
        verb = "learns" if len(left_out) == 1 else "learn"
        notes.append(
            f"{' and '.join(left_out)} {verb} a vector per label and cannot predict zero-shot: left out there."
        )
    seeds = len({seed for grid in grids for seed in grid.seeds})
    drawn = list(dict.fromkeys(v.name for v, regime in pairs if not regime.trains and depends_on_seed(v, regime)))
    if seeds > 1 and any(not depends_on_seed(variant, regime) for variant, regime in pairs):
        but = f", except {', '.join(drawn)}, whose labels depend on the seed" if drawn else ""
        notes.append(f"Zero-shot results do not depend on the seed, so those cells ran once{but}.")
    if seeds < 3:
        few = "A single seed says" if seeds == 1 else "Two seeds say"
        notes.append(f"{few} little about the spread; use at least 3 to report results.")
    notes += dict.fromkeys(note for grid in grids for note in _rows_note(grid))
    if tuning is None:
        notes += _untuned_note([variant for variant, regime in pairs if regime.trains])
    elif any(str(tuning.model) != str(grid.model) for grid in grids):
        notes.append(f"The settings were tuned with another encoder: {tuning.model or 'the default'}.")
    return [*notes, *([] if tuning is None else tuning.notes), *_common_notes(cells)]


def _untuned_note(trained: Sequence[Variant]) -> list[str]:
    """A note that settings were not tuned, if anything was trained."""
    if not trained:
        return []
    usual = TrainingConfig()
    sets = any(
        variant.epoch_factor != 1 or any(getattr(usual, name) != value for name, value in variant.training.items())
        for variant in trained
    )
    own = ", except where a variant has settings of its own" if sets else ""
    return [f"No method was tuned: all train with the default settings, which were chosen for matching methods{own}."]


def _rows_note(grid: Grid) -> list[str]:
    """A note on the number of evaluated rows, if not all were."""
    if grid.measured_rows is None:
        return []
    smaller = [data for data in grid.datasets if len(data.measured(grid.split)) > grid.measured_rows]
    named = ", ".join(f"{data.name} ({len(data.measured(grid.split)):,})" for data in smaller)
    return [f"Evaluated on a fixed draw of {grid.measured_rows:,} {grid.split} rows of {named}."] if smaller else []


def _common_notes(cells: Sequence[Cell]) -> list[str]:
    """Notes that the evaluations of all cells share, or all cells of a method or of a dataset."""
    shared = []
    for note in dict.fromkeys(note for cell in cells for note in cell.notes):
        for part in ("method", "dataset"):
            groups: dict[str, bool] = {}
            for cell in cells:
                groups[getattr(cell, part)] = groups.get(getattr(cell, part), True) and note in cell.notes
            names = [name for name, noted in groups.items() if noted]
            if names:
                shared.append(note if len(names) == len(groups) else f"{', '.join(names)}: {note}")
                break
    return shared


def _about(grids: Sequence[Grid], tuning: Tuning | None) -> dict[str, Any]:
    datasets = {data.name: (data, grid) for grid in grids for data in grid.datasets}
    methods = {variant.name: variant.to_json() for grid in grids for variant in grid.variants}
    return {
        "model": None if grids[0].model is None else str(grids[0].model),
        "datasets": [
            {
                "name": data.name,
                "task": data.task.name,
                "labels": len(data.labels),
                "train": len(data.train),
                "dev": None if data.dev is None else len(data.dev),
                "test": len(data.test),
                "measured": min(len(data.test), grid.measured_rows or len(data.test)),
            }
            for data, grid in datasets.values()
        ],
        "methods": list(methods.values()),
        "regimes": list(dict.fromkeys(regime.name for grid in grids for regime in grid.regimes)),
        "seeds": list(dict.fromkeys(seed for grid in grids for seed in grid.seeds)),
        "best_weights_by_dev": any(grid.use_dev for grid in grids),
        "tuning": None if tuning is None else tuning.to_json(),
    }


def _silent(_: str) -> None:
    pass
