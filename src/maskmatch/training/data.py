"""Training data: texts with their labels, tokenized once; and what is fitted to them after training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.functional import normalize

from maskmatch.errors import MaskMatchError
from maskmatch.evaluation import best_threshold
from maskmatch.evaluation.display import excerpt
from maskmatch.labels.adaptation import unit
from maskmatch.labels.centroids import Centroids, rows_per_label, training_weight
from maskmatch.labels.kept_texts import KeptTexts
from maskmatch.labels.scope import Scope
from maskmatch.labels.targets import target_array
from maskmatch.model.anchors import Anchors
from maskmatch.model.encoder import length_batches
from maskmatch.model.model_bank import as_array
from maskmatch.prediction.label_scorer import prepared
from maskmatch.prediction.runtimes.torch import torch_pipeline
from maskmatch.prompts.windows import all_windows
from maskmatch.training.balance import NO_BALANCE, Balance
from maskmatch.training.checkpoints import digest
from maskmatch.training.label_sampling import LabelMemory, samples_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.config.training import LabelEncoding
    from maskmatch.labels.layout import LabelLayout
    from maskmatch.model.model_bank import ModelBank
    from maskmatch.prompts import TokenizedPrompts

WINDOWS_TRAINED = 4
"""How many windows of a long text are trained on at most, spread over the text."""

ROWS_FOR_OFFSET = 256
"""How many training rows the offset of the logits is fitted to."""


@dataclass(frozen=True)
class TrainingData:
    """Texts with their labels, tokenized once. A batch pools texts and label prompts."""

    texts: TokenizedPrompts
    """What is trained on: texts, or windows of long ones."""
    owners: NDArray[np.int64]
    """(rows,), the text that each of them belongs to."""
    whole: TokenizedPrompts
    """The n texts with all their windows."""
    targets: NDArray[Any]  # (n,) positions of labels, or (n, K) of 0 and 1
    layout: LabelLayout
    label_prompts: TokenizedPrompts | None
    """The label texts in their prompt, if the encoder reads labels by themselves."""
    label_words: Sequence[Sequence[int]]
    """The token ids of the label texts, if labels are words of the embedding table."""
    pad_id: int
    held: torch.Tensor | None = None  # (n + F, dim)
    """Unit vectors that those of the texts and label texts are kept near, if they are."""
    hold: float = 0.0
    """The weight of that loss."""
    memory: LabelMemory | None = None
    """The last known vectors of the label texts, if a step does not encode all of them."""
    balance: Balance = NO_BALANCE
    """How much each text counts, and what the loss adds to the logits of labels with many rows."""

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def labels(self) -> int:
        """The number of labels."""
        return len(self.layout)

    @property
    def cut(self) -> int:
        """How many texts were truncated."""
        return int(self.whole.cut.sum())

    @property
    def stages(self) -> tuple[int, ...]:
        """One loss from the first step to the last."""
        return ()

    @property
    def tokens(self) -> NDArray[np.int64]:
        """The number of tokens that a step encodes per row: (rows,)."""
        return self.texts.tokens

    def batch(self, rows: Sequence[int]) -> dict[str, Any]:
        """Texts and label prompts together, in groups of similar length, so that there is little padding.

        With a memory of label vectors, the model chooses the label prompts once it has encoded the texts.
        """
        chosen = self.texts.select(rows)
        texts = pooled = chosen.flat
        labels = self.label_prompts if chosen.label_prompts is None else chosen.label_prompts
        if labels is not None and self.memory is None:
            pooled = texts.followed_by(labels.flat)
        return {
            "groups": length_batches(pooled, self.pad_id),
            "texts": len(texts),
            "targets": torch.from_numpy(self.targets[self.owners[list(rows)]]),
            "layout": self.layout,
            "words": self.label_words,
            "anchors": self._anchors(rows),
            "memory": self.memory,
            **self.balance.batch(rows, self.owners),
        }

    def _anchors(self, rows: Sequence[int]) -> Anchors | None:
        """The vectors that those of these texts and of all encoded labels are kept near."""
        if self.held is None:
            return None
        labels = torch.arange(len(self.texts), len(self.held) if self.memory is None else len(self.texts))
        vectors = self.held[torch.cat([torch.tensor(list(rows)), labels])]
        return Anchors(vectors, torch.arange(len(vectors)), weight=self.hold)

    def digest(self) -> str:
        """A digest of the tokens and targets."""
        both = (self.label_prompts, self.texts.label_prompts)
        labels = [ids for each in both if each is not None for ids in each.flat.input_ids]
        prompts = [*self.texts.flat.input_ids, *labels]
        words = repr(self.label_words).encode()
        return digest(*(ids.tobytes() for ids in prompts), self.targets.tobytes(), words, *self.balance.parts)


def training_data(
    bank: ModelBank,
    texts: Sequence[Any],
    rows: Sequence[Any],
    *,
    hold: float = 0.0,
    label_encoding: LabelEncoding = "full",
    balance: Balance = NO_BALANCE,
) -> TrainingData:
    """Texts with their labels, tokenized once for a whole training run.

    Args:
        bank: The model and its labels.
        texts: The texts.
        rows: The labels of each text.
        hold: How much vectors are kept near those of now.
        label_encoding: Whether a step encodes all labels.
        balance: What the loss does about labels with more rows than others.
    """
    config, layout, source = bank.config, bank.layout, bank.model.labels
    if config.labels_in_context and label_encoding == "sampled":
        raise MaskMatchError(
            f"The label prompt {config.label_prompt.template!r} names a field of the text, so all labels are "
            'read with each text; choose label_encoding "full" or "auto".'
        )
    whole = bank.tokenize(texts)
    prompts, owners = all_windows(whole, WINDOWS_TRAINED)
    label_prompts = None if config.labels_in_context else source.prompts(layout.texts, bank.reader)
    holds = hold > 0 and (config.labels_in_context or label_prompts is not None)  # else labels start from nothing
    held = current_vectors(bank, prompts) if holds else None
    memory = None
    if label_prompts is not None and _samples(config, label_encoding, layout):
        vectors = bank.model.similarity.prepare(_on_device(bank, bank.text_vectors(layout.texts)))  # (F, dim)
        held_labels = None if held is None else held[len(prompts) :]
        memory = LabelMemory(label_prompts, layout, vectors, bank.tokenizer.vocabulary.pad_id, held=held_labels)
    return TrainingData(
        texts=prompts,
        owners=owners,
        whole=whole,
        targets=target_array(rows, bank.known_labels, config.multi_label),
        layout=layout,
        label_prompts=label_prompts,
        label_words=source.words(layout.texts, bank.reader),
        pad_id=bank.tokenizer.vocabulary.pad_id,
        held=held,
        hold=hold if holds else 0.0,
        memory=memory,
        balance=balance,
    )


def _samples(config: MatcherConfig, label_encoding: LabelEncoding, layout: LabelLayout) -> bool:
    """Whether a training step encodes only some of the label texts."""
    if len(config.label_prompts) == 1:
        return samples_labels(label_encoding, layout.size)
    if label_encoding == "sampled":
        raise MaskMatchError(
            "With a pool of label prompts every step encodes all labels; give a single label prompt to sample labels."
        )
    return False


def current_vectors(bank: ModelBank, prompts: TokenizedPrompts) -> torch.Tensor:
    """The vectors of texts and label texts with the weights of now, with unit norm: (n + F, dim).

    Labels that are read with each text have no vectors of their own: (n, dim).
    """
    means = [bank.model.encode(prompts).mean(dim=1)]
    if not bank.config.labels_in_context:
        means.append(_on_device(bank, bank.text_vectors(bank.layout.texts)).mean(dim=1))
    return normalize(torch.cat(means), dim=-1).cpu()


def fit_offset(bank: ModelBank, data: TrainingData) -> None:
    """With several labels per text: move the offset of the logits to where it fits the training rows best.

    A short training run learns which labels are more similar than others long before the offset has moved to the range
    of the encoder's similarities.
    """
    some = np.unique(np.linspace(0, len(data.whole) - 1, ROWS_FOR_OFFSET, dtype=np.int64))
    targets = np.asarray(data.targets[some])
    scores = torch_pipeline(bank).scores(data.whole.select(some)).astype(np.float64)
    if targets.any():
        bank.model.similarity.shift_offset(_best_cut(targets, scores))


def centroids_and_scope(
    bank: ModelBank, data: TrainingData, maximum: float, others: TokenizedPrompts | None = None
) -> tuple[Centroids, Scope | None]:
    """The centroids of each label's training texts, and how texts are spread around them, with the weights of now.

    Args:
        bank: The model and its labels.
        data: The training data, one label per text.
        maximum: The weight of the centroid of very many texts.
        others: Texts that are known to be out of scope.
    """
    ids, rows = list(bank.known_labels), rows_per_label(data.targets)
    vectors = as_array(bank.model.encode(data.whole.select(np.concatenate(list(rows.values())))))
    owners = np.repeat(np.arange(len(rows)), [len(own) for own in rows.values()])
    counts = data.balance.effective_counts(data.targets, len(ids))
    weights = [training_weight(float(counts[place]), maximum) for place in rows]
    own = None if data.balance.weights is None else data.balance.weights[np.concatenate(list(rows.values()))]
    centroids = Centroids.of([ids[place] for place in rows], vectors, owners, weights, own)
    if bank.config.similarity.mask_join.late or not bank.config.similarity.row.unit_norm:
        return centroids, None
    outside = None if others is None else as_array(bank.model.encode(others))
    texts, means, outside = (
        None if part is None else prepared(part, bank.config.similarity)
        for part in (vectors, centroids.vectors, outside)
    )
    assert texts is not None
    assert means is not None
    return centroids, Scope.of(texts, owners, means, outside)


def _on_device(bank: ModelBank, vectors: NDArray[np.float32]) -> torch.Tensor:
    """Vectors as a tensor where the model computes."""
    return torch.from_numpy(vectors).to(bank.model.device)


def kept_texts(bank: ModelBank, texts: Sequence[Any], rows: Sequence[Any]) -> KeptTexts:
    """Training texts with their vectors, to be kept with the classifier."""
    pipeline = torch_pipeline(bank)
    vectors = pipeline.scorer.prepare(pipeline.all_vectors(pipeline.tokenize(texts)))
    return KeptTexts(tuple(excerpt(text) for text in texts), tuple(rows), unit(vectors))


def _best_cut(targets: NDArray[Any], scores: NDArray[np.float64]) -> float:
    """The logit from which labels should apply: 0 if that is as good, else half-way to the next lower one."""
    largest = float(np.abs(scores).max()) or 1.0
    squashed = 0.5 + scores / (2 * largest)  # in the range of probabilities, but none so near to 1 that they collide
    given = squashed >= best_threshold(targets, squashed)
    lowest = float(scores[given].min())
    highest_below = float(scores[~given].max()) if not given.all() else lowest - 1.0
    return 0.0 if highest_below < 0 <= lowest else (lowest + highest_below) / 2
