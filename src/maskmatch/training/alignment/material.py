"""The training data of an alignment: distinct texts, names and label sets."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from maskmatch.config.tasks import find_task
from maskmatch.data import take_texts
from maskmatch.errors import MaskMatchError
from maskmatch.labels import LabelSet, readable
from maskmatch.prompts import field_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.config.alignment import AlignmentConfig
    from maskmatch.data import LabelledTexts
    from maskmatch.labels import LabelsLike

SINGLE_FIELD = ("text",)
MOST_PHRASES = 2000
LONGEST_PHRASE = 4
"""The maximum number of words of a phrase that is cut from a text."""


@dataclass(frozen=True)
class AlignmentMaterial:
    """The texts and names that an alignment learns from.

    Attributes:
        texts: Distinct texts without labels.
        names: Distinct label names, or phrases in place of them.
        label_sets: Label sets with texts; their names are readable.
    """

    texts: Sequence[str]
    names: Sequence[str]
    label_sets: Sequence[LabelledTexts] = ()

    @classmethod
    def collect(
        cls, texts: Any, labels: LabelsLike | None, label_sets: Sequence[LabelledTexts], config: AlignmentConfig
    ) -> AlignmentMaterial:
        """Check and collect the training data. Texts are sampled if there are more than the draws can use."""
        sets = [_checked_label_set(each) for each in label_sets]
        rng = random.Random(config.seed)
        distinct = list(dict.fromkeys(text for text in [*_as_strings(texts), *_set_texts(sets)] if text.strip()))
        if len(distinct) < 2:
            raise MaskMatchError("There are fewer than two different texts to learn from.")
        names = [] if labels is None else [text for label in LabelSet.of(labels).labels for text in label.texts]
        names = list(dict.fromkeys([*names, *_set_names(sets)])) or cut_phrases(distinct, rng)
        most = config.steps * config.draws * config.texts_a_draw
        return cls(rng.sample(distinct, min(len(distinct), most)), names, sets)

    @property
    def single_texts(self) -> list[str]:
        """All texts of one field and all names, also those of label sets: each needs a target vector."""
        return [*self.texts, *self.names, *_set_texts(self.label_sets), *_set_names(self.label_sets)]


def cut_phrases(texts: Sequence[str], rng: random.Random) -> list[str]:
    """Cut phrases of a few words from texts, to use them if there are no label names."""
    phrases = []
    for text in rng.sample(texts, min(len(texts), MOST_PHRASES)):
        words = text.split()
        count = rng.randint(1, LONGEST_PHRASE)
        start = rng.randrange(max(1, len(words) - count + 1))
        phrase = " ".join(words[start : start + count])
        phrases.append(phrase.strip(" .,;:!?\"'()") or phrase)
    return list(dict.fromkeys(phrases))


def _as_strings(texts: Any) -> list[str]:
    """Convert texts of any accepted form (list, data frame, dicts with one field) to strings."""
    if isinstance(texts, (list, tuple)) and not texts:
        return []
    rows = enumerate(take_texts(texts, SINGLE_FIELD))
    return [field_texts(text, SINGLE_FIELD, row)["text"].text for row, text in rows]


def _checked_label_set(label_set: LabelledTexts) -> LabelledTexts:
    """Return a label set with readable names; raise unless its texts have the fields of its task."""
    try:
        fields = find_task(label_set.task).fields
        for row, text in enumerate(text for texts in label_set.texts for text in texts):
            field_texts(text, fields, row)
    except MaskMatchError as error:
        raise MaskMatchError(f"The label set {label_set.name} cannot be used: {error}") from error
    return replace(label_set, names=tuple(tuple(map(readable, names)) for names in label_set.names))


def _set_texts(label_sets: Sequence[LabelledTexts]) -> list[str]:
    """Return the texts of label sets that have one field."""
    return [text for each in label_sets for texts in each.texts for text in texts if isinstance(text, str)]


def _set_names(label_sets: Sequence[LabelledTexts]) -> list[str]:
    return [name for each in label_sets for names in each.names for name in names]
