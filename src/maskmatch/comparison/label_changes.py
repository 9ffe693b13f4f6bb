"""What a variant makes of a dataset's labels: other names, phrases, or labels that no text has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from maskmatch.comparison.splits import Rows
    from maskmatch.labels import LabelSet
    from maskmatch.tasks import Task


@dataclass(frozen=True, eq=False)
class LabelContext:
    """What labels may be made from. Test rows are no part of it.

    Attributes:
        labels: The labels of the dataset.
        dataset: Its name.
        task: Its task.
        train: The training rows of the cell, as its regime and its seed drew them; none zero-shot.
        pool: All training rows of the dataset, for what may look at texts without their labels.
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
    """Makes the labels that a variant reads from those that a dataset has.

    Ids stay as they are, so that rows keep their labels: only what is read of a label changes. Labels may be
    added that no row has.

    Args:
        name: What it is called among the settings of a cell. What it makes tells cells apart besides.
        make: The labels to read.
        drawn: Whether the seed decides on them: it is then run with every seed also where nothing is trained.
    """

    name: str
    make: Callable[[LabelContext], LabelSet]
    drawn: bool = False

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise MaskMatchError("A change of labels has no name; give it one that says what it does.")

    def __call__(self, context: LabelContext) -> LabelSet:
        """The labels to read; a label that is lost would leave rows without one, and is refused."""
        made = self.make(context)
        lost = next((id_ for id_ in context.labels if id_ not in made), None)
        if lost is not None:
            raise MaskMatchError(f"The labels of {self.name!r} lack {lost!r}, which rows of {context.dataset} have.")
        return made
