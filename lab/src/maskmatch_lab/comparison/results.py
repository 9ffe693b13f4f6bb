"""The results of a comparison: a table over seeds, paired tests, and files that record how they were made."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.files import write_text
from maskmatch_lab.comparison.provenance import machine, versions
from maskmatch_lab.comparison.statistics import PairedDifference, Spread, paired_bootstrap, pooled_bootstrap, spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from maskmatch_lab.comparison.cells import Cell

FIGURES = (
    "score",
    "accuracy",
    "macro_f1",
    "expected_calibration_error",
    "training_seconds",
    "texts_per_second",
    "trained_parameters",
    "peak_megabytes",
    "label_seconds",
    "prediction_megabytes",
)
"""The figures of the table, as means over seeds."""


@dataclass(frozen=True)
class TableRow:
    """A method on a dataset in a regime, over all seeds."""

    dataset: str
    regime: str
    method: str
    seeds: tuple[int, ...]
    rows: int
    training_texts: int
    metric: str
    figures: Mapping[str, Spread | None]

    def to_json(self) -> dict[str, Any]:
        """The row as plain JSON."""
        figures = {name: None if value is None else asdict(value) for name, value in self.figures.items()}
        return {**{name: getattr(self, name) for name in self.__dataclass_fields__ if name != "figures"}, **figures}


@dataclass(frozen=True)
class Significance:
    """The reference method against another one, on the same test rows."""

    dataset: str
    regime: str
    reference: str
    method: str
    result: PairedDifference
    by_seed: tuple[float, ...]
    """The difference in accuracy with each seed: the test does not cover other training rows."""

    @property
    def same_with_every_seed(self) -> bool:
        """Whether the difference has the same sign with every seed."""
        return all(each * self.result.difference > 0 for each in self.by_seed)

    def to_json(self) -> dict[str, Any]:
        """The row as plain JSON."""
        data = asdict(self)
        return {**{name: value for name, value in data.items() if name != "result"}, **data["result"]}


@dataclass(frozen=True)
class Comparison:
    """The results of a comparison. Print them, or `save` them.

    Attributes:
        cells: All cells, in the order in which they ran.
        reference: The method that the others are compared with.
        notes: Notes that a reader needs to judge the results, in sentences.
        about: Model, datasets, seeds, settings: how the cells were made.
        command: The command that made them.
    """

    cells: Sequence[Cell]
    reference: str
    notes: Sequence[str] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    command: str | None = None
    resamples: int = 10_000

    def groups(self) -> dict[tuple[str, str, str], list[Cell]]:
        """The cells of each dataset, regime and method, over seeds."""
        groups: dict[tuple[str, str, str], list[Cell]] = {}
        places: list[dict[str, int]] = []
        for name in ("dataset", "regime", "method"):
            named = [str(each["name"]) for each in self.about.get(f"{name}s", ())] if name != "regime" else []
            values = dict.fromkeys([*named, *(getattr(cell, name) for cell in self.cells)])
            places.append({value: place for place, value in enumerate(values)})
        for cell in self.cells:
            groups.setdefault((cell.dataset, cell.regime, cell.method), []).append(cell)
        return dict(
            sorted(groups.items(), key=lambda item: [place[each] for place, each in zip(places, item[0], strict=True)])
        )

    @property
    def table(self) -> list[TableRow]:
        """Mean and standard deviation over seeds of each dataset, regime and method."""
        return [
            TableRow(
                dataset=dataset,
                regime=regime,
                method=method,
                seeds=tuple(cell.seed for cell in cells),
                rows=cells[0].figures.rows,
                training_texts=cells[0].figures.training_texts,
                metric=cells[0].figures.metric,
                figures={name: _spread(getattr(cell.figures, name) for cell in cells) for name in FIGURES},
            )
            for (dataset, regime, method), cells in self.groups().items()
        ]

    @property
    def significance(self) -> list[Significance]:
        """The reference against every other method, wherever both ran."""
        groups = self.groups()
        rows = []
        for (dataset, regime, method), cells in groups.items():
            own = groups.get((dataset, regime, self.reference))
            if method == self.reference or own is None:
                continue
            result = paired_bootstrap(*_paired(own, cells), resamples=self.resamples)
            rows.append(Significance(dataset, regime, self.reference, method, result, _by_seed(own, cells)))
        return rows

    def difference(
        self, first: str, second: str, regime: str, datasets: Sequence[str] | None = None
    ) -> PairedDifference | None:
        """The accuracy of one method minus that of another in a regime, as a mean over datasets.

        Args:
            first: The one method.
            second: The other one.
            regime: The name of the regime.
            datasets: The datasets; None: all. Those on which one of the two did not run are left out.

        Returns:
            None if no dataset is left.
        """
        groups = self.groups()
        wanted = dict.fromkeys(dataset for dataset, _, _ in groups) if datasets is None else datasets
        pairs = [
            _paired(groups[dataset, regime, first], groups[dataset, regime, second])
            for dataset in wanted
            if (dataset, regime, first) in groups and (dataset, regime, second) in groups
        ]
        return pooled_bootstrap(pairs, resamples=self.resamples) if pairs else None

    def difference_by_seed(
        self, first: str, second: str, regime: str, datasets: Sequence[str] | None = None
    ) -> tuple[float, ...]:
        """The same difference for each seed; a result that does not depend on the seed counts for all seeds.

        Args:
            first: The one method.
            second: The other one.
            regime: The name of the regime.
            datasets: The datasets; None: all on which both ran.
        """
        groups = self.groups()
        wanted = dict.fromkeys(dataset for dataset, _, _ in groups) if datasets is None else datasets
        pairs = [
            [_by_its_seed(groups[dataset, regime, name]) for name in (first, second)]
            for dataset in wanted
            if (dataset, regime, first) in groups and (dataset, regime, second) in groups
        ]
        named = sorted({seed for pair in pairs for each in pair for seed in each if seed is not None})
        seeds: list[int | None] = [*named] or [None]
        known = [
            [_at(pair[0], seed) - _at(pair[1], seed) for pair in pairs]
            for seed in seeds
            if all(None in each or seed in each for pair in pairs for each in pair)
        ]
        return tuple(float(np.mean(each)) for each in known)

    def accuracy(self, method: str, regime: str, datasets: Sequence[str] | None = None) -> float | None:
        """The accuracy of a method in a regime, as a mean over seeds and then over datasets; None if it did not run."""
        means = [
            float(np.mean([cell.figures.accuracy for cell in cells]))
            for (dataset, own, name), cells in self.groups().items()
            if (own, name) == (regime, method) and (datasets is None or dataset in datasets)
        ]
        return float(np.mean(means)) if means else None

    def __str__(self) -> str:
        from maskmatch_lab.comparison.text import comparison_text

        return comparison_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON, without the predictions, which stay with the cells."""
        return {
            "command": self.command,
            "date": datetime.now(timezone.utc).date().isoformat(),
            "versions": versions(),
            "machine": machine(),
            **self.about,
            "reference": self.reference,
            "notes": list(self.notes),
            "table": [row.to_json() for row in self.table],
            "significance": [row.to_json() for row in self.significance],
            "cells": [cell.to_json(answers=False) for cell in self.cells],
        }

    def to_html(self) -> str:
        """The comparison as one web page without scripts or other files."""
        from maskmatch_lab.comparison.page import comparison_page

        return comparison_page(self)

    def save(self, folder: str | Path) -> Path:
        """Write ``results.json`` and ``report.html`` into a folder, each atomically."""
        home = Path(folder).expanduser()
        write_text(home / "results.json", json.dumps(self.to_dict(), ensure_ascii=False, indent=2, default=str) + "\n")
        write_text(home / "report.html", self.to_html())
        return home


