"""What an alignment learns from, draw by draw: prompted texts and names, and the vectors they should give."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from maskmatch.anchors import Anchors
from maskmatch.checkpoints import digest
from maskmatch.encoder import length_batches
from maskmatch.label_vectors import LabelLayout
from maskmatch.prompts import FieldText, Prompt, field_texts
from maskmatch.tasks import find_task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from maskmatch.alignment.config import AlignmentConfig
    from maskmatch.data.label_sets import LabelledTexts
    from maskmatch.prompts import PromptTokenizer, TokenizedPrompts
    from maskmatch.tasks import Task

PROMPTS = (
    "{text} It is about {mask}.",
    "{text} This is {mask}.",
    "{mask}: {text}",
    "{text} In short: {mask}.",
    '"{text}" means {mask}.',
    "{text} The category is {mask}.",
    "[ {mask} ] {text}",
    "{text} = {mask}",
    "{text} {mask}",
)
"""Input prompts for texts of any kind, beside those of the tasks."""

LABEL_PROMPTS = (
    "{label} is {mask}.",
    "{label} means {mask}.",
    "{mask}: {label}",
    "{label} {mask}",
    "It is about {label}, that is {mask}.",
    '"{label}" means {mask}.',
    "The label {label} stands for {mask}.",
)
"""Label prompts for names of any kind."""

SINGLE_FIELD = ("text",)
LABEL_FIELD = ("label",)
TEMPERATURE = 0.05
MOST_WEIGHT = 150
"""A label set is drawn as often as it has labels, up to so many, so that a huge one does not drown the others."""


class AlignmentData:
    """The draws of an alignment; what is drawn hangs on the seed and the number of the draw alone.

    First come draws that only pull mask states to the frozen encoder's vectors; then, if there are label sets,
    draws that match the texts of one of them with its names as well.

    Args:
        tokenizer: Fills prompts and makes token ids of them.
        texts: Texts without labels.
        names: Label names, or phrases that stand for them.
        sets: Label sets with texts, or none.
        vectors: The frozen encoder's vectors, of length 1, of texts with one field and of names.
        encoder_digest: What tells the encoder from others: its checkpoints are of no use to them.
        config: How to align.
        pad_id: The token id to pad with.
    """

    def __init__(
        self,
        tokenizer: PromptTokenizer,
        *,
        texts: Sequence[str],
        names: Sequence[str],
        sets: Sequence[LabelledTexts],
        vectors: Mapping[str, torch.Tensor],
        encoder_digest: str,
        config: AlignmentConfig,
        pad_id: int,
    ) -> None:
        self._tokenizer = tokenizer
        self._texts, self._names, self._sets = texts, names, sets
        self._vectors = vectors
        self._encoder_digest = encoder_digest
        self._config = config
        self._pad_id = pad_id
        self._weights = [min(len(each.names), MOST_WEIGHT) for each in sets]
        self._prompts: dict[tuple[str, tuple[str, ...]], Prompt] = {}

    def __len__(self) -> int:
        steps = self._config.steps + (self._config.matching_steps if self._sets else 0)
        return steps * self._config.draws

    @property
    def labels(self) -> int:
        """The number of names."""
        return len(self._names)

    @property
    def cut(self) -> int:
        """A text that is too long is cut for teacher and pupil alike."""
        return 0

    @property
    def tokens(self) -> NDArray[np.int64]:
        """A draw is a batch already, so nothing hangs on its tokens."""
        return np.zeros(len(self), dtype=np.int64)

    @property
    def memory(self) -> None:
        """Every draw reads all its labels."""

    def digest(self) -> str:
        """What tells these data from others."""
        parts = (self._encoder_digest, *self._texts, *self._names, *map(repr, self._sets), repr(self._config.recipe))
        return digest(*(part.encode() for part in parts))

    def batch(self, rows: Sequence[int]) -> dict[str, Any]:
        """The draw of this number."""
        (number,) = rows
        rng = random.Random(f"{self._config.seed}/{number}")
        if number < self._config.steps * self._config.draws:
            return self._unlabelled(rng)
        return self._matching(rng)

    def _unlabelled(self, rng: random.Random) -> dict[str, Any]:
        """Some texts and names, each in a prompt of its own, with their anchors."""
        texts = rng.sample(self._texts, min(self._config.texts_a_draw, len(self._texts)))
        names = rng.sample(self._names, min(self._config.names_a_draw, len(self._names)))
        pooled = self._in_prompts([(rng.choice(PROMPTS), SINGLE_FIELD, text) for text in texts])
        pooled = pooled.followed_by(
            self._in_prompts([(rng.choice(LABEL_PROMPTS), LABEL_FIELD, name) for name in names])
        )
        return {
            "groups": length_batches(pooled, self._pad_id),
            "texts": len(texts),
            "anchors": self._anchors([*texts, *names], weight=1.0),
        }

    def _matching(self, rng: random.Random) -> dict[str, Any]:
        """Some labels of one label set, with texts of theirs."""
        (labelled,) = rng.choices(self._sets, self._weights)
        task = find_task(labelled.task)
        count = rng.randint(2, min(len(labelled.names), self._config.names_a_draw))
        drawn = rng.sample(range(len(labelled.names)), count)
        names = [rng.choice(labelled.names[label]) for label in drawn]
        targets = [place % count for place in range(self._config.texts_a_draw)]
        texts = [rng.choice(labelled.texts[drawn[target]]) for target in targets]
        prompt, label_prompt = rng.choice(_prompts(task)), rng.choice(LABEL_PROMPTS)
        pooled = self._in_prompts(
            [*((prompt, task.fields, text) for text in texts), *((label_prompt, LABEL_FIELD, name) for name in names)]
        )
        return {
            "groups": length_batches(pooled, self._pad_id),
            "texts": len(texts),
            "targets": torch.tensor(targets),
            "layout": LabelLayout.of_texts([[name] for name in names]),
            "anchors": self._anchors([*texts, *names], weight=self._config.anchor),
        }

    def _in_prompts(self, rows: Sequence[tuple[str, tuple[str, ...], Any]]) -> TokenizedPrompts:
        """Rows of (template, fields, text) as token ids, in their order."""
        parts = []
        for template, fields, text in rows:
            if (template, fields) not in self._prompts:
                self._prompts[template, fields] = Prompt(template, fields)
            prompt = self._prompts[template, fields]
            row = {"label": FieldText(text)} if fields == LABEL_FIELD else field_texts(text, prompt.fields, 0)
            parts.append(self._tokenizer(prompt, [row]))
        return parts[0].followed_by(*parts[1:])

    def _anchors(self, rows: Sequence[Any], weight: float) -> Anchors:
        """The anchors of those rows that the frozen encoder has a vector for."""
        known = [(row, self._vectors[text]) for row, text in enumerate(rows) if isinstance(text, str)]
        return Anchors(
            torch.stack([vector for _, vector in known]),
            torch.tensor([row for row, _ in known]),
            weight=weight,
            contrast=weight,
            temperature=TEMPERATURE,
        )


def _prompts(task: Task) -> tuple[str, ...]:
    """The input prompts to draw from: a text of one field may stand in any."""
    own = (task.prompt, *task.paraphrases)
    return (*own, *PROMPTS) if task.fields == SINGLE_FIELD else own
