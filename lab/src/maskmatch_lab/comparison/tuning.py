"""Tuning with the same budget for every method: the same grid of learning rates and epochs, evaluated on dev rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError
from maskmatch.files import write_text
from maskmatch_lab.comparison.regimes import regimes_of
from maskmatch_lab.comparison.runner import Grid, run_grids, seeds_of
from maskmatch_lab.comparison.splits import datasets_of
from maskmatch_lab.comparison.variants import Variant, variants_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from maskmatch.config.methods import Method
    from maskmatch_lab.comparison.cells import Cell
    from maskmatch_lab.comparison.regimes import Regime
    from maskmatch_lab.comparison.splits import Splits

LEARNING_RATES = (2e-5, 5e-5, 1e-4, 2e-4, 5e-4)
EPOCH_FACTORS = (1.0, 2.0)


@dataclass(frozen=True)
class Setting:
    """A learning rate, and a factor of the usual number of epochs."""

    learning_rate: float
    epoch_factor: float

    def __str__(self) -> str:
        return f"learning rate {self.learning_rate:g}, {self.epoch_factor:g} times the usual epochs"


@dataclass(frozen=True)
class Tuning:
    """The best setting of each method on dev, and all settings that were tried.

    Attributes:
        chosen: By method, the setting to use.
        tried: By method, the mean score on dev of each setting, in the order of the grid.
        budget: The grid, datasets, regimes and seeds; the same for every method.
        model: The encoder.
        notes: Notes that a reader needs to judge the settings, in sentences.
    """

    chosen: Mapping[str, Setting]
    tried: Mapping[str, Sequence[tuple[Setting, float]]]
    budget: Mapping[str, Any]
    model: str | None = None
    notes: Sequence[str] = ()

    def applied(self, variants: Sequence[Variant]) -> list[Variant]:
        """The variants with their settings; raise if one was not tuned, because it would be at a disadvantage."""
        for variant in variants:
            if variant.name not in self.chosen:
                raise MaskMatchError(
                    f"The settings have no entry for {variant.name!r}, only for {', '.join(self.chosen)}; tune all "
                    "methods with the same budget."
                )
        return [
            variant.tuned(self.chosen[variant.name].learning_rate, self.chosen[variant.name].epoch_factor)
            for variant in variants
        ]

    def to_json(self) -> dict[str, Any]:
        """Everything as plain JSON."""
        return {
            "model": self.model,
            "budget": dict(self.budget),
            "settings": {name: vars(setting) for name, setting in self.chosen.items()},
            "tried": {
                name: [{**vars(setting), "score": round(score, 4)} for setting, score in rows]
                for name, rows in self.tried.items()
            },
            "notes": list(self.notes),
        }

    def save(self, path: str | Path) -> Path:
        """Write the file for ``compare --settings``."""
        file = Path(path).expanduser()
        write_text(file, json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n")
        return file

    @classmethod
    def load(cls, path: str | Path) -> Tuning:
        """Read a file that :meth:`save` wrote."""
        try:
            data = json.loads(Path(path).expanduser().read_text(encoding="utf-8"))
            chosen = {name: Setting(**setting) for name, setting in data["settings"].items()}
            tried = {
                name: [(Setting(row["learning_rate"], row["epoch_factor"]), row["score"]) for row in rows]
                for name, rows in data.get("tried", {}).items()
            }
            return cls(chosen, tried, data.get("budget", {}), data.get("model"), data.get("notes", ()))
        except OSError as error:
            raise MaskMatchError(f"The settings {path} cannot be read: {error.strerror}.") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MaskMatchError(f"{path} has no settings; give a file that --tune wrote.") from error

    def __str__(self) -> str:
        budget = self.budget
        settings = len(budget["learning_rates"]) * len(budget["epoch_factors"])
        lines = [
            f"The same budget for every method: {settings} settings, each "
            f"on {', '.join(budget['datasets'])} ({', '.join(budget['regimes'])}; seeds "
            f"{', '.join(map(str, budget['seeds']))}), by the mean score on dev."
        ]
        for name, setting in self.chosen.items():
            score = max((score for _, score in self.tried.get(name, ())), default=float("nan"))
            lines.append(f"{name}: {setting} (dev {score:.3f})")
        return "\n".join([*lines, *(f"* {note}" for note in self.notes)])


def tune(
    datasets: Sequence[Splits],
    methods: Sequence[str | Method | Variant],
    regimes: Sequence[str | Regime] = ("full",),
    seeds: int | Sequence[int] = 1,
    *,
    learning_rates: Sequence[float] = LEARNING_RATES,
    epoch_factors: Sequence[float] = EPOCH_FACTORS,
    model: str | Path | None = None,
    folder: str | Path | None = None,
    dev_rows: int | None = None,
    log: Callable[[str], Any] | None = None,
) -> Tuning:
    """Choose the learning rate and the number of epochs of each method on dev rows; test rows are not read.

    Every method tries the same grid on the same datasets, regimes and seeds. The setting with the best mean score is
    chosen; of equal ones, the one with fewer epochs and then the lower rate.

    Args:
        datasets: Datasets with dev rows.
        methods: Names of methods, or Variants.
        regimes: How many training rows there are; not zero-shot.
        seeds: The seeds, or their number.
        learning_rates: The rates to try.
        epoch_factors: The factors of the usual number of epochs to try.
        model: The encoder of all methods.
        folder: Where to save each finished cell, so that a killed run can resume.
        dev_rows: Evaluate on this many dev rows, the same draw everywhere. None: all.
        log: Called with a line about each cell.
    """
    variants, with_rows = variants_of(methods), regimes_of(regimes)
    if not all(regime.trains for regime in with_rows):
        raise MaskMatchError("Zero-shot has nothing to tune; give regimes with training rows.")
    settings = [
        Setting(float(rate), float(factor)) for factor in sorted(epoch_factors) for rate in sorted(learning_rates)
    ]
    if not settings:
        raise MaskMatchError("There is nothing to try; give at least one learning rate and one epoch factor.")
    grid = Grid(
        datasets=datasets_of(datasets),
        variants=list(_tried(variants, settings).values()),
        regimes=with_rows,
        seeds=seeds_of(seeds),
        model=model,
        split="dev",
        measured_rows=dev_rows,
    )
    cells = run_grids([grid], folder, log or (lambda _: None))
    tried = {
        variant.name: [(setting, _mean_score(cells, _cell_name(variant, setting))) for setting in settings]
        for variant in variants
    }
    chosen = {name: max(rows, key=lambda row: row[1])[0] for name, rows in tried.items()}
    budget = _budget(grid, learning_rates, epoch_factors)
    return Tuning(chosen, tried, budget, None if model is None else str(model), edge_notes(chosen, budget))


def _tried(variants: Sequence[Variant], settings: Sequence[Setting]) -> dict[str, Variant]:
    """Each variant with each setting, by the name of its cells."""
    pairs = {_cell_name(variant, setting): (variant, setting) for variant in variants for setting in settings}
    return {
        name: replace(variant.tuned(setting.learning_rate, setting.epoch_factor), name=name)
        for name, (variant, setting) in pairs.items()
    }


def _budget(grid: Grid, learning_rates: Sequence[float], epoch_factors: Sequence[float]) -> dict[str, Any]:
    """The budget of each method."""
    settings = len(learning_rates) * len(epoch_factors)
    return {
        "learning_rates": sorted(map(float, learning_rates)),
        "epoch_factors": sorted(map(float, epoch_factors)),
        "datasets": [data.name for data in grid.datasets],
        "regimes": [regime.name for regime in grid.regimes],
        "seeds": list(grid.seeds),
        "dev_rows": grid.measured_rows,
        "runs_a_method": settings * len(grid.datasets) * len(grid.regimes) * len(grid.seeds),
    }


def _cell_name(variant: Variant, setting: Setting) -> str:
    return f"{variant.name} ({setting.learning_rate:g}, {setting.epoch_factor:g})"


def _mean_score(cells: Sequence[Cell], name: str) -> float:
    """The mean over all datasets, regimes and seeds, each with the same weight."""
    scores = [cell.figures.score for cell in cells if cell.method == name]
    return sum(scores) / len(scores)


def edge_notes(chosen: Mapping[str, Setting], budget: Mapping[str, Any]) -> list[str]:
    """Notes on best settings at the edge of the grid: a better one may lie beyond it."""
    notes = []
    for what, axis, field_name in (
        ("learning rate", "learning_rates", "learning_rate"),
        ("number of epochs", "epoch_factors", "epoch_factor"),
    ):
        tried = budget[axis]
        for end, edge in (("lowest", tried[0]), ("highest", tried[-1])) if len(tried) > 1 else ():
            names = [name for name, setting in chosen.items() if getattr(setting, field_name) == edge]
            if names:
                at_edge = f"The best {what} of {', '.join(names)} is the {end} that was tried"
                notes.append(f"{at_edge}; a better one may lie beyond.")
    return notes
