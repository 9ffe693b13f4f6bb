"""ModelBank: the label bank of a model, which encodes label texts with torch and can be trained."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from maskmatch.errors import MaskMatchError, TrainingDivergedError
from maskmatch.files import exclusive
from maskmatch.labels.bank import LabelBank
from maskmatch.labels.learned import NOTHING, Learned
from maskmatch.model.label_reader import LabelReader, read_origins
from maskmatch.model.matching import MatchingModel, reads_alike
from maskmatch.prompts import PromptTokenizer, TokenizedPrompts, tokenize_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.labels import LabelSet, LabelText
    from maskmatch.model.encoder import Encoder
    from maskmatch.model.mlm_head import Head

logger = logging.getLogger("maskmatch")


class ModelBank(LabelBank):
    """The label bank of a model: its labels, their vectors, learned rows.

    Args:
        model: The model.
        tokenizer: Turns prompts into tokens.
        labels: The labels; None before they are known.
    """

    def __init__(self, model: MatchingModel, tokenizer: PromptTokenizer, labels: LabelSet | None = None) -> None:
        super().__init__()
        self._model, self._tokenizer = model, tokenizer
        if labels is not None:
            self._set(labels)

    @classmethod
    def of(
        cls, encoder: Encoder, config: MatcherConfig, head: Head | None = None, labels: LabelSet | None = None
    ) -> ModelBank:
        """The bank of a new classifier."""
        bank = cls(MatchingModel(encoder, config, head), PromptTokenizer(encoder.tokenizer, config.max_length), labels)
        read_origins(bank._model, bank._tokenizer)
        return bank

    # -- the model -------------------------------------------------------------------------------------------

    @property
    def model(self) -> MatchingModel:
        """The model; TrainingDivergedError if its training left no usable weights."""
        if self._model.diverged:
            raise TrainingDivergedError("The training of this classifier diverged, so it cannot be used; load it anew.")
        return self._model

    @property
    def config(self) -> MatcherConfig:
        """Task, prompts, method, similarity."""
        return self._model.settings

    @property
    def weights_version(self) -> tuple[int, int, int]:
        """Changes with the weights."""
        return self._model.weights_version

    @property
    def tokenizer(self) -> PromptTokenizer:
        """Turns prompts into tokens."""
        return self._tokenizer

    @property
    def reader(self) -> LabelReader:
        """Tokenizes and encodes label texts."""
        return LabelReader(self.model, self._tokenizer)

    @property
    def notes(self) -> list[str]:
        """What a reader of metrics should know, in sentences."""
        head = self._model.head_config
        return [] if head is None else [head.note]

    def tokenize(self, texts: Sequence[Any]) -> TokenizedPrompts:
        """Texts in their input prompts; if labels are read with each text, also in the label prompts."""
        labels = self.known_labels if self.config.labels_in_context else None
        return tokenize_texts(self._tokenizer, self.config, texts, labels)

    # -- label texts -----------------------------------------------------------------------------------------

    def reading(self) -> Callable[[Sequence[LabelText]], NDArray[np.float32]]:
        """A function that encodes label texts: → (F, masks, dim). It does not refer to the bank."""
        source, reader = self.model.labels, self.reader
        return lambda texts: as_array(source.read(texts, reader))

    def check_editable(self, otherwise: str) -> None:
        """Raise if labels have learned vectors, so that they cannot be changed without training."""
        if self.learns_rows:
            raise MaskMatchError(
                f"The method {self.config.method.name} learns a vector per label, so {otherwise}; mask-matching "
                "reads names, so its labels can be edited."
            )

    def _empty(self) -> ModelBank:
        return ModelBank(self._model, self._tokenizer)

    def _select(self, places: Sequence[int]) -> None:
        self._model.labels.select(places)

    def _set_count(self, labels: int) -> None:
        self._model.labels.set_count(labels)

    @property
    def learns_rows(self) -> bool:
        """Whether training learns a vector per label, which is never cached."""
        return self._model.labels.learned

    # -- training and settings -------------------------------------------------------------------------------

    @exclusive
    def start_training(self, labels: LabelSet, *, trained: bool) -> None:
        """Take the labels to train with. Centroids of other weights no longer hold.

        Args:
            labels: The labels.
            trained: Whether the model was trained before; otherwise what is random in it is drawn again.
        """
        if not trained:
            self._model = self._model.fresh()
            read_origins(self._model, self._tokenizer)
        self._set(labels, NOTHING)

    @exclusive
    def mark_trained(self) -> None:
        """The offset of the logits is learned from now on."""
        self._model.similarity.untrained = False
        self._version += 1

    @exclusive
    def mark_diverged(self) -> None:
        """Training left weights that are NaN or inf: the classifier raises from now on."""
        self._model.diverged = True
        self.forget()

    @exclusive
    def with_config(self, config: MatcherConfig) -> ModelBank:
        """A bank with another config on the same encoder; it keeps what still holds."""
        model = self._model.with_config(config)
        tokenizer = self._tokenizer
        if config.max_length != tokenizer.max_length:
            tokenizer = PromptTokenizer(tokenizer.vocabulary, config.max_length)
        bank = ModelBank(model, tokenizer, self._labels)
        if reads_alike(config, self.config):
            bank._cache = self._cache  # its key says whether the vectors still hold
        else:
            read_origins(model, tokenizer)
        bank._learned = self._learned_with(config)
        return bank

    def _learned_with(self, config: MatcherConfig) -> Learned:
        """What still holds with another config; warns about what is dropped."""
        before, learned = self.config, self._learned
        same_states = reads_alike(config, before)
        same_vectors = same_states and config.similarity.masks == before.similarity.masks
        same_scores = same_vectors and config.similarity == before.similarity and config.task == before.task
        holds = {
            "centroids": not len(learned.centroids) or (same_states and config.uses_centroids),
            "adaptation": learned.adaptation is None or (same_vectors and config.adapts),
            "scope": learned.scope is None or same_vectors,
            "texts": learned.texts is None or same_vectors,
            "calibration": learned.calibration is None or (same_scores and config.multi_label == before.multi_label),
        }
        meaning = {"centroids": "centroids of training texts", "adaptation": "what was learned from unlabelled texts"}
        for name, what in meaning.items():
            if not holds[name]:
                logger.warning("With these settings %s cannot be used; it is dropped.", what)
        dropped = [name for name, still in holds.items() if not still]
        left = replace(learned, **{name: getattr(NOTHING, name) for name in dropped})
        if left.calibration is None or config.threshold == before.threshold:
            return left
        return replace(left, calibration=replace(left.calibration, thresholds={}))  # one threshold for all was given

    # -- saving ----------------------------------------------------------------------------------------------

    def learned_state(self) -> dict[str, torch.Tensor]:
        """What the method has learned besides the encoder and label vectors."""
        elsewhere = ("encoder.", "labels.")
        state = self.model.state_dict()
        return {name: tensor for name, tensor in state.items() if not name.startswith(elsewhere)}

    def load_learned_state(self, state: Mapping[str, torch.Tensor], *, untrained: bool | None) -> None:
        """Load what :meth:`learned_state` gave.

        Args:
            state: The tensors by name.
            untrained: Whether the offset of the logits still has its initial value; None: compare with it.
        """
        shapes, expected = (
            {name: part.shape for name, part in parts.items()} for parts in (state, self.learned_state())
        )
        if shapes != expected:
            raise MaskMatchError(f"it does not hold what the method {self.config.method.name} learns.")
        self._model.load_state_dict(dict(state), strict=False)
        similarity = self._model.similarity
        if untrained is None:  # folders from before it was a field
            untrained = similarity.offset is None or similarity.offset.item() == similarity.config.row.offset
        similarity.untrained = untrained

    def _load_vectors(self, vectors: NDArray[np.float32], metadata: Mapping[str, str], *, same_weights: bool) -> None:
        if not self.learns_rows:
            super()._load_vectors(vectors, metadata, same_weights=same_weights)
            return
        if len(vectors) != len(self.known_labels):
            raise MaskMatchError("it does not hold the vectors of the labels.")
        if vectors.shape[2] != self._model.encoder.config.hidden_size:
            raise MaskMatchError("its vectors do not have the encoder's dimension.")
        self._model.labels.load(torch.from_numpy(vectors))


def as_array(vectors: torch.Tensor) -> NDArray[np.float32]:
    """Vectors as an array in memory."""
    array: NDArray[np.float32] = vectors.detach().float().cpu().numpy()
    return array
