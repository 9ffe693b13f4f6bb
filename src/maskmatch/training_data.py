"""Training data: texts with their labels, tokenised once, and what is settled by them when training is over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.functional import normalize

from maskmatch.anchors import Anchors
from maskmatch.checkpoints import digest
from maskmatch.encoder import length_batches
from maskmatch.errors import MaskMatchError
from maskmatch.evaluation import best_threshold
from maskmatch.label_examples import Centres, share_of_training_texts, some_of_each
from maskmatch.label_memory import LabelMemory, samples_labels
from maskmatch.targets import target_array
from maskmatch.torch_runtime import evaluating

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from maskmatch.choices import LabelEncoding
    from maskmatch.config import MatcherConfig
    from maskmatch.label_vectors import LabelLayout
    from maskmatch.labels import LabelSet
    from maskmatch.prompts import TokenizedPrompts
    from maskmatch.scorer import Scorer

ROWS_FOR_OFFSET = 256
"""How many training rows tell from which similarity on a label applies."""


@dataclass(frozen=True)
class TrainingData:
    """Texts with their labels, tokenised once. A batch of it pools texts and label prompts."""

    texts: TokenizedPrompts
    targets: NDArray[Any]  # (n,) positions of labels, or (n, K) of 0 and 1
    layout: LabelLayout
    label_prompts: TokenizedPrompts | None
    """The label texts in their prompt, where the encoder reads labels apart from the texts."""
    label_words: Sequence[Sequence[int]]
    """The label texts' token ids, where labels are words of the embedding table."""
    pad_id: int
    held: torch.Tensor | None = None  # (n + F, dim)
    """Vectors of length 1 that those of the texts and label texts are held at, if they are."""
    hold: float = 0.0
    """How much they are."""
    memory: LabelMemory | None = None
    """The last known vectors of the label texts, where a step does not read all of them."""

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def labels(self) -> int:
        """The number of labels."""
        return len(self.layout.table)

    @property
    def cut(self) -> int:
        """How many texts are longer than the model reads."""
        return int(self.texts.cut.sum())

    @property
    def tokens(self) -> NDArray[np.int64]:
        """How many tokens a step reads of each text: (n,)."""
        return self.texts.tokens

    def batch(self, rows: Sequence[int]) -> dict[str, Any]:
        """Texts and label prompts together, in groups of like length, so that little is padded.

        Where label vectors are kept, the model chooses the label prompts when it has read the texts.
        """
        chosen = self.texts.select(rows)
        texts = pooled = chosen.flat
        labels = self.label_prompts if chosen.label_prompts is None else chosen.label_prompts
        if labels is not None and self.memory is None:
            pooled = texts.followed_by(labels.flat)
        return {
            "groups": length_batches(pooled, self.pad_id),
            "texts": len(texts),
            "targets": torch.from_numpy(self.targets[list(rows)]),
            "layout": self.layout,
            "words": self.label_words,
            "anchors": self._anchors(rows),
            "memory": self.memory,
        }

    def _anchors(self, rows: Sequence[int]) -> Anchors | None:
        """Where the vectors of these texts and of all labels that are read are held."""
        if self.held is None:
            return None
        labels = torch.arange(len(self.texts), len(self.held) if self.memory is None else len(self.texts))
        vectors = self.held[torch.cat([torch.tensor(list(rows)), labels])]
        return Anchors(vectors, torch.arange(len(vectors)), weight=self.hold)

    def digest(self) -> str:
        """What tells these data from others."""
        both = (self.label_prompts, self.texts.label_prompts)
        labels = [ids for each in both if each is not None for ids in each.flat.input_ids]
        prompts = [*self.texts.flat.input_ids, *labels]
        return digest(*(ids.tobytes() for ids in prompts), self.targets.tobytes(), repr(self.label_words).encode())


