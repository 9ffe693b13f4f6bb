"""A study as a value: its question, the cells to run, and how to draw the conclusion."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from maskmatch.config.tasks import Task, find_task
from maskmatch.errors import MaskMatchError
from maskmatch_lab.comparison import Comparison, Regime, Splits, Variant
from maskmatch_lab.comparison.runner import depends_on_seed

if TYPE_CHECKING:
    from pathlib import Path

QUICK_ROWS = 60
QUICK_TOKENS = 64
QUICK_TRAINING = {"epochs": 1, "batch_size": 64, "learning_rate": None}
Variants = Sequence[Variant] | Callable[[Task], Sequence[Variant]]


@dataclass(frozen=True)
class Part:
    """Some of the cells of a study: every variant on every dataset in every regime.

    Args:
        datasets: Names of datasets, each with its task.
        variants: The variants to compare, or a function of the task that makes them, if they depend on its prompts.
        regimes: How many training rows there are.
        quick: The names of the variants of a quick run; None: all; empty: a quick run leaves the part out.
        seeds: The largest number of seeds, for expensive side questions; None: as many as the study has.
    """

    datasets: Mapping[str, str]
    variants: Variants
    regimes: tuple[str, ...]
    quick: tuple[str, ...] | None = None
    seeds: int | None = None

    def variants_for(self, task: str | Task) -> list[Variant]:
        """The variants to compare on a dataset of this task."""
        made = self.variants(find_task(task)) if callable(self.variants) else self.variants
        return list(made)

    def cell_names(self, seeds: int) -> set[tuple[str, str, str, int]]:
        """Its cells with this many seeds: dataset, regime, variant, and the number of the seed."""
        regimes = [Regime.of(regime) for regime in self.regimes]
        seeds = min(seeds, self.seeds or seeds)
        return {
            (dataset, regime.name, variant.name, seed)
            for dataset, task in self.datasets.items()
            for variant in self.variants_for(task)
            for regime in regimes
            for seed in range(seeds if depends_on_seed(variant, regime) else 1)
        }


@dataclass(frozen=True, eq=False)
class Evidence:
    """The results that a study draws its conclusion from.

    Attributes:
        comparison: All cells, with tables and tests.
        datasets: The datasets by their names.
        model: The encoder; None for the default.
    """

    comparison: Comparison
    datasets: Mapping[str, Splits]
    model: str | Path | None

    @property
    def regimes(self) -> list[str]:
        """The regimes that have cells, those with the fewest training rows first."""
        return sorted(dict.fromkeys(cell.regime for cell in self.comparison.cells), key=_training_rows)

    @property
    def all_methods(self) -> list[str]:
        """All variants that have cells, in their order."""
        return list(dict.fromkeys(method for _, _, method in self.comparison.groups()))

    def methods(self, regime: str) -> list[str]:
        """The variants that have cells in a regime, in their order."""
        return list(dict.fromkeys(method for _, own, method in self.comparison.groups() if own == regime))


@dataclass(frozen=True)
class Conclusion:
    """The answer to a study's question.

    Attributes:
        sentences: All results in words, unclear ones included.
        figures: Figures behind the sentences that are in no table, for ``results.json``.
        pictures: The pictures of the page, as SVG.
        answer: The few sentences that answer the question.
    """

    sentences: Sequence[str]
    figures: Mapping[str, Any] = field(default_factory=dict)
    pictures: Sequence[str] = ()
    answer: Sequence[str] = ()


@dataclass(frozen=True)
class Study:
    """A question, and how it is answered.

    Args:
        name: Its name on the command line.
        question: The question, in a sentence.
        parts: The cells to run.
        reference: The variant that the tables compare the others with.
        conclude: Draws the conclusion from the cells, whatever they show.
        cut: What was left out to save time, and other limits of the study, in sentences.
        minutes: About how many minutes it takes on two cores.
        seeds: The number of seeds.
        test_rows: The number of test rows to evaluate on, a fixed draw; None: all.
    """

    name: str
    question: str
    parts: tuple[Part, ...]
    reference: str
    conclude: Callable[[Evidence], Conclusion]
    cut: tuple[str, ...] = ()
    minutes: int = 40
    seeds: int = 3
    test_rows: int | None = 1000

    def __post_init__(self) -> None:
        if not self.parts:
            raise MaskMatchError(f"The study {self.name!r} has no parts; give it something to run.")

    @property
    def datasets(self) -> dict[str, str]:
        """All datasets with their tasks."""
        return {name: task for part in self.parts for name, task in part.datasets.items()}

    @property
    def cells(self) -> int:
        """The number of its cells; a cell that two parts name runs once."""
        return len(set().union(*(part.cell_names(self.seeds) for part in self.parts)))

    def on(self, datasets: Mapping[str, str]) -> Study:
        """The same study on other datasets: its own ones stay in their parts, new ones go into every part.

        Args:
            datasets: Names of datasets, each with its task.
        """
        own = self.datasets
        parts = []
        for part in self.parts:
            taken = {
                name: part.datasets.get(name, task)
                for name, task in datasets.items()
                if name in part.datasets or name not in own
            }
            if taken:
                parts.append(replace(part, datasets=taken))
        if not parts:
            raise MaskMatchError(f"The study {self.name!r} is left without a dataset; name one of {', '.join(own)}.")
        return replace(self, parts=tuple(parts))

    def quick(self) -> Study:
        """A tiny version that shows the form of the output: one dataset per part, one seed, few rows."""
        parts = tuple(_quick_part(part) for part in self.parts if part.quick != ())
        return replace(self, parts=parts, seeds=1, test_rows=QUICK_ROWS)


def _training_rows(regime: str) -> float:
    """The sort key of a regime, by its name.

    >>> sorted(["full data", "20 shots", "10% of train", "zero-shot", "5 shots"], key=_training_rows)
    ['zero-shot', '5 shots', '20 shots', '10% of train', 'full data']
    """
    number = re.match(r"[\d.]+", regime)
    if number is None:
        return 0.0 if regime == "zero-shot" else float("inf")
    return float(number[0]) * (1e9 if "%" in regime else 1.0)


def _quick_part(part: Part) -> Part:
    name, task = next(iter(part.datasets.items()))
    regimes = tuple(dict.fromkeys("1 shot" if Regime.of(regime).trains else regime for regime in part.regimes))
    variants = [
        replace(variant, matcher=_short(variant), training={**variant.training, **QUICK_TRAINING}, epoch_factor=1.0)
        for variant in part.variants_for(task)
        if part.quick is None or variant.name in part.quick
    ]
    return Part({name: task}, tuple(variants), regimes)


def _short(variant: Variant) -> dict[str, Any]:
    """The settings of a variant with a maximum length that every encoder can read."""
    shortened = {"max_length": QUICK_TOKENS} if "max_length" in variant.matcher else {}
    return {**variant.matcher, **shortened}
