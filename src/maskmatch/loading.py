"""The parts of a classifier from a folder: of a saved classifier, or of an encoder; and what of them is saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maskmatch.config import MatcherConfig
from maskmatch.encoder import Encoder, move_encoder
from maskmatch.errors import MaskMatchError
from maskmatch.mlm_head import Head, pretrained_head
from maskmatch.saving import HEAD_FILE, SavedModel, read_model
from maskmatch.scorer import Scorer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from maskmatch.labels import LabelSet
    from maskmatch.training_config import TrainingSummary


@dataclass(frozen=True)
class SavedParts:
    """A classifier that was saved: how it scores, its labels, what its training did, and how it was evaluated."""

    scorer: Scorer
    labels: LabelSet
    training: TrainingSummary | None
    figures: Mapping[str, Any] | None


def load_saved(folder: Path, source: str, device: str | None) -> SavedParts:
    """A saved classifier, as it was saved."""
    saved = read_model(folder, source)
    move_encoder(saved.encoder, device)
    head = None if saved.head_config is None else Head.of_saved(saved.head_config, saved.head)
    scorer = Scorer(saved.encoder, saved.config, head)
    try:
        scorer.load(saved.labels, saved.head, saved.label_vectors, saved.label_vector_key)
    except MaskMatchError as error:
        raise MaskMatchError(f"{HEAD_FILE} is damaged: {error}") from None
    scorer.take_centres(saved.centres)
    return SavedParts(scorer, saved.labels, saved.training, saved.evaluation)


def load_new(
    folder: Path, source: str, device: str | None, max_length: int | None, options: Mapping[str, Any]
) -> Scorer:
    """A new classifier on a pretrained encoder.

    Args:
        folder: The encoder's folder.
        source: What to call it.
        device: Where to compute; None: on a GPU if there is one.
        max_length: The most tokens of a prompted text; None: the default.
        options: Task, prompts, method, similarity and so on, as ``MatcherConfig.make`` takes them.
    """
    encoder = Encoder.load(folder, source)
    move_encoder(encoder, device)
    config = MatcherConfig.make(**options, max_length=encoder.max_length(max_length))
    head = pretrained_head(folder, source) if config.method.has_word_head else None
    return Scorer(encoder, config, head)


def parts_to_save(parts: SavedParts) -> SavedModel:
    """What is written of a classifier."""
    scorer, labels = parts.scorer, parts.labels
    in_context = scorer.config.labels_in_context  # such labels have no vectors of their own
    return SavedModel(
        encoder=scorer.encoder,
        config=scorer.config,
        labels=labels,
        label_vectors=None if in_context else scorer.label_text_vectors(labels),  # (F, masks, dim)
        label_vector_key=scorer.label_vector_key(scorer.label_texts(labels)),
        head=scorer.head(labels),
        head_config=scorer.head_config,
        centres=scorer.centres,
        training=parts.training,
        evaluation=parts.figures,
    )
