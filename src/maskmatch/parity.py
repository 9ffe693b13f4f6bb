"""How far two prediction paths of the same classifier lie apart."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.config import MatcherConfig
    from maskmatch.labels import LabelSet
    from maskmatch.prediction import Prediction

SENTENCES = (
    "Where is my money?",
    "The parcel arrived two days late, and the box was open.",
    "I would like to change the address of my order.",
    "What a wonderful evening, we laughed until midnight!",
    "The committee will vote on the new law next week, although several members have asked for more time to read it.",
    "No.",
    "Can you tell me how many people live in the capital of Australia?",
    "He scored twice in the second half and the team won 3:1.",
    "The screen stays black after the update; I have already restarted it three times and nothing helped.",
    "Thanks a lot.",
    "Researchers found that the drug lowered blood pressure in most patients, but they warn that the study was small.",
    "Please cancel my subscription at the end of the month.",
)
"""What parity is measured on if the user gives no texts: short and long ones, of several kinds."""

MOST_NAMES = 200
"""How many names of labels are read besides."""

CLOSE = 0.99
"""The mean cosine of vectors, and the share of texts with the same best label, below which an export is called far."""


EQUAL = 1e-5
"""Probabilities that lie no further apart are the same: of two labels that are equally good, either may come first."""


@dataclass(frozen=True)
class Parity:
    """How far an export is from torch on some texts.

    Attributes:
        texts: How many texts.
        texts_from: Which texts.
        largest_difference: Of any probability.
        mean_difference: Of all probabilities.
        mean_cosine: Of the input vectors.
        same_label: The share of texts whose best label is the same.
    """

    texts: int
    texts_from: str
    largest_difference: float
    mean_difference: float
    mean_cosine: float
    same_label: float

    @property
    def is_close(self) -> bool:
        """Whether the export can stand for the original."""
        return self.mean_cosine >= CLOSE and self.same_label >= CLOSE

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON."""
        return asdict(self)

    def __str__(self) -> str:
        text = (
            f"Parity with torch on {self.texts} texts ({self.texts_from}): mean cosine of vectors "
            f"{self.mean_cosine:.5f}, probabilities differ by {self.largest_difference:.2g} at most and "
            f"{self.mean_difference:.2g} on average, the best label is the same for {self.same_label:.1%}."
        )
        if self.is_close:
            return text
        return f"{text} That is far: measure the export with maskmatch evaluate before you use it."


def measure_parity(first: Prediction, second: Prediction, texts: Sequence[Any], texts_from: str) -> Parity:
    """Compare two prediction paths on some texts."""
    prompts = first.tokenize(texts)
    largest, apart, cosines, same = [0.0], [], [], []
    # Both read the texts in the same batches. Only one batch at a time is compared with all labels.
    for (rows, one, own), (others, other, theirs) in zip(first.read(prompts), second.read(prompts), strict=True):
        assert np.array_equal(rows, others)
        expected, found = own.probabilities(one), theirs.probabilities(other)  # (n, K)
        difference = np.abs(expected - found)
        largest.append(float(difference.max()))
        apart.append(difference.mean(axis=1))
        flat, exported = one.reshape(len(rows), -1), other.reshape(len(rows), -1)
        lengths = np.linalg.norm(flat, axis=1) * np.linalg.norm(exported, axis=1)
        cosines.append((flat * exported).sum(axis=1) / np.maximum(lengths, 1e-12))
        chosen = np.take_along_axis(expected, found.argmax(axis=1)[:, None], axis=1)[:, 0]
        same.append(chosen >= expected.max(axis=1) - EQUAL)
    return Parity(
        texts=len(prompts),
        texts_from=texts_from,
        largest_difference=max(largest),
        mean_difference=float(np.concatenate(apart).mean()),
        mean_cosine=float(np.concatenate(cosines).mean()),
        same_label=float(np.concatenate(same).mean()),
    )


def parity_texts(config: MatcherConfig, labels: LabelSet) -> list[Any]:
    """The built-in sentences and names of labels, each in every field that the prompt names."""
    step = -(-len(labels) // MOST_NAMES)  # all of them, or so many from the first to the last
    texts = [*SENTENCES, *(label.name for label in labels.labels[::step])]
    fields = config.fields
    if len(fields) == 1:
        return list(texts)
    # The other fields are alike, parts of the first, or its neighbours in the list: sides of a pair that say the same,
    # nearly the same, or something else. Were they all clear cases, every export would give the same answers.
    return [{name: _beside(texts, number, place) for place, name in enumerate(fields)} for number in range(len(texts))]


def _beside(texts: Sequence[str], number: int, place: int) -> str:
    """What stands in a field beside the text of this number."""
    text = texts[number]
    if place == 0 or number % 3 == 0:
        return text
    words = text.split()
    return " ".join(words[: -(-2 * len(words) // 3)]) if number % 3 == 1 else texts[(number + place) % len(texts)]
