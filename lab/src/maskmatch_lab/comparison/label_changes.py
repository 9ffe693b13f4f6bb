"""Changes of a dataset's labels: other names, phrases, or labels that no text has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from maskmatch.config.tasks import Task
    from maskmatch.labels import LabelSet
    from maskmatch_lab.comparison.splits import Rows


@dataclass(frozen=True, eq=False)
class LabelContext:
    """The data that a change of labels may use. Test rows are not among them.

    Attributes:
        labels: The labels of the dataset.
        dataset: Its name.
        task: Its task.
        train: The training rows of the cell, drawn by its regime and seed; empty zero-shot.
        pool: All training rows of the dataset, for changes that use texts without their labels.
        seed: The cell's seed.
        model: The cell's encoder; None for the default.
    """

    labels: LabelSet
    dataset: str
    task: Task
    train: Rows
    pool: Rows
    seed: int
    model: str | Path | None


@dataclass(frozen=True)
class LabelChange:
    """A change of the labels of a dataset, which makes the labels of a variant.

    Ids stay the same, so that rows keep their labels: only names, descriptions and phrases change. Labels may be added
    that no row has.

    Args:
        name: Its name in the settings of a cell. Cells also depend on the labels that it makes.
        make: Makes the labels.
        drawn: Whether the labels depend on the seed; if so, zero-shot cells run with every seed too.
    """

    name: str
    make: Callable[[LabelContext], LabelSet]
    drawn: bool = False

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise MaskMatchError("A change of labels has no name; give it a name that describes it.")

    def __call__(self, context: LabelContext) -> LabelSet:
        """The labels of the variant; raise if a label is missing, because rows have it."""
        made = self.make(context)
        lost = next((id_ for id_ in context.labels if id_ not in made), None)
        if lost is not None:
            raise MaskMatchError(f"The labels of {self.name!r} lack {lost!r}, which rows of {context.dataset} have.")
        return made
