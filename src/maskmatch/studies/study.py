"""A study as a value: its question, what is run for it, and how the answer is told."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from maskmatch.comparison import Comparison, Regime, Splits, Variant
from maskmatch.comparison.runner import hangs_on_seed
from maskmatch.errors import MaskMatchError
from maskmatch.tasks import Task, find_task

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
        variants: What is compared; a function of the task where that decides on prompts.
        regimes: How much is learned from.
        quick: Which variants a quick run takes, by name; None: all; none at all: it leaves the part out.
        seeds: How many seeds at most, where that is fewer than the study's: for what costs much and is asked beside.
    """

    datasets: Mapping[str, str]
    variants: Variants
    regimes: tuple[str, ...]
    quick: tuple[str, ...] | None = None
    seeds: int | None = None

    def variants_for(self, task: str | Task) -> list[Variant]:
        """What is compared on a dataset of this task."""
        made = self.variants(find_task(task)) if callable(self.variants) else self.variants
        return list(made)

    def cell_names(self, seeds: int) -> set[tuple[str, str, str, int]]:
        """What its cells with so many seeds are called: dataset, regime, variant, and the number of the seed."""
        regimes = [Regime.of(regime) for regime in self.regimes]
        seeds = min(seeds, self.seeds or seeds)
        return {
            (dataset, regime.name, variant.name, seed)
            for dataset, task in self.datasets.items()
            for variant in self.variants_for(task)
            for regime in regimes
            for seed in range(seeds if hangs_on_seed(variant, regime) else 1)
        }


@dataclass(frozen=True, eq=False)
class Found:
    """What a study's answer is read off.

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
        """The regimes that there are cells of, those with the fewest training rows first."""
        return sorted(dict.fromkeys(cell.regime for cell in self.comparison.cells), key=_training_rows)

    def methods(self, regime: str) -> list[str]:
        """The variants that there are cells of in a regime, in their order."""
        return list(dict.fromkeys(method for _, own, method in self.comparison.groups() if own == regime))


@dataclass(frozen=True)
class Conclusion:
    """The answer to a study's question.

    Attributes:
        sentences: What was found, in words; what cannot be told is said.
        figures: Figures that it stands on and that are in no table, for ``results.json``.
        pictures: What the page shows, as SVG.
        answer: Those of the sentences that answer the question, for who reads no more than a few.
    """

    sentences: Sequence[str]
    figures: Mapping[str, Any] = field(default_factory=dict)
    pictures: Sequence[str] = ()
    answer: Sequence[str] = ()


@dataclass(frozen=True)
class Study:
    """A question, and how it is answered.

    Args:
        name: What the command line calls it.
        question: What is asked, in a sentence.
        parts: What is run for it.
        reference: The variant that the tables test the others against.
        conclude: Says the answer from what was found; it has to hold whatever the cells say.
        cut: What was left out to keep it short, and why, in sentences.
        minutes: About how long it takes on two cores.
        seeds: How many seeds.
        test_rows: On how many test rows is measured, a fixed draw; None: all.
    """

    name: str
    question: str
    parts: tuple[Part, ...]
    reference: str
    conclude: Callable[[Found], Conclusion]
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
        """How many cells it runs; what two parts name is run once."""
        return len(set().union(*(part.cell_names(self.seeds) for part in self.parts)))

    def on(self, datasets: Mapping[str, str]) -> Study:
        """The same study on some of its datasets; others than its own go into every part.

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
        """A tiny version, to look at the form: one dataset a part, one seed, few rows, hardly any training."""
        parts = tuple(_quick_part(part) for part in self.parts if part.quick != ())
        return replace(self, parts=parts, seeds=1, test_rows=QUICK_ROWS)


def _training_rows(regime: str) -> float:
    """Where a regime stands among others, by its name.

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
    """The settings of a variant for few tokens, which every encoder can read."""
    shortened = {"max_length": QUICK_TOKENS} if "max_length" in variant.matcher else {}
    return {**variant.matcher, **shortened}
