"""Parity: how much an export differs from torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.labels import LabelSet
    from maskmatch.prediction.pipeline import Pipeline

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
"""The default texts to measure parity on: short and long ones, of several kinds."""

MAX_NAMES = 200
"""How many label names are used besides."""

CLOSE = 0.99
"""The mean cosine of vectors, and the share of texts with the same label, below which an export gets a warning."""

EQUAL = 1e-5
"""Probabilities that differ by less are equal: of two labels that are equally good, either may come first."""


@dataclass(frozen=True)
class Parity:
    """How much an export differs from torch on some texts.

    Attributes:
        texts: The number of texts.
        texts_from: Where the texts come from.
        largest_difference: The largest difference of a probability.
        mean_difference: The mean difference of all probabilities.
        mean_cosine: The mean cosine of the input vectors.
        same_label: The share of texts with the same predicted label.
    """

    texts: int
    texts_from: str
    largest_difference: float
    mean_difference: float
    mean_cosine: float
    same_label: float

    @property
    def is_close(self) -> bool:
        """Whether the export can replace the original."""
        return self.mean_cosine >= CLOSE and self.same_label >= CLOSE

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON."""
        return asdict(self)

    def __str__(self) -> str:
        text = (
            f"Parity with torch on {self.texts} texts ({self.texts_from}): mean cosine of vectors "
            f"{self.mean_cosine:.5f}, probabilities differ by at most {self.largest_difference:.2g} and by "
            f"{self.mean_difference:.2g} on average, {self.same_label:.1%} of the predicted labels are the same."
        )
        if self.is_close:
            return text
        return f"{text} That is a large difference: run maskmatch evaluate on the export before you use it."


def measure_parity(first: Pipeline, second: Pipeline, texts: Sequence[Any], texts_from: str) -> Parity:
    """Compare two pipelines of the same classifier on some texts."""
    prompts = first.tokenize(texts)
    largest, apart, cosines, same = [0.0], [], [], []
    # Both read the texts in the same batches. Only one batch at a time is compared with all labels.
    for (rows, one, own), (others, other, theirs) in zip(first.scored(prompts), second.scored(prompts), strict=True):
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
    step = -(-len(labels) // MAX_NAMES)  # all of them, or so many from the first to the last
    texts = [*SENTENCES, *(label.name for label in labels.labels[::step])]
    fields = config.fields
    if len(fields) == 1:
        return list(texts)
    # The other fields repeat the first, or a part of it, or its neighbour in the list: pairs that say the same, nearly
    # the same, or something else. If all were clear cases, every export would give the same answers.
    return [{name: _beside(texts, number, place) for place, name in enumerate(fields)} for number in range(len(texts))]


def _beside(texts: Sequence[str], number: int, place: int) -> str:
    """The content of another field beside the text of this number."""
    text = texts[number]
    if place == 0 or number % 3 == 0:
        return text
    words = text.split()
    return " ".join(words[: -(-2 * len(words) // 3)]) if number % 3 == 1 else texts[(number + place) % len(texts)]