def training_data(
    scorer: Scorer,
    texts: Sequence[Any],
    rows: Sequence[Any],
    labels: LabelSet,
    *,
    hold: float = 0.0,
    label_encoding: LabelEncoding = "full",
) -> TrainingData:
    """Texts with their labels, tokenised once for all of a training run.

    Args:
        scorer: What reads texts and labels.
        texts: The texts.
        rows: The labels of each.
        labels: All labels.
        hold: How much vectors are to be held where they are now.
        label_encoding: Whether a step reads all labels.
    """
    layout = scorer.layout(labels)
    source, in_context = scorer.config.method.label_source, scorer.config.labels_in_context
    if in_context and label_encoding == "sampled":
        raise MaskMatchError(
            f"The label prompt {scorer.config.label_prompt.template!r} names a field of the text, so all labels are "
            'read with each text; take label_encoding "full" or "auto".'
        )
    prompts = scorer.tokenize(texts, labels)
    label_prompts = scorer.label_prompts(layout.texts) if source == "prompt" and not in_context else None
    holds = hold > 0 and source == "prompt"  # where labels are learned from nothing, there is nothing to keep
    held = vectors_now(scorer, prompts, labels) if holds else None
    memory = None
    if label_prompts is not None and _samples(scorer.config, label_encoding, layout):
        model = scorer.model(labels)
        vectors = model.similarity.prepare(scorer.flat_label_vectors(model, layout.texts))  # (F, dim)
        held_labels = None if held is None else held[len(prompts) :]
        memory = LabelMemory(label_prompts, layout, vectors, scorer.encoder.pad_id, held=held_labels)
        scorer.forget_labels()  # they are about to be wrong, and need not be held twice
    return TrainingData(
        texts=prompts,
        targets=target_array(rows, labels, scorer.config.multi_label),
        layout=layout,
        label_prompts=label_prompts,
        label_words=scorer.words(layout.texts) if source == "verbalizer" else (),
        pad_id=scorer.encoder.pad_id,
        held=held,
        hold=hold if holds else 0.0,
        memory=memory,
    )


def _samples(config: MatcherConfig, label_encoding: LabelEncoding, layout: LabelLayout) -> bool:
    """Whether a training step reads only some of the label texts."""
    if not config.label_pool:
        return samples_labels(label_encoding, len(layout.texts))
    if label_encoding == "sampled":
        raise MaskMatchError(
            "Labels that are read in a pool of label prompts are all read at every step; give a single label "
            "prompt to sample labels."
        )
    return False


def vectors_now(scorer: Scorer, prompts: TokenizedPrompts, labels: LabelSet) -> torch.Tensor:
    """The vectors of texts and label texts as they are, of length 1: (n + F, dim).

    Labels that are read with each text have no vector of their own to hold: (n, dim).
    """
    model = scorer.model(labels)
    means = [scorer.read_prompts(prompts, model.input_vectors).mean(dim=1)]
    if not scorer.config.labels_in_context:
        means.append(scorer.flat_label_vectors(model, scorer.layout(labels).texts).mean(dim=1))
    return normalize(torch.cat(means), dim=-1).cpu()


def settle_offset(scorer: Scorer, data: TrainingData, labels: LabelSet) -> None:
    """Where a text may have several labels: let as many apply as suit the training rows.

    A short training learns which labels are more similar than others, long before the offset has moved to where
    the encoder's similarities lie.
    """
    some = np.unique(np.linspace(0, len(data.texts) - 1, ROWS_FOR_OFFSET, dtype=np.int64))
    targets = np.asarray(data.targets[some])
    scores = scorer.prediction(labels).scores(data.texts.select(some)).astype(np.float64)
    if targets.any():
        scorer.model(labels).similarity.move_offset(_best_cut(targets, scores))


def find_centres(scorer: Scorer, data: TrainingData, labels: LabelSet, most: float) -> Centres:
    """Find where the training texts of each label lie, with the weights as they are now.

    Args:
        scorer: What reads texts.
        data: The training data, one label a text.
        labels: All labels.
        most: The share that a label's texts have in its vector if there are very many of them.
    """
    ids, some, model = list(labels), some_of_each(data.targets), scorer.model(labels)
    with evaluating(model):
        read = scorer.read_prompts(data.texts.select(np.concatenate(list(some.values()))), model.input_vectors)
    owners = torch.from_numpy(np.repeat(np.arange(len(some)), [len(rows) for rows in some.values()]))
    counts = np.bincount(data.targets, minlength=len(ids))
    shares = [share_of_training_texts(int(counts[place]), most) for place in some]
    return Centres.of([ids[place] for place in some], read, owners, shares)


def _best_cut(targets: NDArray[Any], scores: NDArray[np.float64]) -> float:
    """The score from which on labels had best apply: 0 if that is as good, else half-way to the next lower score."""
    largest = float(np.abs(scores).max()) or 1.0
    squashed = 0.5 + scores / (2 * largest)  # as probabilities would be, but none so near to 1 that they meet
    given = squashed >= best_threshold(targets, squashed)
    lowest = float(scores[given].min())
    highest_below = float(scores[~given].max()) if not given.all() else lowest - 1.0
    return 0.0 if highest_below < 0 <= lowest else (lowest + highest_below) / 2
