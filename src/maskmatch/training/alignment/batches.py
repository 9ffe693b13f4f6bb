"""The batches of an alignment: random draws of prompted texts and names, with their target vectors."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from maskmatch.config.tasks import find_task
from maskmatch.labels.layout import LabelLayout
from maskmatch.model.anchors import Anchors
from maskmatch.model.encoder import length_batches
from maskmatch.prompts import FieldText, Prompt, field_texts
from maskmatch.training.alignment.material import SINGLE_FIELD
from maskmatch.training.checkpoints import digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from maskmatch.config.alignment import AlignmentConfig
    from maskmatch.config.tasks import Task
    from maskmatch.prompts import PromptTokenizer, TokenizedPrompts
    from maskmatch.training.alignment.material import AlignmentMaterial

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
"""Input prompts for any text, in addition to those of the tasks."""

LABEL_PROMPTS = (
    "{label} is {mask}.",
    "{label} means {mask}.",
    "{mask}: {label}",
    "{label} {mask}",
    "It is about {label}, that is {mask}.",
    '"{label}" means {mask}.',
    "The label {label} stands for {mask}.",
)
"""Label prompts for any name."""

LABEL_FIELD = ("label",)
TEMPERATURE = 0.05
MOST_WEIGHT = 150
"""The sampling weight of a label set is its number of labels, at most this, so that huge sets do not dominate."""


class AlignmentData:
    """The batches of an alignment. A batch is a random draw that depends only on the seed and the draw's number.

    The first draws are distillation: mask states of texts and names with their target vectors. If there are label sets,
    further draws also match the texts of one label set with its names.

    Args:
        tokenizer: Fills prompts and tokenizes them.
        material: The texts, names and label sets.
        vectors: The target vector of every text of one field and every name, with unit norm: the mean-pooled vectors
            of the frozen encoder.
        encoder_digest: Identifies the encoder: checkpoints are only valid for the same one.
        config: The settings.
        pad_id: The token id for padding.
    """

    def __init__(
        self,
        tokenizer: PromptTokenizer,
        material: AlignmentMaterial,
        *,
        vectors: Mapping[str, torch.Tensor],
        encoder_digest: str,
        config: AlignmentConfig,
        pad_id: int,
    ) -> None:
        self.material = material
        self.vectors = vectors
        self._tokenizer = tokenizer
        self._encoder_digest = encoder_digest
        self._config = config
        self._pad_id = pad_id
        self._weights = [min(len(each.names), MOST_WEIGHT) for each in material.label_sets]
        self._prompts: dict[tuple[str, tuple[str, ...]], Prompt] = {}

    def __len__(self) -> int:
        steps = self._config.steps + (self._config.matching_steps if self.material.label_sets else 0)
        return steps * self._config.draws

    @property
    def labels(self) -> int:
        """The number of names."""
        return len(self.material.names)

    @property
    def cut(self) -> int:
        """The number of truncated texts to report: 0, because targets and mask states truncate the same way."""
        return 0

    @property
    def tokens(self) -> NDArray[np.int64]:
        """The tokens per row: 0, because a draw already is a whole batch and is not grouped by length."""
        return np.zeros(len(self), dtype=np.int64)

    @property
    def stages(self) -> tuple[int, ...]:
        """The step at which matching follows distillation."""
        return (self._config.steps,)

    @property
    def memory(self) -> None:
        """No cache of label vectors: every draw encodes all its labels."""

    def digest(self) -> str:
        """Return a digest that identifies the data and settings of a run."""
        material = self.material
        sets = map(repr, material.label_sets)
        parts = (self._encoder_digest, *material.texts, *material.names, *sets, repr(self._config.recipe))
        return digest(*(part.encode() for part in parts))

    def batch(self, rows: Sequence[int]) -> dict[str, Any]:
        """Return the draw with this number."""
        (number,) = rows
        rng = random.Random(f"{self._config.seed}/{number}")
        if number < self._config.steps * self._config.draws:
            return self._distillation_batch(rng)
        return self._matching_batch(rng)

    def _distillation_batch(self, rng: random.Random) -> dict[str, Any]:
        """Draw texts and names, each in a random prompt, with their target vectors."""
        all_texts, all_names = self.material.texts, self.material.names
        texts = rng.sample(all_texts, min(self._config.texts_a_draw, len(all_texts)))
        names = rng.sample(all_names, min(self._config.names_a_draw, len(all_names)))
        prompts = self._tokenize([(rng.choice(PROMPTS), SINGLE_FIELD, text) for text in texts])
        prompts = prompts.followed_by(
            self._tokenize([(rng.choice(LABEL_PROMPTS), LABEL_FIELD, name) for name in names])
        )
        return {
            "groups": length_batches(prompts, self._pad_id),
            "texts": len(texts),
            "anchors": self._anchors([*texts, *names], weight=1.0),
        }

    def _matching_batch(self, rng: random.Random) -> dict[str, Any]:
        """Draw some labels of one label set, with texts of theirs."""
        (label_set,) = rng.choices(self.material.label_sets, self._weights)
        task = find_task(label_set.task)
        count = rng.randint(2, min(len(label_set.names), self._config.names_a_draw))
        labels = rng.sample(range(len(label_set.names)), count)
        names = [rng.choice(label_set.names[label]) for label in labels]
        targets = [row % count for row in range(self._config.texts_a_draw)]
        texts = [rng.choice(label_set.texts[labels[target]]) for target in targets]
        prompt, label_prompt = rng.choice(input_prompts(task)), rng.choice(LABEL_PROMPTS)
        prompts = self._tokenize(
            [*((prompt, task.fields, text) for text in texts), *((label_prompt, LABEL_FIELD, name) for name in names)]
        )
        return {
            "groups": length_batches(prompts, self._pad_id),
            "texts": len(texts),
            "targets": torch.tensor(targets),
            "layout": LabelLayout.of([[name] for name in names]),
            "anchors": self._anchors([*texts, *names], weight=self._config.anchor),
        }

    def _tokenize(self, rows: Sequence[tuple[str, tuple[str, ...], Any]]) -> TokenizedPrompts:
        """Tokenize rows of (template, fields, text), in order."""
        parts = []
        for template, fields, text in rows:
            if (template, fields) not in self._prompts:
                self._prompts[template, fields] = Prompt(template, fields)
            prompt = self._prompts[template, fields]
            row = {"label": FieldText(text)} if fields == LABEL_FIELD else field_texts(text, prompt.fields, 0)
            parts.append(self._tokenizer(prompt, [row]))
        return parts[0].followed_by(*parts[1:])

    def _anchors(self, rows: Sequence[Any], weight: float) -> Anchors:
        """Return the target vectors of the rows that have one; texts of several fields have none."""
        with_target = [(row, self.vectors[text]) for row, text in enumerate(rows) if isinstance(text, str)]
        return Anchors(
            torch.stack([vector for _, vector in with_target]),
            torch.tensor([row for row, _ in with_target]),
            weight=weight,
            contrast=weight,
            temperature=TEMPERATURE,
        )


def input_prompts(task: Task) -> tuple[str, ...]:
    """Return the input prompts of a task; a task with one text field can use the general ones too."""
    own = (task.prompt, *task.paraphrases)
    return (*own, *PROMPTS) if task.fields == SINGLE_FIELD else own
