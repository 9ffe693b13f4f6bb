"""Align an encoder: compute the target vectors, train an adapter, save it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from torch.nn.functional import normalize

from maskmatch.config.alignment import AlignmentConfig
from maskmatch.config.matcher import MatcherConfig
from maskmatch.errors import MaskMatchError, TrainingDivergedError
from maskmatch.files import recover, write_folder
from maskmatch.model.adapter import (
    CONFIG_FILE,
    ENCODERS_VARIABLE,
    WEIGHTS_FILE,
    Adapter,
    attach,
    detach,
    is_adapter,
    largest_rank,
    matrices_digest,
    relative_base,
    resolve_base,
)
from maskmatch.model.encoder import Encoder, adapter_chain, find_model, move_encoder
from maskmatch.model.matching import MatchingModel
from maskmatch.prompts import Prompt, PromptTokenizer, field_texts
from maskmatch.storage.layout import check_target, is_saved
from maskmatch.training.alignment.batches import AlignmentData
from maskmatch.training.alignment.card import alignment_card
from maskmatch.training.alignment.material import SINGLE_FIELD, AlignmentMaterial
from maskmatch.training.loop import train

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.config.training import TrainingSummary
    from maskmatch.data import LabelledTexts
    from maskmatch.labels import LabelsLike

logger = logging.getLogger("maskmatch")

MAX_LENGTH = 128
"""The maximum number of tokens per text. What alignment teaches does not depend on the length of texts."""

CARD_FILE = "README.md"
FILES = (CONFIG_FILE, WEIGHTS_FILE, CARD_FILE)
"""The files of a saved adapter."""


@dataclass(frozen=True)
class Alignment:
    """The result of an alignment.

    Attributes:
        adapter: The trained adapter.
        encoder: The encoder with the adapter merged into its weights.
        config: The settings.
        training: The summary of the training run.
        sources: Descriptions of the training data, for the model card.
    """

    adapter: Adapter
    encoder: Encoder
    config: AlignmentConfig
    training: TrainingSummary
    sources: tuple[str, ...] = ()

    def card(self) -> str:
        """Return the model card."""
        return alignment_card(self.adapter, self.config, self.training, self.sources)

    def save(self, folder: str | Path) -> None:
        """Write the adapter with its model card; ``from_pretrained`` loads the folder. The write is atomic."""
        folder = Path(folder).expanduser()
        check_output(folder, self.adapter.base)
        try:
            with write_folder(folder, ours=FILES) as scratch:
                self.adapter.save(scratch, destination=folder)
                (scratch / CARD_FILE).write_text(self.card(), encoding="utf-8")
        except SafetensorError as error:  # a full disk, for instance
            raise MaskMatchError(f"{folder} could not be written: {error}.") from error
        self._warn_if_encoder_is_far(folder)

    def _warn_if_encoder_is_far(self, folder: Path) -> None:
        """Warn if the saved adapter does not find its encoder, because a path to it would name this machine."""
        expected = resolve_base(relative_base(self.adapter.base, folder), folder)
        if expected != self.adapter.base:
            logger.warning(
                f"The adapter does not hold the path of its encoder, {self.adapter.base}: to load it, copy or link the "
                f"encoder to {expected}, or set {ENCODERS_VARIABLE}={Path(self.adapter.base).parent}."
            )


def check_output(folder: Path, model: str | Path | None) -> None:
    """Raise if a folder cannot be written, has other files, or is an adapter that the model is built on."""
    check_target(folder, ours=lambda folder: is_adapter(folder) and not is_saved(folder), kind="an adapter")
    if is_adapter(folder) and folder.resolve() in adapter_chain(*find_model(model))[0]:
        raise MaskMatchError(f"{folder} is part of the encoder to align; choose another folder.")


def align(
    texts: Any,
    labels: LabelsLike | None = None,
    *,
    model: str | Path | None = None,
    label_sets: Sequence[LabelledTexts] = (),
    config: AlignmentConfig | None = None,
    sources: Sequence[str] = (),
    **options: Any,
) -> Alignment:
    """Align an encoder: train its mask states to match its own mean-pooled vectors.

    Args:
        texts: Unlabelled texts, like those to be classified later; blank ones are skipped. With label sets there may
            be none.
        labels: Label names, like those to be used later. None for phrases cut from the texts.
        model: The encoder; None for the default, which already has a general alignment.
        label_sets: Label sets with texts, to learn what label names mean.
        config: The settings; single settings can be given as keywords instead.
        sources: Descriptions of the training data, for the model card.
        **options: Settings of :class:`AlignmentConfig`.
    """
    config = (config or AlignmentConfig()).changed(options)
    material = AlignmentMaterial.collect(texts, labels, label_sets, config)
    encoder, base = _load(model)
    _check_rank(config.rank, encoder)
    tokenizer = PromptTokenizer(encoder.tokenizer, min(MAX_LENGTH, encoder.max_length(None)))
    torch.manual_seed(config.seed)
    data = AlignmentData(
        tokenizer,
        material,
        vectors=_target_vectors(encoder, tokenizer, material.single_texts),
        encoder_digest=matrices_digest(encoder.model),
        config=config,
        pad_id=encoder.pad_id,
    )
    adapter, summary = _train_adapter(encoder, base, data, config)
    adapter.merge_into(encoder.model)
    return Alignment(adapter, encoder, config, summary, tuple(sources))


def _load(model: str | Path | None) -> tuple[Encoder, str]:
    """Load the encoder; return it with its hub id, name or absolute folder."""
    if model is not None:
        recover(Path(model).expanduser())
    folder, source = find_model(model)
    if is_saved(folder):
        raise MaskMatchError(f"{source} is a trained classifier; align an encoder, and train it afterwards.")
    is_folder = model is not None and folder == Path(model).expanduser()
    encoder = Encoder.load(folder, source)
    move_encoder(encoder, None)
    return encoder, str(folder.resolve() if is_folder else model or source)


def _check_rank(rank: int, encoder: Encoder) -> None:
    """Raise if the rank is larger than the smallest matrix allows, before any work is done."""
    largest = largest_rank(encoder.model)
    if rank > largest:
        raise MaskMatchError(
            f"rank is {rank}, but the smallest matrix of {encoder.source} allows a rank of at most {largest}."
        )


def _target_vectors(encoder: Encoder, tokenizer: PromptTokenizer, texts: Sequence[str]) -> dict[str, torch.Tensor]:
    """Return the mean-pooled vectors of bare texts and names, with unit norm: the targets of the distillation."""
    texts = list(dict.fromkeys(texts))
    model = MatchingModel(encoder, _config(encoder, "semantic-matching"))
    prompts = tokenizer(Prompt("{text}", masked=False), [field_texts(text, SINGLE_FIELD) for text in texts])
    vectors = model.encode(prompts)
    return dict(zip(texts, normalize(vectors.mean(dim=1), dim=-1).cpu(), strict=True))


def _config(encoder: Encoder, method: str) -> MatcherConfig:
    return MatcherConfig.make(method=method, max_length=encoder.max_length(None))


def _train_adapter(
    encoder: Encoder, base: str, data: AlignmentData, config: AlignmentConfig
) -> tuple[Adapter, TrainingSummary]:
    """Train an adapter; the encoder's weights are the same afterwards."""
    attach(encoder.model, config.rank)
    matching = MatchingModel(encoder, _config(encoder, "mask-matching"))
    try:
        summary = train(matching, data, config.training())
    finally:
        adapter = detach(encoder.model, base).halved()  # half precision now, so that it equals the saved adapter
    if not adapter.is_finite:
        raise TrainingDivergedError(
            f"Training diverged: the adapter is too large for 16 bits; choose a learning rate below "
            f"{config.learning_rate:g}."
        )
    return adapter, summary