def _by_seed(first: Sequence[Cell], second: Sequence[Cell]) -> tuple[float, ...]:
    """The differences in accuracy of cells with the same seed."""
    others = {cell.seed: cell.figures.accuracy for cell in second}
    return tuple(cell.figures.accuracy - others[cell.seed] for cell in first if cell.seed in others)


def _by_its_seed(cells: Sequence[Cell]) -> dict[int | None, float]:
    """The accuracies of cells by seed; the seed is None if one cell counts for all seeds."""
    if _stands_for_all(cells):
        return {None: cells[0].figures.accuracy}
    return {cell.seed: cell.figures.accuracy for cell in cells}


def _stands_for_all(cells: Sequence[Cell]) -> bool:
    """Whether a single cell counts for all seeds, because nothing was trained."""
    return len(cells) == 1 and not cells[0].figures.training_texts


def _at(by_seed: Mapping[int | None, float], seed: int | None) -> float:
    """The accuracy with a seed."""
    return by_seed[None] if None in by_seed else by_seed[seed]


def _paired(first: Sequence[Cell], second: Sequence[Cell]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Whether the predictions of two methods are correct, (seeds, rows) each, with the seeds that both have."""
    if not _stands_for_all(first) and not _stands_for_all(second):
        shared = {cell.seed for cell in first} & {cell.seed for cell in second}
        if shared:
            first, second = ([cell for cell in cells if cell.seed in shared] for cells in (first, second))
    return _right(first), _right(second)


def _spread(values: Iterable[float | None]) -> Spread | None:
    known = [float(value) for value in values if value is not None]
    return spread(known) if known else None


def _right(cells: Sequence[Cell]) -> np.ndarray[Any, Any]:
    """Whether each prediction is correct, for each seed: (seeds, rows)."""
    return np.stack([cell.answers.right for cell in cells])
