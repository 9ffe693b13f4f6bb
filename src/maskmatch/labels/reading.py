"""What is read of a label, by the source of label vectors: a table of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from maskmatch.config.methods import LabelSource
    from maskmatch.labels.label import Label, LabelText


@dataclass(frozen=True)
class LabelReading:
    """A row of the table.

    Attributes:
        texts: The label texts from which a label's vectors are computed, one vector each.
        parts: All that is read for a label: its label texts, then its examples, if they can be read.
    """

    texts: Callable[[Label], tuple[LabelText, ...]]
    parts: Callable[[Label], tuple[LabelText, ...]]


def _words(label: Label) -> tuple[LabelText, ...]:
    """The words that stand for the label at a mask."""
    return label.verbalizer


def _name(label: Label) -> tuple[LabelText, ...]:
    """The name alone, whatever phrases there are: a matrix has one vector per label."""
    return (label.name,)


READINGS: dict[LabelSource, LabelReading] = {
    "prompt": LabelReading(lambda label: label.texts, lambda label: label.parts),
    "verbalizer": LabelReading(_words, _words),
    "matrix": LabelReading(_name, _name),
}
